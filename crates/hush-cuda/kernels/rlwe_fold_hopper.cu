// The product of `rlwe_fold` by warpgroup matrix instructions (rlwe_fold_classes.cuh), for databases in tiles of 64
// columns.
#include "rlwe_fold_classes.cuh"

constexpr uint32_t WARPGROUP = 128;
constexpr uint32_t HOPPER_THREADS = 3 * WARPGROUP;
constexpr uint32_t TILE_COLUMNS = 64;
constexpr uint32_t BLOCK_TILES = 2;
constexpr uint32_t TILE_BYTES = TILE_COLUMNS * LINE_BYTES;
constexpr uint32_t STAGES = 4;
// The arrivals that fill a stage: one of every producer thread, and the one that announces the copies.
constexpr uint32_t FILLS = WARPGROUP + 1;
// The arrivals that empty a stage: one of each consumer warp, since a warp only knows that its own products are done.
constexpr uint32_t EMPTIES = 2 * WARPGROUP / 32;

// The work of a block: items blockIdx.x, blockIdx.x + gridDim.x, and so on. An item is two tiles of 64 columns at one point, and a
// group of POLYS polynomials. Groups of the same columns are neighbours, so that the database is read from memory once. A step is a
// row tile (32 rows, 128 bytes of k) of an item. All steps of all items go through one ring of four stages, each with two tiles of
// the database and the byte matrices of the selectors:
//     producer:  for each step: wait for an empty stage; copy the tiles, and write the byte matrices
//     consumers: for each step: wait for its stage; multiply; release the stage of the step before
//                after the last step of an item: write the residues
template <uint32_t POLYS>
struct HopperFold {
    static constexpr uint32_t MATRIX_ROWS = CLASSES * POLYS; // N of the products
    static constexpr uint32_t STAGE_BYTES = BLOCK_TILES * TILE_BYTES + MATRIX_ROWS * LINE_BYTES;
    // Four rows of a polynomial are a unit of 16 bytes.
    static constexpr uint32_t THREAD_UNITS = POLYS * LINE_CHUNKS / WARPGROUP;

    uint8_t* stages;
    uint64_t* full;
    uint64_t* empty;
    uint32_t all_polys, first_point, items;
    uint32_t groups, column_blocks; // of polynomials, of columns at a point

    struct Item {
        uint32_t point, first_tile, tiles, first_poly, polys;
    };

    HUSH_DEVICE Item item(uint32_t index, const NttTiles& db) const {
        uint32_t first_poly = index % groups * POLYS, block = index / groups;
        uint32_t first_tile = block % column_blocks * BLOCK_TILES;
        return {block / column_blocks, first_tile, min(BLOCK_TILES, db.tiles - first_tile), first_poly,
                min(POLYS, all_polys - first_poly)};
    }

    HUSH_DEVICE uint8_t* stage(uint32_t step) const { return stages + step % STAGES * STAGE_BYTES; }

    HUSH_DEVICE void load_units(uint4 (&units)[THREAD_UNITS], const uint4* selectors, uint32_t polys,
                                uint32_t thread) const {
#pragma unroll
        for (uint32_t i = 0; i < THREAD_UNITS; i++) {
            uint32_t unit = i * WARPGROUP + thread;
            if (unit < polys * LINE_CHUNKS) units[i] = __ldg(selectors + unit);
        }
    }

    // Runs the producer, a warpgroup: copies the database, and writes the byte matrices of the selectors. Selectors are loaded a
    // step ahead, before the wait for a stage. So their latency overlaps with the wait and the conversion of the step before.
    template <class P>
    HUSH_DEVICE void produce(const uint4* selectors, const NttTiles& db, const FoldRingOf<P>& ring) const {
        uint32_t thread = threadIdx.x % WARPGROUP, step = 0;
        uint32_t row_tile_units = all_polys * LINE_CHUNKS;
        for (uint32_t index = blockIdx.x; index < items; index += gridDim.x) {
            Item now = item(index, db);
            const FoldPrime<P> modulus = ring.primes[(first_point + now.point) >> ring.log_degree];
            const uint4* from = selectors + uint64_t(now.point) * db.row_tiles * row_tile_units
                                + now.first_poly * LINE_CHUNKS;
            uint32_t first_column = now.first_tile * TILE_COLUMNS;
            const uint4* tiles = db.chunks + line_at(db, uint64_t(first_point) + now.point, 0, first_column);
            uint4 units[THREAD_UNITS] = {}, next[THREAD_UNITS] = {};
            load_units(units, from, now.polys, thread);
            for (uint32_t row_tile = 0; row_tile < db.row_tiles; row_tile++, step++) {
                if (row_tile + 1 < db.row_tiles) {
                    load_units(next, from + (row_tile + 1) * row_tile_units, now.polys, thread);
                }
                uint64_t* filled = &full[step % STAGES];
                ptx::mbarrier_wait(&empty[step % STAGES], step / STAGES % 2 ^ 1);
                if (thread == 0) {
                    ptx::mbarrier_expect(filled, now.tiles * TILE_BYTES);
#pragma unroll 1
                    for (uint32_t tile = 0; tile < now.tiles; tile++) {
                        const uint4* source = tiles + (uint64_t(tile) * db.row_tiles + row_tile) * (TILE_BYTES / 16);
                        ptx::bulk_copy(stage(step) + tile * TILE_BYTES, source, TILE_BYTES, filled);
                    }
                }
                uint8_t* matrices = stage(step) + BLOCK_TILES * TILE_BYTES;
#pragma unroll
                for (uint32_t i = 0; i < THREAD_UNITS; i++) {
                    uint32_t unit = i * WARPGROUP + thread;
                    if (unit < now.polys * LINE_CHUNKS) write_unit<POLYS>(matrices, unit, units[i], modulus);
                }
                ptx::fence_proxy_async();
                ptx::mbarrier_arrive(filled);
#pragma unroll
                for (uint32_t i = 0; i < THREAD_UNITS; i++) units[i] = next[i];
            }
        }
    }

