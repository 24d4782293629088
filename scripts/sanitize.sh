#!/usr/bin/env bash
# Runs the tests of emulated kernels whose names have FILTER in them with the C++ under sanitizers of g++:
#   sanitize.sh SANITIZERS [FILTER]     e.g. address,undefined or thread
# Rust is not instrumented. The target is named so that flags are for the tests and not for build scripts.
set -euo pipefail
sanitizers=$1 filter=${2-small_}
target=x86_64-unknown-linux-gnu
folder=${CARGO_TARGET_DIR:-$PWD/target}/sanitize-${sanitizers%%,*}

export CXXFLAGS_x86_64_unknown_linux_gnu="-fsanitize=$sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"
# rustc leaves out the compiler's own libraries unless told otherwise, and the sanitizers' with them.
export RUSTFLAGS="-Cdefault-linker-libraries=yes -Clink-arg=-fsanitize=$sanitizers"
if [[ $sanitizers == thread ]]; then
    # It cannot see how Rust synchronises. Threads of kernels have stacks of their own, where there is no Rust.
    mkdir -p "$folder"
    echo 'race:.rs' >"$folder/suppressions"
    export TSAN_OPTIONS="suppressions=$folder/suppressions ${TSAN_OPTIONS:-}" RUST_TEST_THREADS=1
    # Older ones cannot run where the kernel moves programs far about.
    if setarch -R true 2>/dev/null; then
        export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="setarch -R"
    fi
fi
"${CARGO:-cargo}" test --locked -p hush-cuda --tests --features emulator --target "$target" --target-dir "$folder" -- "$filter"
