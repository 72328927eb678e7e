#!/usr/bin/env bash
# Builds Jaeger from the Go modules pinned in go.mod and go.sum.
# Usage: build.sh [OUT]   prints the path of the binary, and nothing else, on standard output
#
# The default OUT lies outside the checkout and is named after go.sum, so one pin is built once on a machine.
set -euo pipefail

package=github.com/jaegertracing/jaeger/cmd/jaeger
version=1.76.0

fail() {
  echo "jaeger/build.sh: $*" >&2
  exit 1
}

go_sum_hash() {
  if command -v sha256sum >/dev/null; then
    sha256sum <go.sum
  else
    shasum -a 256 <go.sum
  fi
}

cd "$(dirname "${BASH_SOURCE[0]}")" || fail "could not enter its own folder"

if [ $# -gt 1 ]; then
  fail "expected at most one argument, the path of the binary to write"
elif [ $# -eq 1 ]; then
  case $1 in
    /*) out=$1 ;;
    *) out=$OLDPWD/$1 ;;
  esac
else
  hash=$(go_sum_hash) || fail "could not hash go.sum"
  out=${XDG_CACHE_HOME:-$HOME/.cache}/fi-hook-to-otlp-e2e/jaeger-$version-${hash:0:16}/jaeger
fi

# Running it also tells a binary of an older pin, or of another kind of machine, from the one wanted.
if [ -x "$out" ] && "$out" version 2>/dev/null | grep -q "\"v$version\""; then
  echo "$out"
  exit 0
fi

command -v go >/dev/null || fail "go is not on the PATH; install Go 1.26"
mkdir -p "$(dirname "$out")" || fail "could not create the folder of $out"
temp=$(mktemp "$out.XXXXXX") || fail "could not write beside $out"
trap 'rm -f "$temp"' EXIT

echo "jaeger/build.sh: building Jaeger $version; the first time takes minutes" >&2
# The caller's Go settings must not change what is built.
export GOFLAGS='' GOWORK=off CGO_ENABLED=0
stamp=github.com/jaegertracing/jaeger/internal/version.latestVersion=v$version
go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w -X $stamp" -o "$temp" "$package" >&2 ||
  fail "go build failed (see above); the first time it needs the Go module proxy"
chmod 755 "$temp"
mv -f "$temp" "$out" || fail "could not rename the binary to $out"
echo "$out"
