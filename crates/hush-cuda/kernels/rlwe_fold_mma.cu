// The product of `rlwe_fold` on tensor cores (rlwe_fold_classes.cuh).
#include "rlwe_fold_classes.cuh"

constexpr uint32_t MMA_THREADS = 256;
// The columns of a block, and the polynomials of a warp.
constexpr uint32_t BLOCK_COLUMNS = 128;
constexpr uint32_t WARP_POLYS = 16;
// The number of row tiles of the database that are in flight or in use.
constexpr uint32_t STAGES = 3;
constexpr uint32_t STAGE_BYTES = BLOCK_COLUMNS * LINE_BYTES;

// The operands of one block: POLY_WARPS x (8 / POLY_WARPS) warps of 16 polynomials x 16 POLY_WARPS columns.
template <uint32_t POLY_WARPS>
struct FoldMma {
    static constexpr uint32_t POLYS = WARP_POLYS * POLY_WARPS;
    static constexpr uint32_t COLUMN_TILES = POLY_WARPS; // of 16 columns, a warp
    static constexpr uint32_t MATRIX_BYTES = CLASSES * POLYS * LINE_BYTES;
    // Four rows of a polynomial are a unit of 16 bytes.
    static constexpr uint32_t UNITS = POLYS * LINE_CHUNKS;
    static constexpr uint32_t THREAD_UNITS = (UNITS + MMA_THREADS - 1) / MMA_THREADS;

    uint8_t* stages;         // [3][128 columns][128 bytes], swizzled
    uint8_t* matrices;       // [2][class][poly][128 bytes], swizzled
    const uint4* selectors;  // of the point, [row tile][all polynomials][32 rows], from the block's first polynomial on
    const uint4* db;         // of the point
    uint32_t all_polys, polys; // of the pass, of the block
    uint32_t row_tiles, log_width;
    uint32_t first_column, columns; // those of the block, padded as the database's

    // Starts the copies of row tile `row_tile` to its stage. Columns beyond the database are left unchanged.
    HUSH_DEVICE void load_stage(uint32_t row_tile) const {
        uint8_t* stage = stages + row_tile % STAGES * STAGE_BYTES;
#pragma unroll
        for (uint32_t i = 0; i < BLOCK_COLUMNS * LINE_CHUNKS / MMA_THREADS; i++) {
            uint32_t at = i * MMA_THREADS + threadIdx.x, column = at / LINE_CHUNKS;
            if (column >= columns) break;
            uint32_t tile = (first_column + column) >> log_width;
            uint32_t line = ((tile * row_tiles + row_tile) << log_width) + first_column + column - (tile << log_width);
            ptx::cp_async_16(stage + at * 16, db + line * LINE_CHUNKS + at % LINE_CHUNKS);
        }
    }

    // Loads this thread's selectors of row tile `row_tile`.
    HUSH_DEVICE void load_units(uint4 (&units)[THREAD_UNITS], uint32_t row_tile) const {
#pragma unroll
        for (uint32_t i = 0; i < THREAD_UNITS; i++) {
            uint32_t unit = i * MMA_THREADS + threadIdx.x;
            if (unit < polys * LINE_CHUNKS) units[i] = __ldg(selectors + row_tile * all_polys * LINE_CHUNKS + unit);
        }
    }

    // Writes the byte matrices of row tile `row_tile`. Polynomials beyond the block's are left unchanged.
    template <class P>
    HUSH_DEVICE void scale_units(const uint4 (&units)[THREAD_UNITS], uint32_t row_tile,
                                 const FoldPrime<P>& modulus) const {
        uint8_t* matrix = matrices + row_tile % 2 * MATRIX_BYTES;
#pragma unroll
        for (uint32_t i = 0; i < THREAD_UNITS; i++) {
            uint32_t unit = i * MMA_THREADS + threadIdx.x;
            if (unit >= polys * LINE_CHUNKS) break;
            write_unit<POLYS>(matrix, unit, units[i], modulus);
        }
    }

    // The fragments of m16n8k32, [column tile][class][8 polynomials]. Rows of a fragment are columns of the database.
    using Sums = int32_t[COLUMN_TILES][CLASSES][WARP_POLYS / 8][4];

    HUSH_DEVICE uint32_t warp_poly() const { return threadIdx.x / 32 % POLY_WARPS * WARP_POLYS; }
    HUSH_DEVICE uint32_t warp_column() const {
        return threadIdx.x / 32 / POLY_WARPS * (COLUMN_TILES * 16);
    }

