// The kernel `send_words`: it rounds the words of an answer and packs them to bytes.
#include "bits.cuh"

namespace {

// The rows that are sent, and the place of their bytes in an answer. Mirrored by `SentRows` in src/lwe/send_words.rs.
struct SentRows {
    uint64_t first, count, offset;
    uint32_t bits, reserved;
};
static_assert(sizeof(SentRows) == 32, "the layout of SentRows");

// Rounds `word` to its top `bits` bits, modulo 2^bits: half up, or half to even (hush_ops::contract::Rounding).
HUSH_DEVICE uint32_t rounded(uint32_t word, uint32_t bits, bool half_up) {
    if (bits == 32) return word;
    const uint32_t dropped = 32 - bits, half = 1u << (dropped - 1);
    // The carry out of the top bit is the reduction modulo 2^bits.
    return (word + (half_up ? half : half - 1 + (word >> dropped & 1))) >> dropped;
}

} // namespace

// Packs words `[query][row]` to bytes `[query][bytes of an answer]`. Grid: (blocks for the words of a piece, pieces, queries).
// There may be more pieces and queries than a grid has blocks: a block then takes several.
extern "C" __global__ void __launch_bounds__(256)
    send_words(uint8_t* out, const uint32_t* words, const SentRows* sent, uint64_t rows, uint64_t answer_bytes,
               uint32_t pieces, uint32_t queries, uint32_t half_up) {
    const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
    for (uint32_t query = blockIdx.z; query < queries; query += gridDim.z) {
        for (uint32_t i = blockIdx.y; i < pieces; i += gridDim.y) {
            const SentRows piece = sent[i];
            const uint32_t* own = words + query * rows + piece.first;
            auto value = [&](uint64_t at) { return uint64_t(rounded(own[at], piece.bits, half_up != 0)); };
            uint8_t* bytes = out + query * answer_bytes + piece.offset;
            store_packed(bytes, piece.bits, piece.count, thread, threads, value);
        }
    }
}
HUSH_KERNEL(send_words)
