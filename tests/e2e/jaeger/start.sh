#!/usr/bin/env bash
# Starts Jaeger on free loopback ports, waits until it is ready, and prints shell assignments.
# Usage: eval "$(start.sh)"   then: kill "$JAEGER_PID"; rm -rf "$JAEGER_DIR"
#
# Environment: JAEGER_BIN is the binary to run instead of the one that build.sh gives.
# JAEGER_TLS_CERT and JAEGER_TLS_KEY (PEM files) turn TLS on for both OTLP ports, and JAEGER_TLS_CLIENT_CA
# also asks each sender for a certificate of that CA. The query API stays plain.
set -euo pipefail

attempts=5
ready_polls=300 # of 0.1 s

fail() {
  echo "jaeger/start.sh: $*" >&2
  exit 1
}

# No cd: paths that the caller gives may be relative.
here=$(dirname "${BASH_SOURCE[0]}")

# Ports below the range that systems hand out for outgoing connections, so that no other program gets one by chance
# between this check and Jaeger's own bind.
pick_ports() {
  ports=()
  local port
  while [ "${#ports[@]}" -lt 4 ]; do
    port=$((10000 + RANDOM % 20000))
    case " ${ports[*]-} " in *" $port "*) continue ;; esac
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      ports+=("$port")
    fi
  done
}

otlp_tls() {
  if [ -z "${JAEGER_TLS_CERT:-}" ]; then
    echo null
    return
  fi
  local ca=
  if [ -n "${JAEGER_TLS_CLIENT_CA:-}" ]; then
    ca=", client_ca_file: \"$JAEGER_TLS_CLIENT_CA\""
  fi
  echo "{cert_file: \"$JAEGER_TLS_CERT\", key_file: \"${JAEGER_TLS_KEY:?needed with JAEGER_TLS_CERT}\"$ca}"
}

write_config() {
  local config
  config=$(<"$here/config.yaml.in")
  config=${config//@OTLP_GRPC@/${ports[0]}}
  config=${config//@OTLP_HTTP@/${ports[1]}}
  config=${config//@QUERY_HTTP@/${ports[2]}}
  config=${config//@QUERY_GRPC@/${ports[3]}}
  config=${config//@OTLP_TLS@/"$tls"}
  printf '%s\n' "$config" >"$dir/config.yaml"
}

# The log line comes from this very process, so a stranger's answer on one of the ports cannot pass for readiness.
wait_until_ready() {
  local poll
  for ((poll = 0; poll < ready_polls; poll++)); do
    if grep -q 'Everything is ready' "$dir/jaeger.log"; then
      return 0
    fi
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

bin=${JAEGER_BIN:-$("$here/build.sh")} || fail "there is no binary to start"
tls=$(otlp_tls) || fail "the TLS settings are not complete"
scheme=http
if [ "$tls" != null ]; then
  scheme=https
fi
dir=$(mktemp -d) || fail "could not create a folder for the configuration and the log"
pid=

stop() {
  if [ -n "$pid" ]; then
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    pid=
  fi
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

for ((attempt = 1; attempt <= attempts; attempt++)); do
  pick_ports
  write_config
  : >"$dir/jaeger.log" # so that the first look at it finds a file
  "$bin" --config "$dir/config.yaml" </dev/null >"$dir/jaeger.log" 2>&1 &
  pid=$!
  if wait_until_ready; then
    trap - EXIT INT TERM
    cat <<END
JAEGER_PID=$pid
JAEGER_DIR=$(printf %q "$dir")
JAEGER_OTLP_GRPC=$scheme://127.0.0.1:${ports[0]}
JAEGER_OTLP_HTTP=$scheme://127.0.0.1:${ports[1]}
JAEGER_QUERY=http://127.0.0.1:${ports[2]}
JAEGER_QUERY_GRPC=127.0.0.1:${ports[3]}
END
    exit 0
  fi
  stop
  # Only a port taken meanwhile is worth another try.
  grep -q 'address already in use' "$dir/jaeger.log" || break
done

cat "$dir/jaeger.log" >&2
fail "Jaeger did not become ready; its log is above"
