// Negacyclic number-theoretic transforms of a polynomial of N = 2^LOG coefficients modulo one prime, equal to
// hush_math::ntt::NttPlan, by T = N / 16 threads that hold 16 words each in registers.
//
// The words of thread t:
//   coefficients   x[i]         is coefficient t + i T         (coalesced accesses of one word)
//   slots          x[4 j + k]   is slot 4 (t + j T) + k        (coalesced accesses of 16 bytes)
//   neighbours     x[i]         is slot 16 t + i               (the order after the butterflies: saves an exchange)
//
// The log2 N layers of butterflies go in passes of at most four, each within the 16 words of a thread:
//   top      4 layers, on words T apart; every thread has the same factors
//   middle   4 layers, on words T / 16 apart, if N > 256; each block of T / 16 threads has its factors
//   bottom   the rest, on 16 neighbours; every thread has its own factors
// Threads exchange words through shared memory in between. An index is swizzled (swizzle) so that no access has bank conflicts for
// N of 2048 and 4096.
//
// Factors of a limb (RingView::forward, ::inverse), built by src/ring/tables/factors.rs, in pairs (uint4). Word j of a thread's 16
// words is the factor of block k of layer l of the pass, j = 2^l + k. In a bottom pass of L layers, the 16 / 2^L blocks of
// neighbours have 2^L words each. Order: top [8 pairs], middle [16 blocks][8 pairs] if N > 256, bottom
// [8 pairs][T]. Word 0 of the top of the inverse is 1/N, and word 1 there is multiplied by 1/N.
//
// Source: Longa and Naehrig, "Speeding up the Number Theoretic Transform for Faster Ideal Lattice-Based Cryptography",
// algorithms 1 and 2. The butterflies use Plantard's multiplication (plantard_mul), or modulo primes of 32 bits Montgomery's
// (constant_mul).
#pragma once

#include "ring.cuh"

constexpr uint32_t NTT_WORDS = 16; // words of a thread

template <int LOG>
constexpr uint32_t NTT_THREADS = (1u << LOG) / NTT_WORDS;

// The shared memory of a transform, in words. It must be aligned to 16 bytes.
template <int LOG>
constexpr uint32_t NTT_SHARED_WORDS = 1u << LOG;

namespace ntt {

template <int LOG>
constexpr bool HAS_MIDDLE = LOG > 8;
template <int LOG>
constexpr uint32_t MIDDLE_STRIDE = HAS_MIDDLE<LOG> ? NTT_THREADS<LOG> / 16 : 1;
template <int LOG>
constexpr int BOTTOM_LAYERS = HAS_MIDDLE<LOG> ? LOG - 8 : LOG - 4;

// The bits of an index that swizzle may change. They select one of the eight 16-byte vectors of a line of 128 bytes.
constexpr uint32_t SWIZZLED = 0x1c;

// Returns the place of an index in shared memory, linear over XOR. Threads of the bottom pass differ in index bits 4 and up, and
// blocks of the middle pass in bits LOG - 4 and up. So these bits are added to the bits that select the banks.
template <int LOG>
HUSH_DEVICE constexpr uint32_t swizzle(uint32_t index) {
    if (LOG == 12) {
        return index ^ (index >> 3 & 0xc) ^ (index >> 4 & 0x10);
    }
    if (LOG == 11) {
        return index ^ (index >> 3 & 0xc) ^ (index >> 4 & 0x18);
    }
    return index;
}

// The indices that a thread accesses: first<..>(thread) + step<..>(i), two terms that have no bit in common.
enum class Places {
    STRIDED,    // words t + i T, i < 16
    BLOCKED,    // words of the middle pass, i < 16
    NEIGHBOURS, // vectors 4 t + i, i < 4
    VECTORS,    // vectors t + i T, i < 4
};

template <int LOG, Places PLACES>
HUSH_DEVICE constexpr uint32_t first(uint32_t thread) {
    constexpr uint32_t stride = MIDDLE_STRIDE<LOG>;
    switch (PLACES) {
    case Places::STRIDED: return thread;
    case Places::BLOCKED: return thread / stride * NTT_THREADS<LOG> + thread % stride;
    case Places::NEIGHBOURS: return 16 * thread;
    default: return 4 * thread;
    }
}

template <int LOG, Places PLACES>
HUSH_DEVICE constexpr uint32_t step(uint32_t i) {
    constexpr uint32_t threads = NTT_THREADS<LOG>;
    switch (PLACES) {
    case Places::STRIDED: return i * threads;
    case Places::BLOCKED: return i * MIDDLE_STRIDE<LOG>;
    case Places::NEIGHBOURS: return 4 * i;
    default: return 4 * i * threads;
    }
}

// Returns the place of access i, from the swizzled first index. The offset is an immediate except for its swizzled bits.
template <int LOG, Places PLACES>
HUSH_DEVICE uint32_t place(uint32_t base, uint32_t i) {
    uint32_t offset = swizzle<LOG>(step<LOG, PLACES>(i));
    return (base ^ (offset & SWIZZLED)) + (offset & ~SWIZZLED);
}

template <int LOG, Places PLACES>
HUSH_DEVICE void store(uint32_t* shared, uint32_t thread, const uint32_t (&x)[NTT_WORDS]) {
    const uint32_t base = swizzle<LOG>(first<LOG, PLACES>(thread));
    if constexpr (PLACES == Places::STRIDED || PLACES == Places::BLOCKED) {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) shared[place<LOG, PLACES>(base, i)] = x[i];
    } else {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS / 4; i++) {
            uint4 words = make_uint4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
            *reinterpret_cast<uint4*>(shared + place<LOG, PLACES>(base, i)) = words;
        }
    }
}

