// The chain of key switches on the masks, which alone decide the digits:
//     x = image_(N/2-1);  for k = N/2 - 2, .., 0: d = digit(x), x = image_k + d w(X^e), e = +-5^k
// The N / 2 steps depend on each other, so one block runs a whole chain, with the polynomial in registers. The two chains of a
// hint, for the signs of the exponents, and the hints run in parallel.
#include "limb_pair.cuh"

namespace {

// Returns the index of a place of w in shared memory. The slots that the threads of a warp multiply at once are 16 apart. So for
// N = 2048 their exponents differ by multiples of 8, and their places a differ in a / 2 mod 32. Places that are 2 apart are
// neighbours here, so no two threads of a warp read from one bank.
template <int LOG>
HUSH_DEVICE uint32_t interleaved(uint32_t place) {
    return place % 2 * (1 << (LOG - 2)) + place / 2;
}

// Replaces x by image + x w(X^e), e = +-5^k. The value of w(X^e) in a slot is that of w at the slot's place plus k. `orbit` is the
// half of w to which e moves the slots of this thread.
template <int LOG>
HUSH_DEVICE void add_switched(uint32_t (&x)[NTT_WORDS], const uint32_t (&image)[NTT_WORDS], const uint32_t* orbit,
                              const uint32_t* places, uint32_t k, const Prime& prime, uint32_t thread) {
    uint32_t place[NTT_WORDS];
    load_neighbours(place, places, thread);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) {
        const uint32_t w = orbit[interleaved<LOG>((place[i] + k) % (1 << (LOG - 1)))];
        x[i] = add_mod(image[i], mont_mul(x[i], w, prime), prime.p);
    }
}

// Runs a chain in block (sign, hint) of 2 T threads. Row (sign, k) of the images, A_e in [limb][slot] for e = +-5^k, becomes the
// digit that is multiplied by w(X^e). The last row, at which the chain begins, becomes zeros.
//   images    [hint][sign][k][limb][slot]
//   sums      [hint][sign][limb][slot]: the final x
//   rotation  [limb][half][place], Montgomery forms of w, places interleaved
//   places    [slot]: N or 0, and a of the slot's exponent +-5^a
// Shared memory: 6 N words: two transforms, an exchange, w.
template <int LOG>
HUSH_DEVICE void switch_chain(uint32_t* images, uint32_t* sums, const uint32_t* rotation, const uint32_t* places,
                              const RingView& ring, const GadgetView& gadget, uint32_t* shared) {
    constexpr uint32_t N = 1 << LOG, STEPS = N / 2;
    const PairThread at = pair_thread<LOG>(threadIdx.x);
    const uint32_t sign = blockIdx.x, chain = blockIdx.y * 2 + sign;
    uint32_t* const transform = shared + at.limb * N;
    uint32_t* const residues = shared + 2 * N;
    uint32_t* const masks = shared + 4 * N;
    for (uint32_t i = threadIdx.x; i < PAIR_WORDS<LOG>; i += PAIR_THREADS<LOG>) masks[i] = rotation[i];
    // The second half of the threads has the slots of the exponents -5^a.
    const uint32_t half = at.thread / (NTT_THREADS<LOG> / 2);
    const uint32_t* const orbit = masks + at.limb * N + (half ^ sign) * STEPS;

    uint32_t* row = images + (size_t(chain) * STEPS + STEPS - 1) * PAIR_WORDS<LOG> + at.limb * N;
    uint32_t x[NTT_WORDS], image[NTT_WORDS] = {};
    load_neighbours(x, row, at.thread);
    store_neighbours(row, image, at.thread);
    for (uint32_t k = STEPS - 1; k-- > 0;) {
        row -= PAIR_WORDS<LOG>;
        load_neighbours(image, row, at.thread); // arrives during the transforms
        ntt_inverse_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
        take_digit<LOG>(x, residues, ring, gadget, at);
        ntt_forward_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
        store_neighbours(row, x, at.thread);
        add_switched<LOG>(x, image, orbit, places, k, ring.primes[at.limb], at.thread);
    }
    store_neighbours(sums + size_t(chain) * PAIR_WORDS<LOG> + at.limb * N, x, at.thread);
}

// Joins both chains: digit = digit(x_1), mask = x_0 + digit v. Block (hint), 2 T threads.
//   sums         [hint][sign][limb][slot]
//   conjugation  [limb][slot], Montgomery forms of v
//   out          [hint][digit, mask][limb][slot]
// Shared memory: 4 N words.
template <int LOG>
HUSH_DEVICE void end_chain(uint32_t* out, const uint32_t* sums, const uint32_t* conjugation, const RingView& ring,
                           const GadgetView& gadget, uint32_t* shared) {
    constexpr uint32_t N = 1 << LOG;
    const PairThread at = pair_thread<LOG>(threadIdx.x);
    const size_t first = size_t(blockIdx.x) * 2 * PAIR_WORDS<LOG> + at.limb * N;
    uint32_t x[NTT_WORDS], v[NTT_WORDS], sum[NTT_WORDS];
    load_neighbours(x, sums + first + PAIR_WORDS<LOG>, at.thread);
    ntt_inverse_neighbours<LOG>(x, shared + at.limb * N, ring, at.limb, at.thread);
    take_digit<LOG>(x, shared + 2 * N, ring, gadget, at);
    ntt_forward_neighbours<LOG>(x, shared + at.limb * N, ring, at.limb, at.thread);
    store_neighbours(out + first, x, at.thread);
    load_neighbours(v, conjugation + at.limb * N, at.thread);
    load_neighbours(sum, sums + first, at.thread);
    const Prime prime = ring.primes[at.limb];
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = add_mod(sum[i], mont_mul(x[i], v[i], prime), prime.p);
    store_neighbours(out + first + PAIR_WORDS<LOG>, x, at.thread);
}

} // namespace

#define HUSH_CHAIN_SWITCH(name, log, blocks)                                                                    \
    extern "C" __global__ void __launch_bounds__(PAIR_THREADS<log>, blocks)                                     \
        name(uint32_t* images, uint32_t* sums, const uint32_t* rotation, const uint32_t* places, RingView ring, \
             GadgetView gadget) {                                                                               \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                                  \
        switch_chain<log>(images, sums, rotation, places, ring, gadget, shared);                                \
    }                                                                                                           \
    HUSH_KERNEL(name)

HUSH_CHAIN_SWITCH(chain_switch_6, 6, 1)
HUSH_CHAIN_SWITCH(chain_switch_8, 8, 1)
HUSH_CHAIN_SWITCH(chain_switch_11, 11, 2)

#define HUSH_CHAIN_END(name, log, blocks)                                                     \
    extern "C" __global__ void __launch_bounds__(PAIR_THREADS<log>, blocks)                   \
        name(uint32_t* out, const uint32_t* sums, const uint32_t* conjugation, RingView ring, \
             GadgetView gadget) {                                                             \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                \
        end_chain<log>(out, sums, conjugation, ring, gadget, shared);                         \
    }                                                                                         \
    HUSH_KERNEL(name)

HUSH_CHAIN_END(chain_end_6, 6, 1)
HUSH_CHAIN_END(chain_end_8, 8, 1)
HUSH_CHAIN_END(chain_end_11, 11, 2)