    // Runs the consumers, two warpgroups with a tile of 64 columns each: multiplies, and writes the residues to `sums`. The
    // products of polynomials and columns beyond the item's are never read.
    template <class P>
    HUSH_DEVICE void consume(uint32_t* sums, const NttTiles& db, const FoldRingOf<P>& ring) const {
        uint32_t tile = threadIdx.x / WARPGROUP - 1, step = 0;
        bool releases = threadIdx.x % 32 == 0;
        for (uint32_t index = blockIdx.x; index < items; index += gridDim.x) {
            int32_t products[MATRIX_ROWS / 2] = {};
            for (uint32_t row_tile = 0; row_tile < db.row_tiles; row_tile++, step++) {
                ptx::mbarrier_wait(&full[step % STAGES], step / STAGES % 2);
                const uint8_t* columns = stage(step) + tile * TILE_BYTES;
                const uint8_t* matrices = stage(step) + BLOCK_TILES * TILE_BYTES;
                ptx::wgmma_fence();
#pragma unroll
                for (uint32_t k = 0; k < LINE_BYTES; k += 32) {
                    ptx::wgmma_m64k32_u8u8<MATRIX_ROWS>(products, ptx::descriptor_128b(columns + k),
                                                        ptx::descriptor_128b(matrices + k));
                }
                ptx::wgmma_commit();
                // The products of the step before are done, and with them its stage.
                ptx::wgmma_wait<1>();
                if (releases && row_tile > 0) ptx::mbarrier_arrive(&empty[(step - 1) % STAGES]);
            }
            ptx::wgmma_wait<0>(products);
            if (releases) ptx::mbarrier_arrive(&empty[(step - 1) % STAGES]);
            Item now = item(index, db);
            const P prime = ring.primes[(first_point + now.point) >> ring.log_degree].prime;
            uint32_t padded = db.tiles * TILE_COLUMNS;
            uint32_t* out = sums + (uint64_t(now.point) * all_polys + now.first_poly) * padded
                            + (now.first_tile + tile) * TILE_COLUMNS;
            if (tile < now.tiles) write(products, out, padded, now.polys, prime);
        }
    }

    // Writes the residues of a tile to `out`, `[poly][padded columns]`. A thread has two of its warp's 16 rows, which are columns
    // of the database, and two neighbouring polynomials of every eight.
    template <class P>
    HUSH_DEVICE void write(const int32_t (&products)[MATRIX_ROWS / 2], uint32_t* out, uint32_t padded,
                           uint32_t polys, const P& prime) const {
        uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
        for (uint32_t i = 0; i < POLYS / 2; i++) {
            uint32_t column = warp * 16 + i / 2 % 2 * 8 + lane / 4, poly = i / 4 * 8 + lane % 4 * 2 + i % 2;
            uint32_t sum = join_classes(products[i], products[i + POLYS / 2], products[i + POLYS],
                                        products[i + POLYS / 2 * 3], prime);
            if (poly < polys) out[uint64_t(poly) * padded + column] = sum;
        }
    }
};

// Folds the items of a block with a producer warpgroup and two consumer warpgroups. A block runs for the whole launch.
//
// Dynamic shared memory: four stages of 16 KiB and 512 POLYS bytes, then 64 bytes of barriers. Grid: a block on each
// multiprocessor.
template <uint32_t POLYS, class P>
HUSH_DEVICE void fold_hopper(uint32_t* sums, const uint4* selectors, const NttTiles& db, const FoldRingOf<P>& ring,
                             uint32_t polys, PassPoints points) {
    HUSH_DYNAMIC_SHARED(uint8_t, shared_bytes);
    using Fold = HopperFold<POLYS>;
    uint64_t* barriers = reinterpret_cast<uint64_t*>(shared_bytes + STAGES * Fold::STAGE_BYTES);
    uint32_t groups = (polys + POLYS - 1) / POLYS, column_blocks = (db.tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    uint32_t items = points.count * column_blocks * groups;
    Fold fold{shared_bytes, barriers, barriers + STAGES, polys, points.first, items, groups, column_blocks};
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < STAGES; stage++) {
            ptx::mbarrier_init(&fold.full[stage], FILLS);
            ptx::mbarrier_init(&fold.empty[stage], EMPTIES);
        }
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        fold.produce(selectors, db, ring);
    } else {
        fold.consume(sums, db, ring);
    }
}

// The kernels p32 and p64: for up to 16 queries, and for groups of 32 queries.
#define HUSH_RLWE_FOLD(name, most, Ring)                                                     \
    extern "C" __global__ void __launch_bounds__(HOPPER_THREADS, 1)                          \
        name(uint32_t* sums, const uint4* selectors, NttTiles db, Ring ring, uint32_t polys, \
             PassPoints points) {                                                            \
        fold_hopper<most>(sums, selectors, db, ring, polys, points);                         \
    }                                                                                        \
    HUSH_KERNEL(name)

HUSH_RLWE_FOLD(rlwe_fold_p32_hopper, 32, FoldRing)
HUSH_RLWE_FOLD(rlwe_fold_p32_wide_hopper, 32, WideFoldRing)
HUSH_RLWE_FOLD(rlwe_fold_p64_hopper, 64, FoldRing)
HUSH_RLWE_FOLD(rlwe_fold_p64_wide_hopper, 64, WideFoldRing)
