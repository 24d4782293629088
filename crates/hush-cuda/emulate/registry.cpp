#include "registry.hpp"

#include <cstdio>
#include <cstdlib>

#include "hush_emulate.h"

namespace hush_emulate {
namespace {

// The list of kernels, sorted by name. It is filled before main, and only read afterwards.
const Kernel* first_kernel = nullptr;

}  // namespace

const Kernel* find_kernel(const char* name) {
    for (const Kernel* kernel = first_kernel; kernel != nullptr; kernel = kernel->next)
        if (std::strcmp(kernel->name, name) == 0) return kernel;
    return nullptr;
}

Registration::Registration(const char* name, void (*invoke)(void** params), const size_t* param_bytes,
                           uint32_t cluster)
    : kernel{name, invoke, param_bytes, cluster} {
    const Kernel** at = &first_kernel;
    while (*at != nullptr && std::strcmp((*at)->name, name) < 0) at = const_cast<const Kernel**>(&(*at)->next);
    if (*at != nullptr && std::strcmp((*at)->name, name) == 0) {
        std::fprintf(stderr, "hush_emulate: two kernels are named %s\n", name);
        std::abort();
    }
    kernel.next = *at;
    *at = &kernel;
}

}  // namespace hush_emulate

extern "C" size_t hush_emulate_kernel_count(void) {
    size_t count = 0;
    for (auto* kernel = hush_emulate::first_kernel; kernel != nullptr; kernel = kernel->next) count++;
    return count;
}

extern "C" const char* hush_emulate_kernel_name(size_t at) {
    auto* kernel = hush_emulate::first_kernel;
    for (; kernel != nullptr && at > 0; at--) kernel = kernel->next;
    return kernel != nullptr ? kernel->name : nullptr;
}