template <int LOG, Places PLACES>
HUSH_DEVICE void load(uint32_t (&x)[NTT_WORDS], const uint32_t* shared, uint32_t thread) {
    const uint32_t base = swizzle<LOG>(first<LOG, PLACES>(thread));
    if constexpr (PLACES == Places::STRIDED || PLACES == Places::BLOCKED) {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = shared[place<LOG, PLACES>(base, i)];
    } else {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS / 4; i++) {
            uint4 words = *reinterpret_cast<const uint4*>(shared + place<LOG, PLACES>(base, i));
            x[4 * i] = words.x, x[4 * i + 1] = words.y, x[4 * i + 2] = words.z, x[4 * i + 3] = words.w;
        }
    }
}

// The 16 factors of a thread for one pass.
struct Factors {
    uint4 pairs[8];
};

HUSH_DEVICE Factors load_factors(const uint2* table, uint32_t first_pair, uint32_t stride) {
    Factors factors;
#pragma unroll
    for (uint32_t h = 0; h < 8; h++) {
        factors.pairs[h] = __ldg(reinterpret_cast<const uint4*>(table) + first_pair + h * stride);
    }
    return factors;
}

HUSH_DEVICE Factors top_factors(const uint2* table) {
    return load_factors(table, 0, 1);
}

template <int LOG>
HUSH_DEVICE Factors middle_factors(const uint2* table, uint32_t thread) {
    return load_factors(table, 8 + thread / MIDDLE_STRIDE<LOG> * 8, 1);
}

template <int LOG>
HUSH_DEVICE Factors bottom_factors(const uint2* table, uint32_t thread) {
    return load_factors(table, (HAS_MIDDLE<LOG> ? 8 + 16 * 8 : 8) + thread, NTT_THREADS<LOG>);
}

HUSH_DEVICE uint2 factor(const Factors& factors, uint32_t j) {
    const uint4& pair = factors.pairs[j / 2];
    return j % 2 ? make_uint2(pair.z, pair.w) : make_uint2(pair.x, pair.y);
}

// Computes a butterfly of Cooley and Tukey: a + b w and a - b w. Modulo primes below 2^31, words are below 2p before and after.
HUSH_DEVICE void forward_butterfly(uint32_t& a, uint32_t& b, uint2 w, uint32_t p) {
    uint32_t product = plantard_mul(b, w, p);
    uint32_t from = fold_mod(a, p);
    a = from + product;
    b = from - product + p;
}

HUSH_DEVICE void forward_butterfly(uint32_t& a, uint32_t& b, uint2 w, WideModulus p) {
    uint32_t product = constant_mul(b, w, p), from = a;
    a = add_mod(from, product, p);
    b = sub_mod(from, product, p);
}

// Returns the canonical form of a word after the last pass.
HUSH_DEVICE uint32_t forward_result(uint32_t x, uint32_t p) {
    return fold_mod(x, p);
}

