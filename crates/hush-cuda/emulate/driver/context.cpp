#include "context.hpp"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace hush_emulate {
namespace {

constexpr size_t memory_bytes = size_t{4} << 30;
constexpr int most = 8;

std::vector<std::unique_ptr<Context>>& all() {
    static auto* contexts = [] {
        const char* said = std::getenv("HUSH_EMULATED_GPUS");
        const int count = said == nullptr ? 1 : std::atoi(said);
        auto* made = new std::vector<std::unique_ptr<Context>>;
        for (int i = 0; i < count && i < most; i++) made->push_back(std::make_unique<Context>(memory_bytes));
        return made;
    }();
    return *contexts;
}

}  // namespace

int context_count() { return static_cast<int>(all().size()); }

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
