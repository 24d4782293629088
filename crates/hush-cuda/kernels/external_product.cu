// External products of a batch: out = C [x] (y - x) + z, with a RGSW ciphertext C for each query: external_decompose,
// then external_product, for all items of all planes of all queries.
//
// Ciphertexts are [a, b][limb][slot]; an RGSW ciphertext is 2 l of them, the rows that meet the digits of a, then those
// that meet the digits of b. A block has N / 16 threads (ntt.cuh).
#include "gadget.cuh"

// Where the ciphertexts of a batch are: item i of plane j of query q at bases[q] + first + i step + j plane (words).
// Items from `count` on are zero. Mirrored by `CiphertextsView` in src/ring/external_product.rs.
struct CiphertextsView {
    uint32_t* const* bases;
    uint64_t first, step, plane;
    uint32_t count, reserved;
};
static_assert(sizeof(CiphertextsView) == 40 && offsetof(CiphertextsView, count) == 32, "the layout of CiphertextsView");

namespace {

// An item, or null.
HUSH_DEVICE uint32_t* item_at(const CiphertextsView& view, uint32_t query, uint32_t plane, uint32_t item) {
    return item < view.count ? view.bases[query] + view.first + item * view.step + plane * view.plane : nullptr;
}

// y - x, four slots of a limb; null is zero.
HUSH_DEVICE uint4 difference(const uint32_t* y, const uint32_t* x, uint32_t vector, uint32_t p) {
    const uint4 from = y ? load_vector(y, vector) : zero_vector(), minus = x ? load_vector(x, vector) : zero_vector();
    return make_uint4(sub_mod(from.x, minus.x, p), sub_mod(from.y, minus.y, p), sub_mod(from.z, minus.z, p),
                      sub_mod(from.w, minus.w, p));
}

} // namespace

// Digits of both halves of y - x: [query][plane][item][half][digit][N]. Block (2 item + half, plane, query).
extern "C" __global__ void __launch_bounds__(256, 3)
    external_decompose(uint32_t* digits, CiphertextsView y, CiphertextsView x, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t item = blockIdx.x / 2;
    const size_t half = blockIdx.x % 2 * poly_words(ring) + 4 * threadIdx.x;
    const uint32_t* plus = item_at(y, blockIdx.z, blockIdx.y, item);
    const uint32_t* minus = item_at(x, blockIdx.z, blockIdx.y, item);
    auto load = [&](auto log_degree, uint32_t(&words)[NTT_WORDS], uint32_t limb) {
        constexpr int LOG = decltype(log_degree)::value;
        const size_t at = half + (size_t(limb) << LOG);
        const uint32_t* from = plus ? plus + at : nullptr;
        const uint32_t* other = minus ? minus + at : nullptr;
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint4 slots = difference(from, other, j * NTT_THREADS<LOG>, ring.primes[limb].p);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) words[4 * j + k] = word(slots, k);
        }
    };
    const size_t poly = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    decompose(digits + poly * gadget.digits * ring.degree, ring, gadget, shared, load);
}
HUSH_KERNEL(external_decompose)

// The products, from the digits of external_decompose, and z. Block (limbs item + limb, plane, query). `rgsw` has the
// rows of each query.
extern "C" __global__ void __launch_bounds__(256, 2)
    external_product(CiphertextsView out, const uint32_t* digits, const uint32_t* const* rgsw, CiphertextsView z,
                     RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x % ring.limbs, item = blockIdx.x / ring.limbs, rows = 2 * gadget.digits;
    const size_t items = gridDim.x / ring.limbs, poly = poly_words(ring), limb_at = size_t(limb) * ring.degree;
    const size_t ciphertext = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * items + item;
    uint32_t* to = item_at(out, blockIdx.z, blockIdx.y, item) + limb_at;
    const uint32_t* from = item_at(z, blockIdx.z, blockIdx.y, item);
    auto source = [&](uint32_t half, uint32_t vector) {
        return from ? load_vector(from + limb_at + half * poly, vector) : zero_vector();
    };
    auto put = [&](uint32_t half, uint32_t vector, uint4 sums) { store_vector(to + half * poly, vector, sums); };
    digits += ciphertext * rows * ring.degree;
    gadget_product<2>(digits, rgsw[blockIdx.z], rows, limb, ring, gadget, shared, source, put);
}
HUSH_KERNEL(external_product)