HUSH_DEVICE uint32_t forward_result(uint32_t x, WideModulus) {
    return x;
}

// Computes a butterfly of Gentleman and Sande: a + b, times `scale` if SCALED, and (a - b) w. Words are canonical before and after.
template <bool SCALED>
HUSH_DEVICE void inverse_butterfly(uint32_t& a, uint32_t& b, uint2 w, uint2 scale, uint32_t p) {
    uint32_t sum = a + b, difference = a - b + p;
    a = SCALED ? plantard_mul(sum, scale, p) : fold_mod(sum, p);
    b = plantard_mul(difference, w, p);
}

template <bool SCALED>
HUSH_DEVICE void inverse_butterfly(uint32_t& a, uint32_t& b, uint2 w, uint2 scale, WideModulus p) {
    uint32_t sum = add_mod(a, b, p), difference = sub_mod(a, b, p);
    a = SCALED ? constant_mul(sum, scale, p) : sum;
    b = constant_mul(difference, w, p);
}

// Computes LAYERS layers of Cooley-Tukey butterflies within each 2^LAYERS words.
template <int LAYERS, class Modulus>
HUSH_DEVICE void forward_pass(uint32_t (&x)[NTT_WORDS], const Factors& factors, Modulus p) {
#pragma unroll
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
#pragma unroll
        for (uint32_t pair = 0; pair < NTT_WORDS / 2; pair++) {
            uint32_t half = (1u << LAYERS) >> (layer + 1);
            uint32_t block = pair / half, low = block * 2 * half + pair % half;
            uint32_t group = block >> layer, index = (group << LAYERS) + (1u << layer) + block % (1u << layer);
            forward_butterfly(x[low], x[low + half], factor(factors, index), p);
        }
    }
}

// Computes LAYERS layers of Gentleman-Sande butterflies within each 2^LAYERS words. If SCALED, sums of the last layer are
// multiplied by factor 0.
template <int LAYERS, bool SCALED, class Modulus>
HUSH_DEVICE void inverse_pass(uint32_t (&x)[NTT_WORDS], const Factors& factors, Modulus p) {
#pragma unroll
    for (uint32_t done = 0; done < LAYERS; done++) {
#pragma unroll
        for (uint32_t pair = 0; pair < NTT_WORDS / 2; pair++) {
            uint32_t half = 1u << done, layer = LAYERS - 1 - done;
            uint32_t block = pair / half, low = block * 2 * half + pair % half;
            uint32_t group = block >> layer, index = (group << LAYERS) + (1u << layer) + block % (1u << layer);
            uint2 w = factor(factors, index), scale = factor(factors, 0);
            if (SCALED && layer == 0) {
                inverse_butterfly<true>(x[low], x[low + half], w, scale, p);
            } else {
                inverse_butterfly<false>(x[low], x[low + half], w, scale, p);
            }
        }
    }
}

} // namespace ntt

// Transforms coefficients, below 2p (for a WidePrime: canonical), to neighbours, canonical. `thread` in 0..T is the thread of this
// transform, and `shared` has its NTT_SHARED_WORDS. All threads of the block must call this together, but a block may run several
// transforms side by side. A barrier comes before the first write to `shared`, and the last accesses are reads: `shared` may be
// written again after another barrier.
template <int LOG, class P>
HUSH_DEVICE void ntt_forward_neighbours(uint32_t (&x)[NTT_WORDS], uint32_t* shared, const RingOf<P>& ring,
                                        uint32_t limb, uint32_t thread) {
    using namespace ntt;
    const auto p = ring.primes[limb].p;
    const uint2* table = ring.forward[limb];
    forward_pass<4>(x, top_factors(table), p);
    __syncthreads();
    store<LOG, Places::STRIDED>(shared, thread, x);
    __syncthreads();
    if constexpr (HAS_MIDDLE<LOG>) {
        load<LOG, Places::BLOCKED>(x, shared, thread);
        forward_pass<4>(x, middle_factors<LOG>(table, thread), p);
        store<LOG, Places::BLOCKED>(shared, thread, x);
        __syncthreads();
    }
    load<LOG, Places::NEIGHBOURS>(x, shared, thread);
    forward_pass<BOTTOM_LAYERS<LOG>>(x, bottom_factors<LOG>(table, thread), p);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = forward_result(x[i], p);
}

