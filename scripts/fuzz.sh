#!/usr/bin/env bash
# Replays the corpora, then fuzzes every target, or the named ones, each for SECONDS:
#   fuzz.sh SECONDS [TARGET...]
# The stable compiler suffices: its LLVM counts coverage, and libFuzzer is a crate. The variable RUNS limits the inputs of a target.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1 runs=${RUNS:--1}
shift
host=$(rustc -vV | sed -n 's/^host: //p')
folder=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
programs=$folder/$host/release
# --target keeps these flags from build scripts and macros.
export RUSTFLAGS="--cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
-C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
-C llvm-args=-sanitizer-coverage-trace-compares"
"${CARGO:-cargo}" build --release --locked --manifest-path fuzz/targets/Cargo.toml --target "$host" --target-dir "$folder"

# Prints the options of a target: the most bytes of an input, and the dictionary of its words.
options() {
    case $1 in
    query_* | evaluation_keys | packed_words | fields | range | server_url | keys_file) echo -max_len=512 ;;
    answers | queries) echo -max_len=1024 ;;
    sqlite | compressed) echo -max_len=8192 ;;
    descriptor | problem | session | snapshot | build_state) echo -max_len=4096 -dict=fuzz/descriptor.dict ;;
    *) echo -max_len=4096 ;;
    esac
}

mkdir -p fuzz/artifacts
[ $# -gt 0 ] || set -- $(cd fuzz/targets/src/bin && ls -- *.rs | sed 's/\.rs$//')
failed=
for target; do
    log=$folder/$target.log found=$folder/corpus/$target
    mkdir -p "$found"
    limits=(-rss_limit_mb=512 -timeout=10 -artifact_prefix="fuzz/artifacts/$target-" $(options "$target"))
    if "$programs/$target" "${limits[@]}" -runs=0 "fuzz/corpus/$target" >"$log" 2>&1 &&
        "$programs/$target" "${limits[@]}" -max_total_time="$seconds" -runs="$runs" "$found" "fuzz/corpus/$target" >>"$log" 2>&1; then
        echo "fuzz: $target: $(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 inputs in \2 s/p' "$log" | tail -n 1)"
    else
        grep -v '^#' "$log" | tail -n 20
        echo "fuzz: $target failed, see $log. Once more: $programs/$target INPUT, the input that the log names" >&2
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || { echo "fuzz: failed:$failed" >&2 && exit 1; }
