// The registry of the program's kernels by name, and calls of kernels with the arguments of a launch.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace hush_emulate {

/// A registered kernel.
struct Kernel {
    const char* name;
    /// Calls the kernel in the running thread.
    void (*invoke)(void** params);
    /// The size of each argument in bytes, then a zero.
    const size_t* param_bytes;
    /// The number of blocks of a cluster, in the first dimension of the grid.
    uint32_t cluster;
    const Kernel* next = nullptr;
};

/// Returns the kernel of that name, or null.
const Kernel* find_kernel(const char* name);

/// The registration of a kernel at the start of the program. It is never removed.
struct Registration {
    Registration(const char* name, void (*invoke)(void** params), const size_t* param_bytes, uint32_t cluster);
    Kernel kernel;
};

/// Returns a copy of an argument of type T: each thread has its own.
template <class T>
T load_param(const void* param) {
    static_assert(std::is_trivially_copyable_v<T>, "arguments of kernels are copied byte by byte");
    alignas(T) unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, param, sizeof(T));
    return *reinterpret_cast<T*>(bytes);
}

/// A function that calls a kernel with the arguments of a launch, and the sizes of these arguments.
template <auto function>
struct Invoke;

template <class... Args, void (*function)(Args...)>
struct Invoke<function> {
    static_assert(sizeof...(Args) <= 16, "kernels take at most 16 arguments");

    static constexpr size_t param_bytes[] = {sizeof(Args)..., 0};

    static void call(void** params) { call(params, std::index_sequence_for<Args...>()); }

private:
    template <size_t... at>
    static void call([[maybe_unused]] void** params, std::index_sequence<at...>) {
        function(load_param<Args>(params[at])...);
    }
};

}  // namespace hush_emulate

#define HUSH_KERNEL(name) HUSH_CLUSTER_KERNEL(name, 1)
#define HUSH_CLUSTER_KERNEL(name, blocks)                                                                             \
    static const ::hush_emulate::Registration register_##name{#name, ::hush_emulate::Invoke<&name>::call,             \
                                                              ::hush_emulate::Invoke<&name>::param_bytes, blocks};
