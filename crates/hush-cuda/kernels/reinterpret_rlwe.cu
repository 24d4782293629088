// The switched halves of ciphertexts (mod_switch.cu) as words, which then become the bytes of a database as those of
// LWE do (reinterpret_lwe.cu).
#include "prelude.cuh"

// Values `[ciphertext][a, b][coefficient]`, a below 2^bits_a; coefficient j of a ciphertext becomes the `words` words
// (at most three) of a + 2^bits_a b, least significant first, `[ciphertext][coefficient][word]`. A thread joins a
// coefficient.
extern "C" __global__ void __launch_bounds__(256)
    reinterpret_rlwe(uint32_t* out, const uint64_t* values, uint32_t log_degree, uint32_t bits_a, uint32_t words,
                     uint64_t coefficients) {
    uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= coefficients) return;
    uint64_t ciphertext = at >> log_degree, coefficient = at - (ciphertext << log_degree);
    uint64_t a = values[(ciphertext * 2 << log_degree) + coefficient];
    uint64_t b = values[((ciphertext * 2 + 1) << log_degree) + coefficient];
    unsigned __int128 joined = static_cast<unsigned __int128>(b) << bits_a | a;
    for (uint32_t word = 0; word < words; word++) out[at * words + word] = uint32_t(joined >> (32 * word));
}
HUSH_KERNEL(reinterpret_rlwe)
