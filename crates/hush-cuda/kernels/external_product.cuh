// Operands of the external products of a batch: out = C [x] (y - x) + z, with a RGSW ciphertext C for each query.
//
// Ciphertexts are [a, b][limb][slot]; an RGSW ciphertext is 2 l of them, the rows that meet the digits of a, then those
// that meet the digits of b.
#pragma once

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
template <class Modulus>
HUSH_DEVICE uint4 difference(const uint32_t* y, const uint32_t* x, uint32_t vector, Modulus p) {
    const uint4 from = y ? load_vector(y, vector) : zero_vector(), minus = x ? load_vector(x, vector) : zero_vector();
    return make_uint4(sub_mod(from.x, minus.x, p), sub_mod(from.y, minus.y, p), sub_mod(from.z, minus.z, p),
                      sub_mod(from.w, minus.w, p));
}

// Slots of a half of y - x, as decompose reads them; null is zero.
template <class P>
struct Difference {
    const uint32_t *y, *x;
    size_t first; // the half, and the slots of the calling thread
    const RingOf<P>& ring;

    template <class LogDegree>
    HUSH_DEVICE void operator()(LogDegree, uint32_t (&words)[NTT_WORDS], uint32_t limb) const {
        constexpr int LOG = LogDegree::value;
        const size_t at = first + (size_t(limb) << LOG);
        const uint32_t* from = y ? y + at : nullptr;
        const uint32_t* other = x ? x + at : nullptr;
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint4 slots = difference(from, other, j * NTT_THREADS<LOG>, ring.primes[limb].p);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) words[4 * j + k] = word(slots, k);
        }
    }
};

template <class P>
Difference(const uint32_t*, const uint32_t*, size_t, const RingOf<P>&) -> Difference<P>;

// An external product modulo a limb. `out()` and `z()` say where it goes and what is added, `product(source, sink)` multiplies
// the digits by the rows.
template <class P, class Out, class Z, class Product>
HUSH_DEVICE void multiply(const Out& out, const Z& z, uint32_t limb, const RingOf<P>& ring, const Product& product) {
    auto place = [&](uint32_t half) { return (half * ring.limbs + made_anew(limb)) << ring.log_degree; };
    auto source = [&](uint32_t half, uint32_t vector) {
        const uint32_t* from = z();
        return from ? load_vector(from + place(half), vector) : zero_vector();
    };
    auto put = [&](uint32_t half, uint32_t vector, uint4 sums) { store_vector(out() + place(half), vector, sums); };
    product(source, put);
}

} // namespace
