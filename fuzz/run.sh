#!/usr/bin/env bash
# Builds every fuzz target and runs each for so many seconds; with names after that, only those. Needs a nightly compiler
# and cargo-fuzz, which .ci/run installs. What is found is kept in fuzz/artifacts. No address sanitizer: the code that is
# fuzzed has no `unsafe`, and SQLite alone would take minutes to build with it.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-60}
shift || true
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
    mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | grep -v '^fuzz$')
fi

# What tests and examples have is where a target begins. A payload goes after the size of its pieces.
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target"
done
if [ -d corpus/payload ]; then
    for file in ../tests/payloads/*.json; do
        { printf '\007'; cat "$file"; } >"corpus/payload/$(basename "$file")"
    done
fi
if [ -d corpus/redaction ]; then cp ../tests/redaction/secrets/* ../tests/redaction/harmless/* corpus/redaction/; fi
if [ -d corpus/spool_record ]; then cp seeds/spool_record/* corpus/spool_record/; fi
if [ -d corpus/settings_file ]; then
    for file in ../examples/*/env; do cp "$file" "corpus/settings_file/$(basename "$(dirname "$file")")"; done
fi

for target in "${targets[@]}"; do cargo +nightly fuzz build --sanitizer none --fuzz-dir . "$target"; done
for target in "${targets[@]}"; do
    echo "=== $target for ${seconds}s"
    cargo +nightly fuzz run --sanitizer none --fuzz-dir . "$target" -- -max_total_time="$seconds" -max_len=6000 -timeout=20 -verbosity=0 -print_final_stats=1
done
