// The product of `rlwe_fold` on CUDA cores, for up to two queries. Products of 64 bits are summed with late reduction in 64 bits,
// or in 96 bits modulo primes of 32 bits.
#include "rlwe_fold.cuh"

// The lanes of a unit, which loads a line of 128 bytes: four rows in each lane.
constexpr uint32_t UNIT_LANES = LINE_CHUNKS;
constexpr uint32_t UNITS = 32;
constexpr uint32_t IMAD_THREADS = UNITS * UNIT_LANES;
// The number of steps whose lines a unit loads ahead.
constexpr uint32_t AHEAD = 4;

// Adds two products to the sum, and subtracts limit 2^32 if the sum then stays non-negative: the sum stays below limit 2^32. The
// limit is the largest multiple of p up to 2^31. Two products are below limit 2^32 as well, so everything fits 64 bits.
HUSH_DEVICE void add_products(uint64_t& sum, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1,
                              const FoldPrime<Prime>& modulus) {
    uint64_t all = sum + uint64_t(x0) * y0 + uint64_t(x1) * y1;
    uint32_t high = uint32_t(all >> 32);
    sum = uint64_t(min(high, high - modulus.limit)) << 32 | uint32_t(all);
}

HUSH_DEVICE uint32_t residue_of(uint64_t sum, const Prime& prime) {
    return reduce_64(sum, prime);
}

// A sum of fewer than 2^32 products of words. One more word, and one more addition for each product, cost less than a reduction.
struct WideSum {
    uint64_t low;
    uint32_t high;
};

HUSH_DEVICE void add_product(WideSum& sum, uint32_t x, uint32_t y) {
    unsigned __int128 all = (unsigned __int128)sum.low + uint64_t(x) * y;
    sum.low = uint64_t(all);
    sum.high += uint32_t(all >> 64);
}

HUSH_DEVICE void add_products(WideSum& sum, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1,
                              const FoldPrime<WidePrime>&) {
    add_product(sum, x0, y0);
    add_product(sum, x1, y1);
}

HUSH_DEVICE uint32_t residue_of(const WideSum& sum, const WidePrime& prime) {
    // 2^64 modulo p, in Montgomery form.
    uint32_t power = mont_mul(prime.r2, prime.r2, prime);
    return add_mod(reduce_64(sum.low, prime), mont_mul(sum.high, power, prime), prime.p);
}

// The type of a sum modulo a prime.
template <class P>
using Sum = typename std::conditional<std::is_same<P, Prime>::value, uint64_t, WideSum>::type;

template <class P>
HUSH_DEVICE void add_chunk(Sum<P>& sum, const uint4& x, const uint4& y, const FoldPrime<P>& modulus) {
    add_products(sum, x.x, y.x, x.y, y.y, modulus);
    add_products(sum, x.z, y.z, x.w, y.w, modulus);
}

// Returns the sum of `residue` over the eight lanes of a unit.
template <class Modulus>
HUSH_DEVICE uint32_t add_unit(uint32_t residue, Modulus p) {
#pragma unroll
    for (uint32_t lanes = 1; lanes < UNIT_LANES; lanes *= 2) {
        residue = add_mod(residue, __shfl_xor_sync(0xffffffff, residue, lanes), p);
    }
    return residue;
}

