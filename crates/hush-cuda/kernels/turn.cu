// The kernel `turn`: ciphertexts of `tfhe`, followed by their products with a power of X, for a round of a rotation.
#include "gadget.cuh"

// Writes the words [poly][limb][slot] to `out`, then their products with the factors [limb][slot], which are in Montgomery form.
//
// Grid: [vectors of four slots of all polynomials / threads, rounded up].
extern "C" __global__ void __launch_bounds__(256)
    turn(uint32_t* out, const uint32_t* words, const uint32_t* factors, uint64_t vectors, RingView ring) {
    const uint64_t vector = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (vector >= vectors) return;
    const uint32_t of_poly = uint32_t(vector % (poly_words(ring) / 4));
    const Prime prime = ring.primes[4 * of_poly >> ring.log_degree];
    const uint4 given = load_vector(words + 4 * vector, 0), by = load_vector(factors, of_poly);
    store_vector(out + 4 * vector, 0, given);
    store_vector(out + 4 * (vectors + vector), 0,
                 make_uint4(mont_mul(given.x, by.x, prime), mont_mul(given.y, by.y, prime),
                            mont_mul(given.z, by.z, prime), mont_mul(given.w, by.w, prime)));
}
HUSH_KERNEL(turn)
