#include "context.hpp"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace hush_emulate {
namespace {

constexpr size_t memory_mib = 4 << 10;
constexpr size_t most = 8;

/// Returns the number in an environment variable, or `otherwise` if it is not set.
size_t number(const char* variable, size_t otherwise) {
    const char* said = std::getenv(variable);
    return said == nullptr ? otherwise : std::strtoul(said, nullptr, 10);
}

std::vector<std::unique_ptr<Context>>& all() {
    static auto* contexts = [] {
        const size_t count = number("HUSH_EMULATED_GPUS", 1), bytes = number("HUSH_EMULATED_MIB", memory_mib) << 20;
        auto* made = new std::vector<std::unique_ptr<Context>>;
        for (size_t i = 0; i < count && i < most; i++) made->push_back(std::make_unique<Context>(bytes));
        return made;
    }();
    return *contexts;
}

}  // namespace

int context_count() { return static_cast<int>(all().size()); }

bool are_least_hasty() {
    static const bool are = number("HUSH_EMULATED_HASTY", 0) == 1;
    return are;
}

Context* context(int ordinal) {
    return ordinal >= 0 && ordinal < context_count() ? all()[ordinal].get() : nullptr;
}

bool enable_peer(Context* self, Context* peer) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    return self->peers.insert(peer).second;
}

bool is_elsewhere(const Context* self, const void* address) {
    for (const auto& other : all())
        if (other.get() != self && other->memory.hold(address, 1)) return true;
    return false;
}

}  // namespace hush_emulate