// Folds a tile of columns at one point in each block:
//     sums[poly][column] = sum over rows of db[row][column] selectors[row][poly]
// A block has 32 units of eight lanes, which stream the tile a line of 32 rows at a time, and COLUMNS lines of the same rows
// together. With COLUMNS = 2 (tiles of 64 columns), unit u has columns u and u + 32 of all rows. With COLUMNS = 1 (W <= 32
// columns), it has column u mod W of every 32/W-th row tile. Lanes keep sums of their four rows for every polynomial, and the units
// add them up at the end. The selectors of the point stay in shared memory.
//
// Dynamic shared memory: row tiles x POLYS x 128 bytes of selectors, then 32 x COLUMNS x POLYS words of sums.
// Grid: points x tiles. `polys` <= POLYS; the sums of further polynomials are never read.
template <uint32_t POLYS, uint32_t COLUMNS, class P>
HUSH_DEVICE void fold_imad(uint32_t* sums, const uint4* selectors, const NttTiles& db, const FoldRingOf<P>& ring,
                           uint32_t polys, uint32_t first_point) {
    HUSH_DYNAMIC_SHARED(uint4, shared);
    uint32_t* shared_sums = reinterpret_cast<uint32_t*>(shared + db.row_tiles * POLYS * LINE_CHUNKS);
    uint32_t point = blockIdx.x / db.tiles, tile = blockIdx.x % db.tiles;
    const FoldPrime<P>& modulus = ring.primes[(first_point + point) >> ring.log_degree];
    uint32_t width = 1u << db.log_width;

    const uint4* from = selectors + uint64_t(point) * db.row_tiles * polys * LINE_CHUNKS;
    for (uint32_t at = threadIdx.x; at < db.row_tiles * polys * LINE_CHUNKS; at += IMAD_THREADS) {
        uint32_t row_tile = at / (polys * LINE_CHUNKS);
        shared[row_tile * (POLYS - polys) * LINE_CHUNKS + at] = from[at];
    }
    __syncthreads();

    uint32_t unit = threadIdx.x / UNIT_LANES, lane = threadIdx.x % UNIT_LANES;
    uint32_t column = unit % width, first_tile = COLUMNS == 1 ? unit / width : 0;
    uint32_t step = COLUMNS == 1 ? UNITS / width : 1;
    uint32_t chunk = swizzled(lane, column);
    const uint4* lines = db.chunks + line_at(db, uint64_t(first_point) + point, 0, tile * width + column) + lane;
    Sum<P> acc[COLUMNS][POLYS] = {};
    for (uint32_t first = first_tile; first < db.row_tiles; first += AHEAD * step) {
        uint4 words[AHEAD][COLUMNS];
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; i++) {
            uint32_t row_tile = first + i * step;
            if (row_tile >= db.row_tiles) break;
#pragma unroll
            for (uint32_t c = 0; c < COLUMNS; c++) {
                words[i][c] = ptx::load_stream_16(lines + (row_tile * width + c * UNITS) * LINE_CHUNKS);
            }
        }
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; i++) {
            uint32_t row_tile = first + i * step;
            if (row_tile >= db.row_tiles) break;
#pragma unroll
            for (uint32_t poly = 0; poly < POLYS; poly++) {
                uint4 selector = shared[(row_tile * POLYS + poly) * LINE_CHUNKS + chunk];
#pragma unroll
                for (uint32_t c = 0; c < COLUMNS; c++) {
                    add_chunk(acc[c][poly], words[i][c], selector, modulus);
                }
            }
        }
    }

#pragma unroll
    for (uint32_t c = 0; c < COLUMNS; c++) {
#pragma unroll
        for (uint32_t poly = 0; poly < POLYS; poly++) {
            uint32_t sum = add_unit(residue_of(acc[c][poly], modulus.prime), modulus.prime.p);
            if (lane == 0) shared_sums[poly * UNITS * COLUMNS + c * UNITS + unit] = sum;
        }
    }
    __syncthreads();
    uint32_t* out = sums + (uint64_t(point) * polys * db.tiles + tile) * width;
    for (uint32_t at = threadIdx.x; at < polys * width; at += IMAD_THREADS) {
        uint32_t poly = at / width, sum = 0;
        for (uint32_t part = at % width; part < UNITS * COLUMNS; part += width) {
            sum = add_mod(sum, shared_sums[poly * UNITS * COLUMNS + part], modulus.prime.p);
        }
        out[uint64_t(poly) * db.tiles * width + at % width] = sum;
    }
}

// The kernels p2 and p4 are for one and two queries; c1 and c2 for tiles of up to 32 columns, and of 64.
#define HUSH_RLWE_FOLD_IMAD(name, Ring, ...)                                                 \
    extern "C" __global__ void __launch_bounds__(IMAD_THREADS)                               \
        name(uint32_t* sums, const uint4* selectors, NttTiles db, Ring ring, uint32_t polys, \
             PassPoints points) {                                                            \
        fold_imad<__VA_ARGS__>(sums, selectors, db, ring, polys, points.first);              \
    }                                                                                        \
    HUSH_KERNEL(name)

HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p2_c1, FoldRing, 2, 1)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p2_c1_wide, WideFoldRing, 2, 1)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p4_c1, FoldRing, 4, 1)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p4_c1_wide, WideFoldRing, 4, 1)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p2_c2, FoldRing, 2, 2)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p2_c2_wide, WideFoldRing, 2, 2)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p4_c2, FoldRing, 4, 2)
HUSH_RLWE_FOLD_IMAD(rlwe_fold_imad_p4_c2_wide, WideFoldRing, 4, 2)
