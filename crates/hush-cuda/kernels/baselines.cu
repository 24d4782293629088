// Folds as they are without tensor cores and without tiles: baselines of `hush-bench gpu-steps`, which no step uses. They stand for
// the first bars of VIPIR's figure 7 and GPIR's figure 10.
#include "gadget.cuh"

namespace {

constexpr uint32_t QUERIES = 8;      // of a thread of baseline_lwe_fold
constexpr uint32_t RING_QUERIES = 4; // of a thread of baseline_rlwe_fold, with two polynomials each

} // namespace

// Writes out [query][row]: the sum over columns of db [column][row], bytes with signs, times queries [query][column], modulo 2^32.
// Grid: [rows / 4 threads, rounded up; queries / QUERIES, rounded up]. A thread has four rows.
extern "C" __global__ void __launch_bounds__(256)
    baseline_lwe_fold(uint32_t* out, const uint32_t* db, const uint32_t* queries, uint32_t rows, uint32_t columns,
                      uint32_t count) {
    const uint32_t four = blockIdx.x * blockDim.x + threadIdx.x;
    if (four >= rows / 4) return;
    const uint32_t first = blockIdx.y * QUERIES;
    const uint32_t mine = min(QUERIES, count - first);
    uint32_t sums[QUERIES][4] = {};
    for (uint32_t column = 0; column < columns; column++) {
        const uint32_t bytes = __ldg(db + size_t(column) * (rows / 4) + four);
#pragma unroll
        for (uint32_t query = 0; query < QUERIES; query++) {
            if (query >= mine) break;
            const uint32_t word = __ldg(queries + size_t(first + query) * columns + column);
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) sums[query][i] += word * uint32_t(int32_t(int8_t(bytes >> 8 * i)));
        }
    }
#pragma unroll
    for (uint32_t query = 0; query < QUERIES; query++) {
        if (query >= mine) break;
        store_vector(out + size_t(first + query) * rows, four,
                     make_uint4(sums[query][0], sums[query][1], sums[query][2], sums[query][3]));
    }
}
HUSH_KERNEL(baseline_lwe_fold)

// Writes out [query][column][a, b][limb][slot]: the sum over rows of db [row][column][limb][slot] times selectors of each query,
// [row][a, b][limb][slot]. Nothing is turned over: a thread reads every row where it lies.
// Grid: [slots of all limbs / threads, rounded up; columns; queries / RING_QUERIES, rounded up].
extern "C" __global__ void __launch_bounds__(256)
    baseline_rlwe_fold(uint32_t* out, const uint32_t* db, const uint32_t* const* selectors, uint32_t rows,
                       uint32_t count, RingView ring) {
    const uint32_t slot = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t poly = poly_words(ring);
    if (slot >= poly) return;
    const Prime prime = ring.primes[slot >> ring.log_degree];
    const uint32_t first = blockIdx.z * RING_QUERIES;
    const uint32_t mine = min(RING_QUERIES, count - first);
    uint64_t sums[RING_QUERIES][2] = {};
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t plaintext = __ldg(db + (size_t(row) * gridDim.y + blockIdx.y) * poly + slot);
#pragma unroll
        for (uint32_t query = 0; query < RING_QUERIES; query++) {
            if (query >= mine) break;
#pragma unroll
            for (uint32_t half = 0; half < 2; half++) {
                // A sum below p 2^32 and a product below p^2 are below p 2^33.
                uint64_t& sum = sums[query][half];
                add_product(sum, plaintext, __ldg(selectors[first + query] + (2 * row + half) * poly + slot), prime.p);
                sum = uint64_t(fold_mod(uint32_t(sum >> 32), prime.p)) << 32 | uint32_t(sum);
            }
        }
    }
#pragma unroll
    for (uint32_t query = 0; query < RING_QUERIES; query++) {
        if (query >= mine) break;
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const size_t ciphertext = size_t(first + query) * gridDim.y + blockIdx.y;
            out[(2 * ciphertext + half) * poly + slot] = mont_mul(mont_reduce(sums[query][half], prime), prime.r2, prime);
        }
    }
}
HUSH_KERNEL(baseline_rlwe_fold)