    // Multiplies row tile `row_tile`, whose stage and matrices are ready. The sums of columns and polynomials beyond the block's
    // are never read. A warp without any column returns at once.
    HUSH_DEVICE void multiply(Sums& sums, uint32_t row_tile) const {
        if (warp_column() >= columns) return;
        uint32_t lane = threadIdx.x % 32, group = lane / 8, within = lane % 8;
        // Lane 8 g + r gives the address of line r of 8 x 16-byte matrix g. Bit 0 of g selects the line half of columns and the
        // chunk of polynomials; bit 1 the chunk of columns and the line half of polynomials.
        const uint8_t* column_lines = stages + row_tile % STAGES * STAGE_BYTES
                                      + (warp_column() + group % 2 * 8 + within) * LINE_BYTES;
        const uint8_t* poly_lines = matrices + row_tile % 2 * MATRIX_BYTES
                                    + (warp_poly() + group / 2 * 8 + within) * LINE_BYTES;
#pragma unroll
        for (uint32_t k = 0; k < LINE_CHUNKS; k += 2) {
            uint32_t a[COLUMN_TILES][4];
#pragma unroll
            for (uint32_t m = 0; m < COLUMN_TILES; m++) {
                ptx::ldmatrix_x4(a[m], column_lines + m * 16 * LINE_BYTES + swizzled(k + group / 2, within) * 16);
            }
#pragma unroll
            for (uint32_t j = 0; j < CLASSES; j++) {
                uint32_t b[4];
                ptx::ldmatrix_x4(b, poly_lines + j * POLYS * LINE_BYTES + swizzled(k + group % 2, within) * 16);
                const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
#pragma unroll
                for (uint32_t m = 0; m < COLUMN_TILES; m++) {
                    ptx::mma_m16n8k32_u8u8(sums[m][j][0], a[m], b0);
                    ptx::mma_m16n8k32_u8u8(sums[m][j][1], a[m], b1);
                }
            }
        }
    }

    // Writes the residues to `out`, `[poly][padded columns]` of the point.
    template <class P>
    HUSH_DEVICE void write(const Sums& sums, uint32_t* out, uint32_t padded, const P& prime) const {
        uint32_t lane = threadIdx.x % 32;
#pragma unroll
        for (uint32_t m = 0; m < COLUMN_TILES; m++) {
#pragma unroll
            for (uint32_t n = 0; n < WARP_POLYS / 8; n++) {
#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
                    uint32_t column = warp_column() + m * 16 + i / 2 * 8 + lane / 4;
                    uint32_t poly = warp_poly() + n * 8 + lane % 4 * 2 + i % 2;
                    uint32_t sum = join_classes(sums[m][0][n][i], sums[m][1][n][i], sums[m][2][n][i],
                                                sums[m][3][n][i], prime);
                    if (column < columns && poly < polys) {
                        out[uint64_t(poly) * padded + first_column + column] = sum;
                    }
                }
            }
        }
    }
};

