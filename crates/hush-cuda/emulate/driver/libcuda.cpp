// The part of the CUDA driver's interface that the backend uses, over the emulator. Tests on machines without a GPU run the code
// that opens GPUs, loads compiled kernels, copies and launches. There is one Hopper GPU or several (context.hpp). Their work runs
// as late as a driver may run it, or part of it as early as possible (HUSH_EMULATED_HASTY).
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../hush_emulate.h"
#include "../registry.hpp"
#include "context.hpp"
#include "image.hpp"
#include "memory.hpp"
#include "stream.hpp"

namespace {

using namespace hush_emulate;
using Clock = std::chrono::steady_clock;

// The driver's error numbers.
enum Result {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    invalid_image = 200,
    invalid_context = 201,
    invalid_handle = 400,
    not_found = 500,
    illegal_address = 700,
    peer_already_enabled = 704,
    launch_failed = 719,
};

// The driver's attribute numbers.
enum Attribute {
    multiprocessors = 16,
    l2_bytes = 38,
    capability_major = 75,
    capability_minor = 76,
    shared_per_multiprocessor = 81,
    shared_per_block = 97,
};
constexpr int registers = 4, max_dynamic_shared = 8;

constexpr int cuda_version = 13000;
constexpr int least_priority = 0, greatest_priority = -5;
constexpr HushEmulation hopper{9, 0, 0, 0};
constexpr uint32_t default_shared = 48 << 10, most_shared = 227 << 10, most_threads = 1024;
constexpr size_t pinned_memory = size_t{4} << 30, code_bytes = 4 << 10;

struct Function {
    const Kernel* kernel;
    uint32_t shared;
    /// The GPU memory that the module takes once it is loaded.
    void* code = nullptr;
};

struct Module {
    std::set<std::string> kernels;
    std::map<std::string, Function> functions;
};

struct Event {
    Context* context;
    Stream* stream = nullptr;
    uint64_t place = 0;
    std::shared_ptr<Clock::time_point> time;
};

Blocks& pinned() {
    static auto* blocks = new Blocks(pinned_memory);
    return *blocks;
}

/// The current context of this thread, or null.
thread_local Context* current = nullptr;

template <class T, class V>
int give(T* to, V value) {
    *to = value;
    return success;
}

/// Returns the error that every call returns now, or 0: the thread has no context, or earlier work failed.
int refusal() { return current == nullptr ? int{invalid_context} : current->failure.load(); }

/// Returns the error of work on a stream, or 0: the stream may belong to another context.
int refusal(const Stream* stream) {
    if (const int error = refusal()) return error;
    return stream->context() == current ? success : invalid_handle;
}

/// Loads a kernel, unless it is loaded. Returns an error if its code does not fit the GPU's memory.
int load(Function* function) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    if (function->code == nullptr) function->code = current->memory.allocate(code_bytes);
    return function->code == nullptr ? int{out_of_memory} : int{success};
}

/// Queues a copy. Both blocks must exist now, and still exist when the copy runs.
int queue_copy(Stream* stream, Blocks& to_blocks, void* to, Blocks& from_blocks, const void* from, size_t bytes) {
    auto there = [=, &to_blocks, &from_blocks] {
        return to_blocks.hold(to, bytes) && from_blocks.hold(from, bytes);
    };
    if (!there()) return invalid_value;
    stream->push([=] {
        if (!there()) return int{illegal_address};
        std::memmove(to, from, bytes);
        return int{success};
    });
    return success;
}

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

/// The arguments of a launch. The driver copies them when the launch is queued.
struct Arguments {
    std::vector<std::vector<uint8_t>> bytes;

    Arguments(const size_t* sizes, void** params) {
        for (; *sizes != 0; sizes++, params++) {
            const uint8_t* from = static_cast<const uint8_t*>(*params);
            bytes.emplace_back(from, from + *sizes);
        }
    }

    /// Returns whether a word of the arguments is an address in the memory of another GPU.
    bool point_elsewhere(const Context* gpu) const {
        for (const auto& one : bytes)
            for (size_t at = 0; at + sizeof(uint64_t) <= one.size(); at += sizeof(uint64_t)) {
                uint64_t word;
                std::memcpy(&word, one.data() + at, sizeof word);
                if (is_elsewhere(gpu, pointer(word))) return true;
            }
        return false;
    }

    std::vector<void*> pointers() {
        std::vector<void*> pointers;
        for (auto& one : bytes) pointers.push_back(one.data());
        return pointers;
    }
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return success; }

int cuDriverGetVersion(int* version) { return give(version, cuda_version); }

