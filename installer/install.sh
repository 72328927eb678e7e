#!/bin/sh
# Puts the program in its place and lets it register itself: builds it or takes it, copies, renames, runs `install`.
# Knows nothing of hooks.json: that is the program's own business. POSIX sh.
set -eu

name=fi-hook-to-otlp

usage() {
    cat <<'TEXT'
usage: installer/install.sh [DIR] [--binary PATH] [--bin-dir D] [--global] [other flags of `fi-hook-to-otlp install`]

  DIR            the folder that agy is started in (default: the current one)
  --binary PATH  take this program instead of building one
  --bin-dir D    put the program there, an absolute path (default: ~/.local/bin)
  --global       register for all folders of this user
  --vendor       put the program into DIR/.agents/fi-hook-to-otlp instead
  --dry-run      say what would be done
TEXT
}

say() { printf '%s\n' "$*" >&2; }
die() { say "install.sh: $*"; exit 1; }
misuse() { say "install.sh: $*"; usage >&2; exit 2; }

# What is given to `install` in the end stays in "$@": each argument is taken from the front and, if it is not ours, put
# back at the end. So any character may stand in it.
binary=
bin_dir=
vendor=
dry_run=
print=
left=$#
while [ "$left" -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    case $word in
        --binary | --bin-dir | --pre-tool-reply)
            [ "$left" -gt 0 ] || misuse "$word needs a value"
            value=$1
            shift
            left=$((left - 1))
            ;;
        --binary=* | --bin-dir=* | --pre-tool-reply=*)
            value=${word#*=}
            word=${word%%=*}
            ;;
        *) value= ;;
    esac
    case $word in
        -h | --help)
            usage
            exit 0
            ;;
        --binary)
            [ -n "$value" ] || misuse "--binary needs a value"
            binary=$value
            continue
            ;;
        --bin-dir)
            case $value in
                /*) bin_dir=${value%/} ;;
                *) die "--bin-dir $value: give an absolute path" ;;
            esac
            set -- "$@" "--bin-dir=$value"
            ;;
        --pre-tool-reply) set -- "$@" "--pre-tool-reply=$value" ;;
        *) set -- "$@" "$word" ;;
    esac
    case $word in
        --vendor) vendor=yes ;;
        --dry-run) dry_run=yes ;;
        --print) print=yes ;;
    esac
done

if [ -z "$bin_dir" ] && [ -z "$vendor$print" ]; then
    [ -n "${HOME:-}" ] || die "HOME is not set: name a folder with --bin-dir"
    bin_dir=$HOME/.local/bin
fi

# What `install` would say depends on a program that is not in its place yet, unless it brings itself along.
if [ -n "$dry_run" ] && [ -z "$vendor" ]; then
    say "would put ${binary:-a newly built program} at $bin_dir/$name, then run: $name install" "$@"
    exit 0
elif [ -n "$dry_run" ] && [ -z "$binary" ]; then
    say "would build $name, then run: $name install" "$@"
    exit 0
fi

# Where this script lies, and with it the sources.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=
cleanup() { [ -z "$work" ] || rm -f -- "$work"; }
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

has() { command -v "$1" >/dev/null 2>&1; }

# The static target can be built: its standard library is there, or comes without a question, and so is a C compiler.
can_build_static() {
    sysroot=$(rustc --print sysroot)
    if [ ! -d "$sysroot/lib/rustlib/$1/lib" ]; then
        has rustup && rustup target add "$1" >&2 || return 1
    fi
    has musl-gcc || has "${1%%-*}-linux-musl-gcc"
}

# Builds in the folder of the sources, where cargo finds its settings; the caller's RUSTFLAGS would replace those.
cargo_build() {
    (
        cd -- "$root" || exit
        unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
        cargo build --release --locked --bin "$name" --target-dir "$root/target" "$@" >&2
    )
}

build() {
    if ! has cargo || ! has rustc; then
        die "no cargo here: install Rust (https://rustup.rs), or give a program with --binary"
    fi
    host=$(rustc -vV | sed -n 's/^host: //p')
    case $host in
        *-linux-*)
            static=${host%%-*}-unknown-linux-musl
            if can_build_static "$static" && cargo_build --target "$static"; then
                binary=$root/target/$static/release/$name
                return
            fi
            say "No static build is possible here (for one: rustup target add $static, and the package musl-tools or musl)."
            say "Building a dynamic one: every hook then takes 3 to 4 times as long to start."
            ;;
    esac
    cargo_build || die "the build failed: see above"
    binary=$root/target/release/$name
}

[ -n "$binary" ] || build
case $binary in
    /*) ;;
    *) binary=./$binary ;;
esac
[ -f "$binary" ] || die "there is no $binary"

if [ -n "$vendor$print" ]; then
    [ -x "$binary" ] || die "$binary is not executable: chmod +x it"
    "$binary" install "$@"
    exit
fi

# Beside its place and renamed: at no moment is a half program there, or none.
target=$bin_dir/$name
[ ! -d "$target" ] || die "$target is a folder: remove it, or name another folder with --bin-dir"
mkdir -p -- "$bin_dir" || die "cannot make $bin_dir: name another folder with --bin-dir"
work=$bin_dir/.$name.$$
cp -- "$binary" "$work" || die "cannot write into $bin_dir: name another folder with --bin-dir"
chmod 755 "$work"
case $("$work" --version 2>/dev/null || :) in
    "$name "*) ;;
    *) die "$binary does not run here as $name: is it for another machine?" ;;
esac
mv -f -- "$work" "$target"
work=
"$target" install "$@"
