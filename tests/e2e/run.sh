#!/usr/bin/env bash
# Runs the end-to-end tests against real receivers.
# Usage: run.sh BINARY [NAME OF A TEST...]   BINARY is the build to test, of whatever kind
#
# What it needs is put into the user's cache folder, outside the checkout, and found there by the next run: a Python venv
# (named after its requirements) and Jaeger (named after its go.sum).
set -euo pipefail

fail() {
  echo "e2e/run.sh: $*" >&2
  exit 1
}

sum() {
  if command -v sha256sum >/dev/null; then
    sha256sum
  else
    shasum -a 256
  fi
}

[ $# -ge 1 ] || fail "say which binary to test"
[ -x "$1" ] || fail "there is no program at $1"
E2E_BINARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Neither the receivers nor the tests may send to, or take settings from, what surrounds them.
clean=(env)
while IFS= read -r name; do
  clean+=(-u "$name")
done < <(compgen -e | grep -Ei '^(OTEL_|DD_|FI_|PHOENIX_|ROTEL_|(https?|all|no)_proxy$)' || true)

# A venv is moved into its place when it is whole: an interrupted pip must not be taken for one. Its scripts name the
# interpreter of the folder they were installed into, so the tests call modules through the interpreter instead.
venv() {
  local hash path temp
  hash=$(cat "$here/requirements.txt" "$here/constraints.txt" | sum) || fail "could not hash the requirements"
  path=${XDG_CACHE_HOME:-$HOME/.cache}/fi-hook-to-otlp-e2e/venv-${hash:0:16}
  if ! "$path/bin/python" -c 'import ddapm_test_agent, rotel' 2>/dev/null; then
    echo "e2e/run.sh: installing the receivers into $path" >&2
    mkdir -p "$(dirname "$path")"
    temp=$(mktemp -d "$path.XXXXXX")
    trap 'rm -rf "$temp"' EXIT # this function runs in a shell of its own
    python3 -m venv "$temp" >&2 || fail "python3 -m venv failed; on Debian install python3-venv"
    "$temp/bin/python" -m pip install -q --disable-pip-version-check \
      -r "$here/requirements.txt" -c "$here/constraints.txt" >&2 || fail "pip failed (see above)"
    rm -rf "$path"
    mv "$temp" "$path"
  fi
  echo "$path"
}

E2E_VENV=$(venv)
E2E_ROTEL=$("$E2E_VENV/bin/python" -c 'import os, rotel; print(os.path.join(os.path.dirname(rotel.__file__), "rotel-agent"))')
JAEGER_BIN=$("$here/jaeger/build.sh")
export E2E_BINARY E2E_VENV E2E_ROTEL JAEGER_BIN

cd "$here/../.."
# Built first with the environment as it is: fetching crates may need the proxy.
cargo test --locked --features e2e --test e2e --no-run
"${clean[@]}" cargo test --locked --features e2e --test e2e -- "$@"