int cuGetErrorName(int error, const char** text) {
    static const std::map<int, const char*> names{
        {invalid_value, "CUDA_ERROR_INVALID_VALUE"},     {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {invalid_image, "CUDA_ERROR_INVALID_IMAGE"},     {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
        {not_found, "CUDA_ERROR_NOT_FOUND"},             {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {launch_failed, "CUDA_ERROR_LAUNCH_FAILED"},     {invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
        {peer_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    };
    const auto name = names.find(error);
    *text = name == names.end() ? "CUDA_ERROR_UNKNOWN" : name->second;
    return success;
}

int cuGetErrorString(int, const char** text) { return give(text, "an error of the emulated driver"); }

int cuDeviceGetCount(int* count) { return give(count, context_count()); }

int cuDeviceGet(int* handle, int ordinal) { return context(ordinal) ? give(handle, ordinal) : invalid_value; }

int cuDeviceGetName(char* name, int bytes, int) {
    std::strncpy(name, "emulated driver", bytes);
    return success;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
    static const std::map<int, int> values{
        {multiprocessors, 3},     {l2_bytes, 1 << 20},           {capability_major, hopper.capability_major},
        {capability_minor, 0},    {shared_per_block, most_shared}, {shared_per_multiprocessor, most_shared + 1024},
    };
    const auto found = values.find(attribute);
    if (found == values.end()) return invalid_value;
    return give(value, found->second);
}

int cuDeviceTotalMem_v2(size_t* bytes, int ordinal) { return give(bytes, context(ordinal)->memory.capacity()); }

int cuDevicePrimaryCtxRetain(Context** handle, int ordinal) { return give(handle, context(ordinal)); }

int cuDevicePrimaryCtxRelease_v2(int) { return success; }

int cuCtxSetCurrent(Context* handle) { return give(&current, handle); }

int cuDeviceCanAccessPeer(int* can, int ordinal, int peer) { return give(can, ordinal != peer); }

int cuCtxEnablePeerAccess(Context* peer, unsigned) {
    if (const int error = refusal()) return error;
    return enable_peer(current, peer) ? success : peer_already_enabled;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
    if (const int error = refusal()) return error;
    *total = current->memory.capacity();
    return give(free, current->memory.free_bytes());
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    if (const int error = refusal()) return error;
    if (bytes == 0) return invalid_value;
    *address = reinterpret_cast<uint64_t>(current->memory.allocate(bytes));
    return *address == 0 ? out_of_memory : success;
}

/// Frees memory at once. The real driver may wait for queued work first, but callers must not rely on that.
int cuMemFree_v2(uint64_t address) {
    if (const int error = refusal()) return error;
    return current->memory.free(pointer(address)) ? success : invalid_value;
}

int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
    if (const int error = refusal()) return error;
    *memory = pinned().allocate(bytes);
    return *memory == nullptr ? out_of_memory : success;
}

int cuMemFreeHost(void* memory) {
    if (const int error = refusal()) return error;
    return pinned().free(memory) ? success : invalid_value;
}

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (const int error = refusal()) return error;
    *least = least_priority;
    return give(greatest, greatest_priority);
}

int cuStreamCreateWithPriority(Stream** stream, unsigned, int priority) {
    if (const int error = refusal()) return error;
    return give(stream, new Stream(current, priority >= least_priority && are_least_hasty()));
}

int cuStreamSynchronize(Stream* stream) {
    if (const int error = refusal(stream)) return error;
    stream->run();
    return current->failure;
}

/// Runs the stream's work, and never deletes the stream: streams of other contexts may still wait for it.
int cuStreamDestroy_v2(Stream* stream) {
    stream->run();
    return success;
}

int cuEventCreate(Event** event, unsigned) {
    if (const int error = refusal()) return error;
    return give(event, new Event{current, nullptr, 0, nullptr});
}

int cuEventRecord(Event* event, Stream* stream) {
    if (const int error = refusal(stream)) return error;
    if (event->context != current) return invalid_handle;
    auto time = std::make_shared<Clock::time_point>();
    event->stream = stream;
    event->time = time;
    event->place = stream->push([time] { return give(time.get(), Clock::now()); });
    return success;
}

int cuEventSynchronize(Event* event) {
    if (const int error = refusal()) return error;
    if (event->stream != nullptr) event->stream->run(event->place);
    return current->failure;
}

/// Queues a wait for the event's last record. The event may be recorded again or destroyed before the stream has waited, and may
/// belong to another context.
int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
    if (const int error = refusal(stream)) return error;
    Stream* const from = event->stream;
    if (from == nullptr) return success;
    stream->push([from, place = event->place] {
        from->run(place);
        return int{success};
    });
    return success;
}

int cuEventElapsedTime_v2(float* milliseconds, Event* start, Event* end) {
    if (const int error = refusal()) return error;
    *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
    return success;
}

int cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

int cuEventDestroy_v2(Event* event) {
    delete event;
    return success;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, Stream* stream) {
    if (const int error = refusal(stream)) return error;
    Blocks& device = current->memory;
    if (!device.hold(pointer(to), bytes)) return invalid_value;
    stream->push([=, &device] {
        if (!device.hold(pointer(to), bytes)) return int{illegal_address};
        std::memset(pointer(to), value, bytes);
        return int{success};
    });
    return success;
}

/// Queues a copy to the GPU. Pinned memory is read when the copy runs; other memory is saved at once.
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
    if (const int error = refusal(stream)) return error;
    Blocks& device = current->memory;
    if (pinned().hold(from, bytes)) return queue_copy(stream, device, pointer(to), pinned(), from, bytes);
    if (!device.hold(pointer(to), bytes)) return invalid_value;
    const uint8_t* words = static_cast<const uint8_t*>(from);
    auto aside = std::make_shared<std::vector<uint8_t>>(words, words + bytes);
    stream->push([=, &device] {
        if (!device.hold(pointer(to), bytes)) return int{illegal_address};
        std::memcpy(pointer(to), aside->data(), bytes);
        return int{success};
    });
    return success;
}

/// Queues a copy from the GPU to pinned memory. The backend never copies to other memory.
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
    if (const int error = refusal(stream)) return error;
    return queue_copy(stream, pinned(), to, current->memory, pointer(from), bytes);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    if (const int error = refusal(stream)) return error;
    return queue_copy(stream, current->memory, pointer(to), current->memory, pointer(from), bytes);
}

