// The common part of the kernels of `rlwe_fold`. At every point, they compute a product of matrices modulo the limb's prime:
//     out[query][column] = sum over rows of db[row][column] selector[query][row]
// A query's selector is two polynomials (a, b) for each row. So B queries fold 2 B polynomials: poly = 2 query + (0 for a, 1 for
// b).
//
// A pass takes some points of up to 64 queries:
//   1. `rlwe_fold_selectors` transposes the selectors to `[point][row tile][poly][32 rows]`;
//   2. `rlwe_fold_imad_*`, `rlwe_fold_mma_*` or `rlwe_fold_*_hopper` multiplies to sums `[point][poly][column]`, with columns
//      padded like the database's;
//   3. `rlwe_fold_results` transposes the sums to the ciphertexts.
// In the arrays between these kernels, points are counted from the first point of the launch.
#pragma once

#include "modular.cuh"
#include "ntt_tiles.cuh"
#include "ring.cuh"

constexpr uint32_t MAX_PASS = 64;
constexpr uint32_t RLWE_POLYS = 2;

// A prime with the constants of a fold. Mirrored by `FoldPrime` in src/ring/rlwe_fold.rs.
template <class P>
struct FoldPrime {
    P prime;
    uint2 scale[3]; // 2^8, 2^16, 2^24 with their Shoup quotients; for a WidePrime as constant_mul takes them
    uint32_t limit; // the largest multiple of p up to 2^31; not for a WidePrime
    uint32_t reserved;
};
static_assert(sizeof(FoldPrime<Prime>) == 48 && offsetof(FoldPrime<Prime>, scale) == 16, "the layout of FoldPrime");

// Passed by value as a kernel argument. Mirrored by `FoldRing` in src/ring/rlwe_fold.rs.
template <class P>
struct FoldRingOf {
    FoldPrime<P> primes[MAX_LIMBS];
    uint32_t log_degree;
    uint32_t reserved;
};
using FoldRing = FoldRingOf<Prime>;
using WideFoldRing = FoldRingOf<WidePrime>;
static_assert(sizeof(FoldRing) == 200 && sizeof(WideFoldRing) == 200, "the layout of FoldRing");

// Device addresses of the ciphertexts of each query of a pass. Mirrored by `QueryPointers` in src/ring/rlwe_fold.rs.
struct QueryPointers {
    uint32_t* query[MAX_PASS];
};
static_assert(sizeof(QueryPointers) == 512, "the layout of QueryPointers");

// The number of points of a polynomial, and the range of this launch. Mirrored by `PassPoints` in src/ring/rlwe_fold.rs.
struct PassPoints {
    uint32_t all, first, count;
};
static_assert(sizeof(PassPoints) == 12, "the layout of PassPoints");
