#!/bin/sh
# Tests the emulator: clean kernels pass, and the bugs planted in others are found, plainly and under the sanitizers.
# Usage: test.sh [build directory]. CXX chooses the compiler.
set -eu
cd "$(dirname "$0")"
build=${1:-$(mktemp -d)}
mkdir -p "$build"

compile() { # name, flags...
    name=$1
    shift
    rm -f "$build/$name"-*.o
    for source in *.cpp tests/*.cpp ../kernels/conformance*.cu tests/*.cu; do
        object=$build/$name-$(basename "$source").o
        echo "${CXX:-g++} -std=c++17 -O2 -g1 -fPIC -Wall -Wextra -Werror -Wno-unknown-pragmas -fno-strict-aliasing -I../kernels $* \
            -x c++ -c $source -o $object"
    done | xargs -P "$(nproc)" -d '\n' -n 1 sh -c
    "${CXX:-g++}" "$@" "$build/$name"-*.o -o "$build/$name" -pthread
}

# Older ThreadSanitizers cannot run where the kernel moves programs far about.
unmoved=
if setarch -R true 2>/dev/null; then unmoved="setarch -R"; fi

clean() { # name
    $unmoved "$build/$1" clean 2>"$build/log" || { cat "$build/log"; exit 1; }
}

fails() { # name, words of every report (none: a wrong result is enough), kernels...
    name=$1 words=$2
    shift 2
    for kernel in "$@"; do
        if $unmoved "$build/$name" planted "$kernel" 2>"$build/log" ||
            { [ -n "$words" ] && ! grep -qE "$words" "$build/log"; }; then
            echo "not found ($name): $kernel"
            cat "$build/log"
            exit 1
        fi
    done
    echo "$name: $# planted bugs found"
}

compile plain
clean plain
fails plain "" missing_copy_wait hang mixed_collectives missing_bulk_wait uninitialized_mbarrier missing_product_fence \
    missing_product_wait unbegun_block missing_store_wait ended_block

compile address -fsanitize=address,undefined -fno-sanitize-recover=all
clean address
fails address "AddressSanitizer|runtime error" global_overflow shared_overflow shared_underflow misaligned_vector

export TSAN_OPTIONS=halt_on_error=1
compile thread -fsanitize=thread
clean thread
fails thread "ThreadSanitizer: data race" missing_barrier missing_second_barrier missing_warp_barrier race_between_blocks early_refill \
    missing_proxy_fence missing_product_barrier early_multicast
