// Polynomials modulo Q_1 to powers of two, for all queries of a batch. Block b * count + i has N / 16 threads and switches
// polynomial first + i of batch b, [limb][slot] each, to widths[i] bits, in 4 limbs N bytes of shared memory. The result
// is [batch][polynomial][coefficient], in words of 64 bits if `wide` is not zero and of 32 bits otherwise.
#include "switch.cuh"

namespace {

// What the kernels take; mirrored by `SwitchJob` in src/ring/mod_switch.rs.
struct SwitchJob {
    const uint64_t* batches; // addresses on the device
    const uint32_t* widths;
    void* out;
    uint32_t first, count, wide, reserved;
};
static_assert(sizeof(SwitchJob) == 40, "the layout of SwitchJob");

template <int LOG>
HUSH_DEVICE void mod_switch(const SwitchJob& job, const RingView& ring, const MixedRadix& radix, uint32_t* shared) {
    const size_t poly_words = size_t(ring.limbs) << LOG;
    const uint32_t i = blockIdx.x % job.count;
    const uint32_t* batch = reinterpret_cast<const uint32_t*>(uintptr_t(job.batches[blockIdx.x / job.count]));
    const uint32_t* poly = batch + (job.first + i) * poly_words;
    const size_t start = size_t(blockIdx.x) << LOG;
    auto load = [&](uint32_t(&x)[NTT_WORDS], uint32_t limb) {
        load_slots<LOG>(x, poly + (size_t(limb) << LOG), threadIdx.x);
    };
    auto sink = [&](uint32_t at, uint64_t value) {
        if (job.wide != 0) {
            static_cast<uint64_t*>(job.out)[start + at] = value;
        } else {
            static_cast<uint32_t*>(job.out)[start + at] = uint32_t(value);
        }
    };
    switch_poly<LOG>(ring, radix, job.widths[i], shared, load, sink);
}

} // namespace

extern "C" __global__ void __launch_bounds__(NTT_THREADS<6>, 1)
    mod_switch_6(SwitchJob job, RingView ring, MixedRadix radix) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    mod_switch<6>(job, ring, radix, shared);
}
HUSH_KERNEL(mod_switch_6)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<8>, 1)
    mod_switch_8(SwitchJob job, RingView ring, MixedRadix radix) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    mod_switch<8>(job, ring, radix, shared);
}
HUSH_KERNEL(mod_switch_8)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 8)
    mod_switch_11(SwitchJob job, RingView ring, MixedRadix radix) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    mod_switch<11>(job, ring, radix, shared);
}
HUSH_KERNEL(mod_switch_11)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<12>, 4)
    mod_switch_12(SwitchJob job, RingView ring, MixedRadix radix) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    mod_switch<12>(job, ring, radix, shared);
}
HUSH_KERNEL(mod_switch_12)
