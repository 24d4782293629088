// Between the order of slots and that of the chain. Every odd number modulo 2N is (-1)^h 5^a for one h < 2 and
// a < N / 2. So if e = (-1)^h 5^a is the exponent of slot v, the automorphism (c, k), X -> X^((-1)^c 5^k), takes the slot
// v from that of the exponent (-1)^(h + c) 5^(a + k): row v of a matrix is rotated by a.
//
// A block has a band of BAND rows v, neighbours in slot order, of one limb: column v of the rotated matrix is written
// in parts of 32 bytes. 256 threads; the rows of the rotated matrix are (c, k), c N / 2 + k.
#include "prelude.cuh"

constexpr uint32_t LIMBS = 2;
constexpr uint32_t BAND = 8;
constexpr uint32_t THREADS = 256;

namespace {

// Rows of the band in shared memory are a vector longer, so that neighbours in a column have different banks.
HUSH_DEVICE uint32_t band_stride(uint32_t degree) {
    return degree + 4;
}

// The part of a rotated matrix and of its rows that a block has.
struct Band {
    uint32_t degree, first, limb;
    size_t hint;
};

HUSH_DEVICE Band block_band(uint32_t degree) {
    return {degree, blockIdx.x * BAND, blockIdx.y, blockIdx.z};
}

// Where a row of a matrix begins.
HUSH_DEVICE size_t row_start(const Band& band, uint32_t row) {
    return ((band.hint * band.degree + row) * LIMBS + band.limb) * band.degree;
}

// Calls move(at in shared memory, at in the rotated matrix) for all words of the band. `slots` has the slot of
// (-1)^half 5^a at half N + a, a < N; `places` has half N + a, a < N / 2, of each slot.
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

// Calls move(at in shared memory, at in the rows) for all words of the band.
template <class Move>
HUSH_DEVICE void for_each_word(const Band& band, const Move& move) {
    for (uint32_t row = 0; row < BAND; row++) {
        for (uint32_t i = threadIdx.x; i < band.degree; i += THREADS) {
            move(row * band_stride(band.degree) + i, row_start(band, band.first + row) + i);
        }
    }
}

} // namespace

// rotated[(c, k)][v] = rows[v][slot of -(-1)^c 5^k e_v]. Block (band, limb, hint).
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

// The way back: rows[v][slot of -(-1)^c 5^k e_v] = rotated[(c, k)][v]. Evaluation, transposed, is the inverse transform
// at 1/X but for a factor N: hence the sign here as well.
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