int cuMemcpyPeerAsync(uint64_t to, Context* to_context, uint64_t from, Context* from_context, size_t bytes,
                      Stream* stream) {
    if (const int error = refusal(stream)) return error;
    return queue_copy(stream, to_context->memory, pointer(to), from_context->memory, pointer(from), bytes);
}

int cuModuleLoadData(Module** module, const void* image) {
    if (const int error = refusal()) return error;
    auto kernels = kernels_of(image);
    if (kernels.empty()) return invalid_image;
    return give(module, new Module{std::move(kernels), {}});
}

int cuModuleUnload(Module* module) {
    if (const int error = refusal()) return error;
    for (const auto& function : module->functions)
        if (function.second.code != nullptr) current->memory.free(function.second.code);
    delete module;
    return success;
}

/// Returns a kernel that the compiled module has. The kernel is loaded at its first launch, or before by cuFuncLoad. Its emulated
/// counterpart runs, which the C++ compiler made.
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
    if (const int error = refusal()) return error;
    const Kernel* kernel = find_kernel(name);
    if (module->kernels.count(name) == 0 || kernel == nullptr) return not_found;
    return give(function, &module->functions.emplace(name, Function{kernel, default_shared}).first->second);
}

int cuFuncLoad(Function* function) {
    if (const int error = refusal()) return error;
    return load(function);
}

int cuFuncGetAttribute(int* value, int attribute, Function*) {
    if (const int error = refusal()) return error;
    return attribute == registers ? give(value, 128) : int{invalid_value};
}

int cuFuncSetAttribute(Function* function, int attribute, int value) {
    if (const int error = refusal()) return error;
    if (attribute != max_dynamic_shared || value < 0 || uint32_t(value) > most_shared) return invalid_value;
    return give(&function->shared, value);
}

int cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned block_y,
                   unsigned block_z, unsigned shared, Stream* stream, void** params, void** extra) {
    if (const int error = refusal(stream)) return error;
    const bool grid = x > 0 && x < 1u << 31 && y > 0 && y < 1 << 16 && z > 0 && z < 1 << 16;
    const bool threads = block > 0 && block <= most_threads && block_y == 1 && block_z == 1;
    const Kernel* kernel = function->kernel;
    if (x % kernel->cluster != 0) return invalid_value;
    if (!grid || !threads || shared > function->shared || extra != nullptr) return invalid_value;
    if (const int error = load(function)) return error;
    auto arguments = std::make_shared<Arguments>(kernel->param_bytes, params);
    Context* const gpu = current;
    stream->push([=] {
        // A peer's memory is accessible, but its work is not ordered with this launch.
        if (arguments->point_elsewhere(gpu)) return int{illegal_address};
        const uint32_t blocks[3] = {x, y, z};
        HushEmulation options = hopper;
        options.threads = std::thread::hardware_concurrency();
        auto pointers = arguments->pointers();
        const int outcome = hush_emulate_launch(kernel->name, blocks, block, shared, pointers.data(), &options);
        return int{outcome == HUSH_EMULATE_OK ? success : launch_failed};
    });
    return success;
}

}  // extern "C"
