// Conversion between the order of slots and the order of the chain. Every odd number modulo 2N is (-1)^h 5^a for one h < 2 and
// a < N / 2. Let e = (-1)^h 5^a be the exponent of slot v. The automorphism (c, k), X -> X^((-1)^c 5^k), takes slot v from the slot
// of the exponent (-1)^(h + c) 5^(a + k): row v of a matrix is rotated by a.
//
// A block of 256 threads has a band of BAND rows v, neighbours in slot order, of one limb. Column v of the rotated matrix is
// written in parts of 32 bytes. Row (c, k) of the rotated matrix is row c N / 2 + k.
#include "prelude.cuh"

constexpr uint32_t LIMBS = 2;
constexpr uint32_t BAND = 8;
constexpr uint32_t THREADS = 256;

namespace {

// Returns the words of a row of the band in shared memory: a vector of padding puts neighbours in a column in different banks.
HUSH_DEVICE uint32_t band_stride(uint32_t degree) {
    return degree + 4;
}

// The band of a block: BAND rows from `first` on, modulo one limb of one hint.
struct Band {
    uint32_t degree, first, limb;
    size_t hint;
};

HUSH_DEVICE Band block_band(uint32_t degree) {
    return {degree, blockIdx.x * BAND, blockIdx.y, blockIdx.z};
}

// Returns the offset of a row of a matrix.
HUSH_DEVICE size_t row_start(const Band& band, uint32_t row) {
    return ((band.hint * band.degree + row) * LIMBS + band.limb) * band.degree;
}

// Calls move(index in shared memory, index in the rotated matrix) for all words of the band. `slots` has the slot of (-1)^half 5^a
// at half N + a, a < N; `places` has half N + a, a < N / 2, of each slot.
template <class Move>
HUSH_DEVICE void for_each_rotated(const Band& band, const uint32_t* slots, const uint32_t* places, const Move& move) {
    const uint32_t n = band.degree, within = threadIdx.x % BAND, place = places[band.first + within];
    const uint32_t half = place / n, a = place % n;
    for (uint32_t row = threadIdx.x / BAND; row < n; row += THREADS / BAND) {
        const uint32_t sign = row / (n / 2), k = row % (n / 2);
        const uint32_t slot = slots[(1 ^ half ^ sign) * n + a + k];
        move(within * band_stride(n) + slot, row_start(band, row) + band.first + within);
    }
}

// Calls move(index in shared memory, index in the rows) for all words of the band.
template <class Move>
HUSH_DEVICE void for_each_word(const Band& band, const Move& move) {
    for (uint32_t row = 0; row < BAND; row++) {
        for (uint32_t i = threadIdx.x; i < band.degree; i += THREADS) {
            move(row * band_stride(band.degree) + i, row_start(band, band.first + row) + i);
        }
    }
}

} // namespace

// Rotates the rows: rotated[(c, k)][v] = rows[v][slot of -(-1)^c 5^k e_v]. Block (band, limb, hint).
extern "C" __global__ void __launch_bounds__(THREADS)
    chain_rotate(uint32_t* rotated, const uint32_t* rows, const uint32_t* slots, const uint32_t* places,
                 uint32_t degree) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const Band band = block_band(degree);
    for_each_word(band, [&](uint32_t to, size_t from) { shared[to] = rows[from]; });
    __syncthreads();
    for_each_rotated(band, slots, places, [&](uint32_t from, size_t to) { rotated[to] = shared[from]; });
}
HUSH_KERNEL(chain_rotate)

// Rotates the rows back: rows[v][slot of -(-1)^c 5^k e_v] = rotated[(c, k)][v]. Evaluation, transposed, is the inverse transform at
// 1/X times N: hence the sign here as well. Block (band, limb, hint).
extern "C" __global__ void __launch_bounds__(THREADS)
    chain_rotate_back(uint32_t* rows, const uint32_t* rotated, const uint32_t* slots, const uint32_t* places,
                      uint32_t degree) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const Band band = block_band(degree);
    for_each_rotated(band, slots, places, [&](uint32_t to, size_t from) { shared[to] = rotated[from]; });
    __syncthreads();
    for_each_word(band, [&](uint32_t from, size_t to) { rows[to] = shared[from]; });
}
HUSH_KERNEL(chain_rotate_back)
