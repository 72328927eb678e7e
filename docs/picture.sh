#!/usr/bin/env bash
# Makes docs/demo-trace.png: plays the demo into Phoenix, checks what Phoenix has made of it, takes a picture of its page.
# Usage: docs/picture.sh [PROGRAM] [OUT]   by default target/release/fi-hook-to-otlp and docs/demo-trace.png
#
# Needs python3 (3.11 or newer, with venv), curl and Chromium. Phoenix goes into the user's cache folder, outside the
# checkout, and is found there by the next run. About 2 minutes the first time, half a minute later.
set -euo pipefail

phoenix=20.26.1
window=1520,900
most_bytes=300000

fail() {
  echo "docs/picture.sh: $*" >&2
  exit 1
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$here/../target/release/fi-hook-to-otlp}
out=${2:-$here/demo-trace.png}
[ -x "$program" ] || fail "there is no program at $program: cargo build --release --locked"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  fail "no Chromium: on Debian install chromium and fonts-dejavu-core"

# A venv is moved into its place when it is whole: an interrupted pip must not be taken for one.
venv=${XDG_CACHE_HOME:-$HOME/.cache}/fi-hook-to-otlp-e2e/phoenix-$phoenix
if [ ! -x "$venv/bin/python" ]; then
  echo "docs/picture.sh: installing Phoenix into $venv" >&2
  mkdir -p "$(dirname "$venv")"
  temp=$(mktemp -d "$venv.XXXXXX")
  python3 -m venv "$temp" || fail "python3 -m venv failed: on Debian install python3-venv"
  "$temp/bin/python" -m pip install -q --disable-pip-version-check "arize-phoenix==$phoenix" || fail "pip failed"
  mv "$temp" "$venv"
fi

work=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

read -r http grpc < <("$venv/bin/python" -c '
import socket
taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[each.getsockname()[1] for each in taken])')
origin=http://127.0.0.1:$http

# A clean environment: nothing of the caller's may go into the picture, or anywhere.
env -i HOME="$work" PATH="$PATH" \
  PHOENIX_HOST=127.0.0.1 PHOENIX_PORT="$http" PHOENIX_GRPC_PORT="$grpc" \
  PHOENIX_SQL_DATABASE_URL=sqlite:///:memory: PHOENIX_WORKING_DIR="$work/phoenix" \
  PHOENIX_TELEMETRY_ENABLED=false PHOENIX_ALLOW_EXTERNAL_RESOURCES=false \
  PHOENIX_DISABLE_AGENT_ASSISTANT=true PHOENIX_ENABLE_MCP_SERVER=false \
  "$venv/bin/python" -m phoenix.server.main serve >"$work/phoenix.log" 2>&1 &
server=$!

for ((i = 0; i < 900; i++)); do
  curl -sf -o /dev/null "$origin/healthz" && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
curl -sf -o /dev/null "$origin/healthz" || { cat "$work/phoenix.log" >&2; fail "Phoenix did not become ready"; }

project=antigravity-sessions
env -i HOME="$work" PATH=/usr/bin:/bin OTEL_EXPORTER_OTLP_ENDPOINT="$origin" "$program" demo | tee "$work/demo.txt"
trace=$(sed -n 's/^trace \([0-9a-f]\{32\}\).*/\1/p' "$work/demo.txt")
[ -n "$trace" ] || fail "the demo names no trace"

# What Phoenix has made of it: it must be the demo's tree, with kinds, session and the one error.
"$venv/bin/python" - "$origin" "$project" "$trace" <<'PYTHON'
import collections, json, sys, time, urllib.request

origin, project, trace = sys.argv[1:]
url = f"{origin}/v1/projects/{project}/spans?trace_id={trace}&limit=100"
for _ in range(100):
    with urllib.request.urlopen(url) as answer:
        spans = json.load(answer)["data"]
    if len(spans) == 13:
        break
    time.sleep(0.1)

def count(of):
    return dict(collections.Counter(of(span) for span in spans))

found = {
    "kinds": count(lambda span: span["span_kind"]),
    "status": count(lambda span: span["status_code"]),
    "sessions": len(count(lambda span: span["attributes"].get("session.id"))),
    "models": len(count(lambda span: span["attributes"].get("llm.model_name")) .keys() - {None}),
    "roots": sum(span["parent_id"] is None for span in spans),
    "failed": [span["name"] for span in spans if span["status_code"] == "ERROR"],
}
wanted = {
    "kinds": {"CHAIN": 1, "AGENT": 2, "LLM": 6, "TOOL": 4},
    "status": {"OK": 12, "ERROR": 1},
    "sessions": 1,
    "models": 1,
    "roots": 1,
    "failed": ["run_command"],
}
wrong = {name: found[name] for name in wanted if found[name] != wanted[name]}
sys.exit(f"docs/picture.sh: Phoenix shows {wrong}" if wrong else 0)
PYTHON

id=$(curl -sf "$origin/v1/projects/$project" | "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["data"]["id"])')
# Its own messages (no bus, no keyring) say nothing about the picture.
"$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" \
  --window-size="$window" --virtual-time-budget=15000 --screenshot="$work/trace.png" \
  "$origin/projects/$id/traces/$trace" >"$work/browser.log" 2>&1 || { cat "$work/browser.log" >&2; fail "no picture"; }
size=$(wc -c <"$work/trace.png")
[ "$size" -le "$most_bytes" ] || fail "the picture has $size bytes, more than $most_bytes: make the window smaller"
mv "$work/trace.png" "$out"
echo "docs/picture.sh: $out, $size bytes" >&2