// Transforms coefficients to slots, under the rules of ntt_forward_neighbours.
template <int LOG, class P>
HUSH_DEVICE void ntt_forward(uint32_t (&x)[NTT_WORDS], uint32_t* shared, const RingOf<P>& ring, uint32_t limb,
                             uint32_t thread) {
    ntt_forward_neighbours<LOG>(x, shared, ring, limb, thread);
    // Each thread writes where only it has read last: no barrier is needed before.
    ntt::store<LOG, ntt::Places::NEIGHBOURS>(shared, thread, x);
    __syncthreads();
    ntt::load<LOG, ntt::Places::VECTORS>(x, shared, thread);
}

// Transforms neighbours to coefficients, both canonical: the inverse of ntt_forward_neighbours. Its first writes are where the
// calling thread reads last in that function. So a barrier is needed before only if `shared` was used for something else since.
template <int LOG, class P>
HUSH_DEVICE void ntt_inverse_neighbours(uint32_t (&x)[NTT_WORDS], uint32_t* shared, const RingOf<P>& ring,
                                        uint32_t limb, uint32_t thread) {
    using namespace ntt;
    const auto p = ring.primes[limb].p;
    const uint2* table = ring.inverse[limb];
    inverse_pass<BOTTOM_LAYERS<LOG>, false>(x, bottom_factors<LOG>(table, thread), p);
    store<LOG, Places::NEIGHBOURS>(shared, thread, x);
    __syncthreads();
    if constexpr (HAS_MIDDLE<LOG>) {
        load<LOG, Places::BLOCKED>(x, shared, thread);
        inverse_pass<4, false>(x, middle_factors<LOG>(table, thread), p);
        store<LOG, Places::BLOCKED>(shared, thread, x);
        __syncthreads();
    }
    load<LOG, Places::STRIDED>(x, shared, thread);
    inverse_pass<4, true>(x, top_factors(table), p);
}

// Transforms slots to coefficients, both canonical: the inverse of ntt_forward, under the rules of ntt_forward_neighbours.
template <int LOG, class P>
HUSH_DEVICE void ntt_inverse(uint32_t (&x)[NTT_WORDS], uint32_t* shared, const RingOf<P>& ring, uint32_t limb,
                             uint32_t thread) {
    using namespace ntt;
    __syncthreads();
    store<LOG, Places::VECTORS>(shared, thread, x);
    __syncthreads();
    load<LOG, Places::NEIGHBOURS>(x, shared, thread);
    ntt_inverse_neighbours<LOG>(x, shared, ring, limb, thread);
}

// Loads the coefficients of a thread from a limb of a polynomial in global memory.
template <int LOG>
HUSH_DEVICE void load_coefficients(uint32_t (&x)[NTT_WORDS], const uint32_t* limb, uint32_t thread) {
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = limb[thread + i * NTT_THREADS<LOG>];
}

// Stores the coefficients of a thread to a limb of a polynomial in global memory.
template <int LOG>
HUSH_DEVICE void store_coefficients(uint32_t* limb, const uint32_t (&x)[NTT_WORDS], uint32_t thread) {
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) limb[thread + i * NTT_THREADS<LOG>] = x[i];
}

// Loads the slots of a thread. `limb` is aligned to 16 bytes.
template <int LOG>
HUSH_DEVICE void load_slots(uint32_t (&x)[NTT_WORDS], const uint32_t* limb, uint32_t thread) {
#pragma unroll
    for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
        uint4 words = reinterpret_cast<const uint4*>(limb)[thread + j * NTT_THREADS<LOG>];
        x[4 * j] = words.x, x[4 * j + 1] = words.y, x[4 * j + 2] = words.z, x[4 * j + 3] = words.w;
    }
}

// Stores the slots of a thread. `limb` is aligned to 16 bytes.
template <int LOG>
HUSH_DEVICE void store_slots(uint32_t* limb, const uint32_t (&x)[NTT_WORDS], uint32_t thread) {
#pragma unroll
    for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
        reinterpret_cast<uint4*>(limb)[thread + j * NTT_THREADS<LOG>] =
            make_uint4(x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]);
    }
}
