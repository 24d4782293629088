// Switches polynomials modulo Q_1 to powers of two for all queries of a batch, and packs them to the bytes of an answer. Block
// b * count + i has N / 16 threads and switches polynomial first + i of batch b, [limb][slot]. Its shared memory has N words for
// each limb, and at least 2 N. The result is [batch][bytes of an answer].
#include "bits.cuh"
#include "switch.cuh"

namespace {

// The part of a polynomial that is sent, and the place of its bytes in an answer. Mirrored by `SentPoly` in src/ring/mod_switch.rs.
struct SentPoly {
    uint64_t offset;
    uint32_t bits, stride, count, reserved;
};
static_assert(sizeof(SentPoly) == 24, "the layout of SentPoly");

// The operands of the kernels. Mirrored by `SwitchJob` in src/ring/mod_switch.rs.
struct SwitchJob {
    const uint64_t* batches; // addresses on the device
    const SentPoly* sent;
    uint8_t* out;
    uint64_t answer_bytes;
    uint32_t first, count;
};
static_assert(sizeof(SwitchJob) == 40, "the layout of SwitchJob");

template <int LOG, class P>
HUSH_DEVICE void mod_switch(const SwitchJob& job, const RingOf<P>& ring, const MixedRadix& radix, uint32_t* shared) {
    const size_t poly_words = size_t(ring.limbs) << LOG;
    const uint32_t i = blockIdx.x % job.count;
    const uint32_t* batch = reinterpret_cast<const uint32_t*>(uintptr_t(job.batches[blockIdx.x / job.count]));
    const uint32_t* poly = batch + (job.first + i) * poly_words;
    const SentPoly sent = job.sent[i];
    auto load = [&](uint32_t(&x)[NTT_WORDS], uint32_t limb) {
        load_slots<LOG>(x, poly + (size_t(limb) << LOG), threadIdx.x);
    };
    // A thread stores both halves of a coefficient where it alone has read.
    uint32_t* high = shared + (size_t(1) << LOG);
    auto sink = [&](uint32_t at, uint64_t value) {
        shared[at] = uint32_t(value);
        high[at] = uint32_t(value >> 32);
    };
    switch_poly<LOG>(ring, radix, sent.bits, shared, load, sink);
    __syncthreads();
    auto value = [&](uint64_t at) {
        const uint32_t coefficient = uint32_t(at) * sent.stride;
        return uint64_t(high[coefficient]) << 32 | shared[coefficient];
    };
    uint8_t* out = job.out + blockIdx.x / job.count * job.answer_bytes + sent.offset;
    store_packed(out, sent.bits, sent.count, threadIdx.x, NTT_THREADS<LOG>, value);
}

} // namespace

#define HUSH_MOD_SWITCH(name, log, blocks, Ring)                           \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks) \
        name(SwitchJob job, Ring ring, MixedRadix radix) {                 \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                             \
        mod_switch<log>(job, ring, radix, shared);                         \
    }                                                                      \
    HUSH_KERNEL(name)

HUSH_MOD_SWITCH(mod_switch_6, 6, 1, RingView)
HUSH_MOD_SWITCH(mod_switch_8, 8, 1, RingView)
HUSH_MOD_SWITCH(mod_switch_11, 11, 8, RingView)
HUSH_MOD_SWITCH(mod_switch_12, 12, 4, RingView)
HUSH_MOD_SWITCH(mod_switch_11_wide, 11, 8, WideRingView)