// Returns the number of blocks of columns.
HUSH_DEVICE uint32_t blocks_of(uint32_t columns) {
    return (columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
}

// Returns the number of groups of polynomials.
template <uint32_t POLY_WARPS>
HUSH_DEVICE uint32_t groups_of(uint32_t polys) {
    return (polys + FoldMma<POLY_WARPS>::POLYS - 1) / FoldMma<POLY_WARPS>::POLYS;
}

// Multiplies 128 columns at one point by a group of POLYS polynomials, a row tile (32 rows, 128 bytes of k) at a time:
//     for each row tile: wait for its stage; start the copies of row tile + 2; write the matrices of row tile + 1; multiply
// Asynchronous copies fill three stages with the database. All threads write two sets of matrices from the selectors' words.
//
// `item` counts points x blocks of 128 columns x groups. Dynamic shared memory: 48 KiB, and 2 x 4 x POLYS x 128 bytes.
template <uint32_t POLY_WARPS, class P>
HUSH_DEVICE void fold_item(uint32_t* sums, const uint4* selectors, const NttTiles& db, const FoldRingOf<P>& ring,
                           uint32_t polys, uint32_t first_point, uint32_t item) {
    HUSH_DYNAMIC_SHARED(uint8_t, shared_bytes);
    uint32_t padded = db.tiles << db.log_width, blocks = blocks_of(padded);
    uint32_t groups = groups_of<POLY_WARPS>(polys);
    uint32_t first_poly = item % groups * FoldMma<POLY_WARPS>::POLYS, block = item / groups;
    uint32_t point = block / blocks;
    const FoldPrime<P>& modulus = ring.primes[(first_point + point) >> ring.log_degree];
    FoldMma<POLY_WARPS> fold;
    fold.stages = shared_bytes;
    fold.matrices = shared_bytes + STAGES * STAGE_BYTES;
    fold.selectors = selectors + (uint64_t(point) * db.row_tiles * polys + first_poly) * LINE_CHUNKS;
    fold.db = db.chunks + line_at(db, uint64_t(first_point) + point, 0, 0);
    fold.all_polys = polys;
    fold.polys = min(FoldMma<POLY_WARPS>::POLYS, polys - first_poly);
    fold.row_tiles = db.row_tiles;
    fold.log_width = db.log_width;
    fold.first_column = block % blocks * BLOCK_COLUMNS;
    fold.columns = min(BLOCK_COLUMNS, padded - fold.first_column);

    typename FoldMma<POLY_WARPS>::Sums products = {};
    uint4 units[FoldMma<POLY_WARPS>::THREAD_UNITS] = {};
    for (uint32_t row_tile = 0; row_tile < STAGES - 1; row_tile++) {
        if (row_tile < db.row_tiles) fold.load_stage(row_tile);
        ptx::cp_async_commit();
    }
    fold.load_units(units, 0);
    fold.scale_units(units, 0, modulus);
    if (db.row_tiles > 1) fold.load_units(units, 1);
    for (uint32_t row_tile = 0; row_tile < db.row_tiles; row_tile++) {
        ptx::cp_async_wait<STAGES - 2>();
        // From here on, the stage and the matrices of this row tile are ready, and no thread reads those of the row tile before.
        __syncthreads();
        if (row_tile + STAGES - 1 < db.row_tiles) fold.load_stage(row_tile + STAGES - 1);
        ptx::cp_async_commit();
        if (row_tile + 1 < db.row_tiles) fold.scale_units(units, row_tile + 1, modulus);
        if (row_tile + 2 < db.row_tiles) fold.load_units(units, row_tile + 2);
        fold.multiply(products, row_tile);
    }
    fold.write(products, sums + (uint64_t(point) * polys + first_poly) * padded, padded, modulus.prime);
}

// Multiplies all items. Groups of the same columns are neighbours, so that the database is read from memory once.
//
// Grid: any number of blocks; a block multiplies every item that lies a grid apart. One a item is the most; as many as are resident
// leave the rest of a multiprocessor to other kernels.
template <uint32_t POLY_WARPS, class P>
HUSH_DEVICE void fold_mma(uint32_t* sums, const uint4* selectors, const NttTiles& db, const FoldRingOf<P>& ring,
                          uint32_t polys, const PassPoints& points) {
    uint32_t item = blockIdx.x, items;
#pragma unroll 1
    do {
        // The number of groups is computed anew for every item, and so stays in no register meanwhile.
        const uint32_t all_polys = made_anew(polys);
        fold_item<POLY_WARPS>(sums, selectors, db, ring, all_polys, points.first, item);
        // The next item overwrites stages and matrices.
        __syncthreads();
        items = points.count * blocks_of(made_anew(db.tiles) << db.log_width) * groups_of<POLY_WARPS>(made_anew(polys));
        item += gridDim.x;
    } while (item < items);
}

// Groups of 16, 32 and 64 polynomials: 8, 16 and 32 queries.
#define HUSH_RLWE_FOLD_MMA(name, warps, bounds, Ring)                                        \
    extern "C" __global__ void __launch_bounds__ bounds                                      \
        name(uint32_t* sums, const uint4* selectors, NttTiles db, Ring ring, uint32_t polys, \
             PassPoints points) {                                                            \
        fold_mma<warps>(sums, selectors, db, ring, polys, points);                           \
    }                                                                                        \
    HUSH_KERNEL(name)

HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p16, 1, (MMA_THREADS), FoldRing)
HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p16_wide, 1, (MMA_THREADS, 3), WideFoldRing)
HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p32, 2, (MMA_THREADS, 2), FoldRing)
HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p32_wide, 2, (MMA_THREADS, 2), WideFoldRing)
HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p64, 4, (MMA_THREADS), FoldRing)
HUSH_RLWE_FOLD_MMA(rlwe_fold_mma_p64_wide, 4, (MMA_THREADS), WideFoldRing)
