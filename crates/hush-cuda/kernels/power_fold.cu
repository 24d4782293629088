// (7h) The terms c_k of a plane to one ciphertext, by Horner's rule: x = c_(T-1), then x = power [x] x + c_k. The T - 1
// external products depend on each other, so one block does all of them, with the ciphertext in registers; what runs
// side by side are planes and queries.
#include "limb_pair.cuh"

namespace {

// A block: the polynomials a and b, of two limbs each, by T threads a limb.
template <int LOG>
constexpr uint32_t FOLD_THREADS = 2 * PAIR_THREADS<LOG>;

// Where a block finds its operands. Mirrored by `PowerFold` in src/column/rgsw_power_fold.rs.
struct PowerFold {
    uint32_t* out;          // [unit][a, b][limb][slot]
    const uint32_t* masks;  // [plane][k][limb][coefficient]: the halves a of all terms
    const uint32_t* bodies; // [unit][k][limb][coefficient]: the halves b
    // The rows of the RGSW ciphertexts: row 0 meets the digit of a, row 1 that of b.
    const uint32_t* power_masks;  // [row][limb][slot]: their halves a, of all queries alike
    const uint32_t* power_bodies; // [query][row][limb][slot]: their halves b
    uint32_t terms, planes; // T; unit = query planes + plane
    uint32_t first_unit;    // of the block 0; `bodies` begins with it
    uint32_t reserved;
};
static_assert(sizeof(PowerFold) == 56, "the layout of PowerFold");

// x, a half of the ciphertext in coefficients, becomes the same half of power [x] x, in neighbours. `rows` are the
// words of the half and limb in row 0; those in row 1 are PAIR_WORDS later. `residues` is [half][limb][N], of which
// the digits take the places; its last accesses are reads.
template <int LOG>
HUSH_DEVICE void multiply_by_power(uint32_t (&x)[NTT_WORDS], const uint32_t* rows, uint32_t half, uint32_t* transform,
                                   uint32_t* residues, const RingView& ring, const GadgetView& gadget,
                                   PairThread at) {
    constexpr uint32_t N = 1 << LOG;
    take_digit<LOG>(x, residues + half * PAIR_WORDS<LOG>, ring, gadget, at);
    ntt_forward_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
    // Threads with the same slots exchange the digits of a and b.
    uint4* const digits = reinterpret_cast<uint4*>(residues + at.limb * N) + at.thread;
#pragma unroll
    for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
        digits[half * (PAIR_WORDS<LOG> / 4) + v * NTT_THREADS<LOG>] =
            make_uint4(x[4 * v], x[4 * v + 1], x[4 * v + 2], x[4 * v + 3]);
    }
    __syncthreads();
    const Prime prime = ring.primes[at.limb];
    const uint4* const row = reinterpret_cast<const uint4*>(rows) + at.thread * (NTT_WORDS / 4);
#pragma unroll
    for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
        const uint4 a = digits[v * NTT_THREADS<LOG>], b = digits[PAIR_WORDS<LOG> / 4 + v * NTT_THREADS<LOG>];
        const uint4 r = __ldg(row + v), s = __ldg(row + PAIR_WORDS<LOG> / 4 + v);
        x[4 * v] = reduce_64(uint64_t(a.x) * r.x + uint64_t(b.x) * s.x, prime);
        x[4 * v + 1] = reduce_64(uint64_t(a.y) * r.y + uint64_t(b.y) * s.y, prime);
        x[4 * v + 2] = reduce_64(uint64_t(a.z) * r.z + uint64_t(b.z) * s.z, prime);
        x[4 * v + 3] = reduce_64(uint64_t(a.w) * r.w + uint64_t(b.w) * s.w, prime);
    }
}

template <int LOG>
HUSH_DEVICE void add_coefficients(uint32_t (&x)[NTT_WORDS], const uint32_t (&c)[NTT_WORDS], uint32_t p) {
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = add_mod(x[i], c[i], p);
}

// Block (unit), 4 T threads. Shared memory: 8 N words: four transforms, an exchange.
template <int LOG>
HUSH_DEVICE void fold_terms(const PowerFold& fold, const RingView& ring, const GadgetView& gadget, uint32_t* shared) {
    constexpr uint32_t N = 1 << LOG;
    const uint32_t half = threadIdx.x / PAIR_THREADS<LOG>;
    const PairThread at = pair_thread<LOG>(threadIdx.x % PAIR_THREADS<LOG>);
    const uint32_t unit = fold.first_unit + blockIdx.x, p = ring.primes[at.limb].p;
    uint32_t* const transform = shared + (half * PAIR + at.limb) * N;
    uint32_t* const residues = shared + 2 * PAIR_WORDS<LOG>;
    const size_t plane_words = size_t(fold.terms) * PAIR_WORDS<LOG>;
    const uint32_t* const halves =
        half == 0 ? fold.masks + unit % fold.planes * plane_words : fold.bodies + blockIdx.x * plane_words;
    const uint32_t* const terms = halves + at.limb * N;
    const size_t place = half * PAIR_WORDS<LOG> + at.limb * N; // of this half and limb in a ciphertext

    const size_t query = unit / fold.planes;
    const uint32_t* const rows = half == 0 ? fold.power_masks : fold.power_bodies + query * 2 * PAIR_WORDS<LOG>;

    uint32_t x[NTT_WORDS] = {}, term[NTT_WORDS];
    for (uint32_t k = fold.terms - 1; k > 0; k--) {
        load_coefficients<LOG>(term, terms + size_t(k) * PAIR_WORDS<LOG>, at.thread);
        if (k + 1 < fold.terms) ntt_inverse_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
        add_coefficients<LOG>(x, term, p);
        multiply_by_power<LOG>(x, rows + at.limb * N, half, transform, residues, ring, gadget, at);
    }
    load_coefficients<LOG>(term, terms, at.thread);
    ntt_forward_neighbours<LOG>(term, transform, ring, at.limb, at.thread);
    add_coefficients<LOG>(x, term, p);
    store_neighbours(fold.out + size_t(unit) * 2 * PAIR_WORDS<LOG> + place, x, at.thread);
}

} // namespace

extern "C" __global__ void __launch_bounds__(FOLD_THREADS<6>, 1)
    power_fold_6(PowerFold fold, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    fold_terms<6>(fold, ring, gadget, shared);
}
HUSH_KERNEL(power_fold_6)

extern "C" __global__ void __launch_bounds__(FOLD_THREADS<8>, 1)
    power_fold_8(PowerFold fold, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    fold_terms<8>(fold, ring, gadget, shared);
}
HUSH_KERNEL(power_fold_8)

extern "C" __global__ void __launch_bounds__(FOLD_THREADS<11>, 1)
    power_fold_11(PowerFold fold, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    fold_terms<11>(fold, ring, gadget, shared);
}
HUSH_KERNEL(power_fold_11)
