// Conversion of databases in evaluation form to the device layout (ntt_tiles.cuh), and back.
#include "ntt_tiles.cuh"
#include "transpose.cuh"

// Returns the index of the residue of (point, row, column) in the host layout, whose tiles are `width` columns wide. Points are
// counted from the first point of a group of slots.
HUSH_DEVICE uint64_t host_at(const NttTiles& db, uint32_t width, uint32_t point, uint32_t row, uint32_t column) {
    constexpr uint32_t GROUP_SLOTS = 16;
    uint32_t tiles = (db.columns + width - 1) / width;
    uint64_t tile = uint64_t(point / GROUP_SLOTS) * tiles + column / width;
    return ((tile * GROUP_SLOTS + point % GROUP_SLOTS) * db.rows + row) * width + column % width;
}

// Converts from the host layout, `[group of 16 slots][tile of columns][slot][row][column]` (hush_ops::ntt_tiling). `from` has
// whole groups, the first of which begins at point `first_point`. One block writes the lines of all columns of a tile, for one
// point and 32 rows; a thread writes a word at a time. The 32 rows of a tile of the host are contiguous, so the block reads each
// cache line once.
//
// Grid: [points x tiles, row tiles].
extern "C" __global__ void __launch_bounds__(256)
    ntt_tiles_from_host(NttTiles db, const uint32_t* from, uint32_t from_width, uint32_t first_point) {
    uint32_t local_point = blockIdx.x / db.tiles, tile = blockIdx.x % db.tiles, row_tile = blockIdx.y;
    uint32_t lane = threadIdx.x % TILE_ROWS, row = row_tile * TILE_ROWS + lane;
    uint32_t width = 1u << db.log_width;
    for (uint32_t line = threadIdx.x / TILE_ROWS; line < width; line += blockDim.x / TILE_ROWS) {
        uint32_t column = tile * width + line;
        bool real = row < db.rows && column < db.columns;
        uint32_t residue = real ? from[host_at(db, from_width, local_point, row, column)] : 0;
        *line_word(db, line_at(db, uint64_t(first_point) + local_point, row_tile, column), column, lane) = residue;
    }
}
HUSH_KERNEL(ntt_tiles_from_host)

// Converts to the host layout of ntt_tiles_from_host. The caller zeroes `to` first: the padding of the host's tiles is not written.
//
// Grid: [points x tiles, row tiles].
extern "C" __global__ void __launch_bounds__(256)
    ntt_tiles_to_host(NttTiles db, uint32_t* to, uint32_t to_width, uint32_t first_point) {
    uint32_t local_point = blockIdx.x / db.tiles, tile = blockIdx.x % db.tiles, row_tile = blockIdx.y;
    uint32_t lane = threadIdx.x % TILE_ROWS, row = row_tile * TILE_ROWS + lane;
    uint32_t width = 1u << db.log_width;
    for (uint32_t line = threadIdx.x / TILE_ROWS; line < width; line += blockDim.x / TILE_ROWS) {
        uint32_t column = tile * width + line;
        if (row >= db.rows || column >= db.columns) continue;
        uint64_t from = line_at(db, uint64_t(first_point) + local_point, row_tile, column);
        to[host_at(db, to_width, local_point, row, column)] = *line_word(db, from, column, lane);
    }
}
HUSH_KERNEL(ntt_tiles_to_host)

// Converts from polynomials `[row][column][point]`, of the rows from row tile `first_tile` on; `points` is N times the limbs. One
// block transposes a square of 32 rows and 32 points of a column. Columns from db.columns on, and rows from db.rows on, become
// zeros.
//
// Grid: [points / 32 rounded up, row tiles, columns padded to whole tiles].
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    ntt_tiles_from_polys(NttTiles db, const uint32_t* polys, uint32_t first_tile, uint32_t points) {
    uint32_t first_point = blockIdx.x * SQUARE, column = blockIdx.z;
    uint32_t row_tile = first_tile + blockIdx.y;
    auto load = [&](uint32_t line, uint32_t lane) -> uint32_t {
        uint32_t row = row_tile * TILE_ROWS + line, point = first_point + lane;
        if (row >= db.rows || column >= db.columns || point >= points) return 0;
        uint64_t poly = uint64_t(blockIdx.y * TILE_ROWS + line) * db.columns + column;
        return polys[poly * points + point];
    };
    auto store = [&](uint32_t line, uint32_t lane, uint32_t residue) {
        uint32_t point = first_point + line;
        if (point < points) *line_word(db, line_at(db, point, row_tile, column), column, lane) = residue;
    };
    transpose_square(load, store);
}
HUSH_KERNEL(ntt_tiles_from_polys)
