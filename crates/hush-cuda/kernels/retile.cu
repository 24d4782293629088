// Conversion of a group of a host database's tiling (crates/hush-ops/src/tiling.rs) to device tiles (lwe_tiles.cuh).
//
// A group is up to 512 rows: [chunk of 8 tiles][panel of 32 rows][tile of 64 columns][32 rows][64 bytes], the last
// chunk short.
#include "lwe_tiles.cuh"

namespace lwe {

constexpr uint32_t HOST_TILE_COLS = 64;
constexpr uint32_t PANEL_ROWS = 32;
constexpr uint32_t CHUNK_TILES = 8;
constexpr uint32_t HOST_TILE_BYTES = PANEL_ROWS * HOST_TILE_COLS;

// Returns the offset of the byte at (`row`, `col`) in a group of `panels` panels of `tiles` tiles.
HUSH_DEVICE uint64_t host_offset(uint32_t row, uint32_t col, uint32_t panels, uint32_t tiles) {
    uint32_t tile = col / HOST_TILE_COLS, chunk = tile / CHUNK_TILES;
    uint32_t chunk_tiles = min(CHUNK_TILES, tiles - chunk * CHUNK_TILES);
    uint64_t tile_index = uint64_t(chunk) * CHUNK_TILES * panels + row / PANEL_ROWS * chunk_tiles + tile % CHUNK_TILES;
    return tile_index * HOST_TILE_BYTES + row % PANEL_ROWS * HOST_TILE_COLS + col % HOST_TILE_COLS;
}

} // namespace lwe

// Writes 16 bytes of a device tile in each thread, in memory order, with zeros beyond the group's panels and tiles. A warp reads
// pieces of 64 bytes of each row, from neighbouring rows. Grid: (device tiles of the group, 8), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
retile(uint8_t* tiles, const uint8_t* group, uint32_t panels, uint32_t host_tiles) {
    uint32_t k_tiles = (host_tiles + 1) / 2, row_tile = blockIdx.x / k_tiles, k_tile = blockIdx.x % k_tiles;
    uint32_t line = blockIdx.y * 32 + threadIdx.x / lwe::TILE_CHUNKS, place = threadIdx.x % lwe::TILE_CHUNKS;
    uint32_t row = row_tile * lwe::TILE_ROWS + line;
    uint32_t col = k_tile * lwe::TILE_COLS + (place ^ (line & 7)) * lwe::CHUNK_BYTES;
    uint4 bytes = make_uint4(0, 0, 0, 0);
    if (row < panels * lwe::PANEL_ROWS && col < host_tiles * lwe::HOST_TILE_COLS) {
        bytes = ptx::load_stream_16(group + lwe::host_offset(row, col, panels, host_tiles));
    }
    uint8_t* tile = tiles + uint64_t(blockIdx.x) * lwe::TILE_BYTES;
    *reinterpret_cast<uint4*>(tile + line * lwe::TILE_COLS + place * lwe::CHUNK_BYTES) = bytes;
}
HUSH_KERNEL(retile)
