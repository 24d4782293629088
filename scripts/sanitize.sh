#!/usr/bin/env bash
# Runs the tests of emulated kernels whose names contain FILTER, with the C++ code under sanitizers of g++:
#   sanitize.sh SANITIZERS [FILTER]     e.g. address,undefined or thread
# The Rust code is not instrumented.
set -euo pipefail
sanitizers=$1 filter=${2-small_}
folder=${CARGO_TARGET_DIR:-$PWD/target}/sanitize

export HUSH_SANITIZERS=$sanitizers
export CARGO_PROFILE_DEV_DEBUG=1 # what is suppressed has the names of files
# A sanitizer must be loaded before all other libraries.
case $sanitizers in
address*) runtime=libasan.so ;;
thread) runtime=libtsan.so ;;
*) echo "sanitize.sh: address,undefined or thread, not '$sanitizers'" >&2 && exit 2 ;;
esac
runner="env LD_PRELOAD=$("${CXX:-g++}" -print-file-name=$runtime)"
host=$(rustc -vV | sed -n 's/^host: //p')
if [[ $sanitizers == thread ]]; then
    # The sanitizer cannot see how Rust synchronises, so races with Rust frames are suppressed. Threads of kernels have no Rust frames.
    mkdir -p "$folder"
    echo 'race:.rs' >"$folder/suppressions"
    export TSAN_OPTIONS="suppressions=$folder/suppressions ${TSAN_OPTIONS:-}" RUST_TEST_THREADS=1
    # Older sanitizers fail if the kernel randomises addresses widely.
    if setarch -R true 2>/dev/null; then
        runner="setarch -R $runner"
    fi
fi
host=${host^^}
export "CARGO_TARGET_${host//-/_}_RUNNER=$runner"
tests() {
    "${CARGO:-cargo}" test --locked -p hush-cuda --tests --features emulator --target-dir "$folder" -- "$filter" "$@"
}
tests --list | grep ': test$' >/dev/null || { echo "sanitize.sh: no test has '$filter' in its name" >&2 && exit 2; }
tests
