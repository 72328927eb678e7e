#!/usr/bin/env bash
# The release artifact must be static and not PIE: start-up is most of what a hook costs, and a RUSTFLAGS in the
# environment silently turns it into a slower one. So does a hook.ld whose patterns hit nothing any more.
set -euo pipefail
binary=${1:?usage: artifact.sh BINARY}
type=$(readelf -h "$binary" | sed -n 's/^ *Type: *\([A-Z]*\).*/\1/p')
[ "$type" = EXEC ] || { echo "$binary: ELF type $type, wanted EXEC (not PIE)" >&2; exit 1; }
if readelf -l "$binary" | grep -q INTERP; then
    echo "$binary: asks for a dynamic loader, wanted static" >&2
    exit 1
fi
if readelf -d "$binary" | grep -q NEEDED; then
    echo "$binary: needs shared libraries, wanted static" >&2
    exit 1
fi
if readelf -S "$binary" | grep -q '\.symtab'; then
    echo "$binary: not stripped" >&2
    exit 1
fi
together=$(readelf -SW "$binary" | sed -n 's/.* \.text\.hook  *PROGBITS  *[0-9a-f]*  *[0-9a-f]*  *\([0-9a-f]*\) .*/\1/p')
if [ $((16#${together:-0})) -lt 450000 ]; then
    echo "$binary: the code of a hook does not lie together: look at the patterns of hook.ld" >&2
    exit 1
fi
"$binary" --version
