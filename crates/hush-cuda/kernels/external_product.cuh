// Operands of the external products of a batch: out = C [x] (y - x) + z, with an RGSW ciphertext C for each query.
//
// A ciphertext is [a, b][limb][slot]. An RGSW ciphertext is 2 l ciphertexts: the rows for the digits of a, then the rows for the
// digits of b.
#pragma once

#include "gadget.cuh"

// The addresses of the ciphertexts of a batch: item i of plane j of query q is at bases[q] + first + i step + j plane (words).
// Items from `count` on are zero. Mirrored by `CiphertextsView` in src/ring/external_product.rs.
struct CiphertextsView {
    uint32_t* const* bases;
    uint64_t first, step, plane;
    uint32_t count, reserved;
};
static_assert(sizeof(CiphertextsView) == 40 && offsetof(CiphertextsView, count) == 32, "the layout of CiphertextsView");

namespace {

// Returns the address of an item, or null if the item is zero.
HUSH_DEVICE uint32_t* item_at(const CiphertextsView& view, uint32_t query, uint32_t plane, uint32_t item) {
    return item < view.count ? view.bases[query] + view.first + item * view.step + plane * view.plane : nullptr;
}

// Returns y - x in four slots of a limb. A null pointer means zero.
template <class Modulus>
HUSH_DEVICE uint4 difference(const uint32_t* y, const uint32_t* x, uint32_t vector, Modulus p) {
    const uint4 from = y ? load_vector(y, vector) : zero_vector(), minus = x ? load_vector(x, vector) : zero_vector();
    return make_uint4(sub_mod(from.x, minus.x, p), sub_mod(from.y, minus.y, p), sub_mod(from.z, minus.z, p),
                      sub_mod(from.w, minus.w, p));
}

// A loader for decompose: the slots of a half of y - x. A null pointer means zero.
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

// Computes an external product modulo a limb. `out()` and `z()` return the addresses of the result and of the addend, and
// `product(source, sink)` multiplies the digits by the rows.
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
