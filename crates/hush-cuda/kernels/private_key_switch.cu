// The kernel `private_key_switch`: TLWE words become RLWE ciphertexts modulo Q_e (PPIR algorithm 2).
#include "gadget.cuh"

namespace {

// The words of a query that a block switches, and the rows of a key for which it holds their digits.
constexpr uint32_t WORDS = 8, KEY_ROWS = 64;

// The digits of words of a mask: digit k of w is bits `width k` to `width (k + 1)` of w + offset, less half a base
// (hush_math::gadget).
struct Digits {
    uint32_t n;      // words of a mask
    uint32_t digits; // of a word
    uint32_t width, offset;
};

// Keeps a sum of products below p 2^32 that was below 2p 2^32.
HUSH_DEVICE uint64_t fold_sum(uint64_t sum, uint32_t p) {
    return uint64_t(fold_mod(uint32_t(sum >> 32), p)) << 32 | uint32_t(sum);
}

} // namespace

// Writes ciphertext `word` of out [query][word][poly][limb][slot]: the sum over k of digit k of mask `first + word` times row k of
// the key, plus the constant of the word's body in every slot of polynomial `body`.
//
// keys[query] + at has [k][poly][limb][slot]; `masks` has [query][word][n], and `constants` [query][word][limb]: all words of a
// query, of which `count` are switched.
//
// Grid: [poly, limb and slots, slots fastest; words, rounded up to `WORDS`; query]. A thread has four slots of `WORDS` sums.
extern "C" __global__ void __launch_bounds__(128)
    private_key_switch(uint32_t* out, const uint32_t* const* keys, uint64_t at, const uint32_t* masks,
                       const uint32_t* constants, uint32_t first, uint32_t count, uint32_t body, Digits digits,
                       RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared); // [key row][word], in Montgomery form
    const uint32_t of_poly = uint32_t(poly_words(ring) / 4);
    const uint32_t vector = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t poly = vector / of_poly;
    const uint32_t limb = 4 * (vector % of_poly) >> ring.log_degree;
    const Prime prime = ring.primes[limb];
    const uint32_t words = min(WORDS, count - blockIdx.y * WORDS);
    const size_t word_0 = size_t(blockIdx.z) * (first + count) + first + blockIdx.y * WORDS;
    const uint32_t half = mont_mul(1u << (digits.width - 1), prime.r2, prime);
    const uint32_t rows = digits.n * digits.digits;
    uint64_t sums[WORDS][4] = {};
#pragma unroll 1
    for (uint32_t row_0 = 0; row_0 < rows; row_0 += KEY_ROWS) {
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < WORDS * KEY_ROWS; i += blockDim.x) {
            const uint32_t word = i / KEY_ROWS, row = row_0 + i % KEY_ROWS;
            uint32_t digit = 0;
            if (word < words && row < rows) {
                const uint32_t mask = masks[(word_0 + word) * digits.n + row / digits.digits] + digits.offset;
                const uint32_t shifted = mask >> digits.width * (row % digits.digits) & ((1u << digits.width) - 1);
                digit = sub_mod(mont_mul(shifted, prime.r2, prime), half, prime.p);
            }
            shared[i % KEY_ROWS * WORDS + word] = digit;
        }
        __syncthreads();
        const uint32_t* key = keys[blockIdx.z] + at + row_0 * (8 * size_t(of_poly));
        const uint32_t here = min(KEY_ROWS, rows - row_0);
#pragma unroll 1
        for (uint32_t k = 0; k < here; k += 2) {
            // Two products of numbers below p add less than p 2^32 to a sum. Digits behind the last row are zero.
#pragma unroll
            for (uint32_t j = 0; j < 2; j++) {
                const uint4 slots = load_vector(key + min(k + j, here - 1) * (8 * size_t(of_poly)), vector);
#pragma unroll
                for (uint32_t w = 0; w < WORDS; w += 4) {
                    const uint4 four = reinterpret_cast<const uint4*>(shared + (k + j) * WORDS)[w / 4];
#pragma unroll
                    for (uint32_t i = 0; i < 4; i++) {
#pragma unroll
                        for (uint32_t slot = 0; slot < 4; slot++) {
                            add_product(sums[w + i][slot], word(slots, slot), word(four, i), prime.p);
                        }
                    }
                }
            }
#pragma unroll
            for (uint32_t w = 0; w < WORDS; w++) {
#pragma unroll
                for (uint32_t slot = 0; slot < 4; slot++) sums[w][slot] = fold_sum(sums[w][slot], prime.p);
            }
        }
    }
#pragma unroll
    for (uint32_t w = 0; w < WORDS; w++) {
        if (w >= words) break;
        const uint32_t constant = poly == body ? constants[(word_0 + w) * ring.limbs + limb] : 0;
        uint32_t reduced[4];
#pragma unroll
        for (uint32_t slot = 0; slot < 4; slot++) {
            reduced[slot] = add_mod(mont_reduce(sums[w][slot], prime), constant, prime.p);
        }
        const size_t to = size_t(blockIdx.z) * count + blockIdx.y * WORDS + w;
        store_vector(out + to * (8 * size_t(of_poly)), vector,
                     make_uint4(reduced[0], reduced[1], reduced[2], reduced[3]));
    }
}
HUSH_KERNEL(private_key_switch)
