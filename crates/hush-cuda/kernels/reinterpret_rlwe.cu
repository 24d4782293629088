// The kernel `reinterpret_rlwe`: the switched halves of ciphertexts (mod_switch.cu) as words. reinterpret_lwe.cu then converts
// these words to the bytes of a database, like the words of LWE.
#include "bits.cuh"

// Joins the halves of every coefficient, one coefficient in each thread. `packed` has the polynomials
// `[ciphertext][a, b][coefficient]`, with bits_a and bits_b bits for a coefficient. `out` becomes the words of a + 2^bits_a b, at
// most three, least significant first: `[ciphertext][coefficient][word]`.
extern "C" __global__ void __launch_bounds__(256)
    reinterpret_rlwe(uint32_t* out, const uint32_t* packed, uint32_t log_degree, uint32_t bits_a, uint32_t bits_b,
                     uint64_t coefficients) {
    uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= coefficients) return;
    uint64_t ciphertext = at >> log_degree, coefficient = at - (ciphertext << log_degree);
    // A polynomial is whole words: degrees are multiples of 32.
    uint64_t words_a = uint64_t(bits_a) << log_degree >> 5, words = (bits_a + bits_b) / 32;
    const uint32_t* halves = packed + ciphertext * (words << log_degree);
    uint64_t a = packed_value(halves, coefficient, bits_a), b = packed_value(halves + words_a, coefficient, bits_b);
    unsigned __int128 joined = static_cast<unsigned __int128>(b) << bits_a | a;
    for (uint64_t word = 0; word < words; word++) out[at * words + word] = uint32_t(joined >> (32 * word));
}
HUSH_KERNEL(reinterpret_rlwe)
