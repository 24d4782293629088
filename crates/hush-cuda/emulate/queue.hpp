// A growing array whose accesses ThreadSanitizer does not see, so that fibers may share it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "sanitizer.hpp"

namespace hush_emulate {

template <class T>
struct Queue {
    static_assert(std::is_trivially_copyable_v<T>);
    T* items = nullptr;
    uint32_t count = 0, capacity = 0;

    Queue() = default;
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue() { std::free(items); }

    HUSH_UNSANITIZED void reserve(uint32_t wanted) {
        if (wanted <= capacity) return;
        items = static_cast<T*>(std::realloc(static_cast<void*>(items), wanted * sizeof(T)));
        if (items == nullptr) std::abort();
        capacity = wanted;
    }

    HUSH_UNSANITIZED void push(const T& item) {
        if (count == capacity) reserve(capacity == 0 ? 16 : 2 * capacity);
        items[count++] = item;
    }

    /// Removes the items `[0, end)`. The others keep their order.
    HUSH_UNSANITIZED void drop_first(uint32_t end) {
        for (uint32_t i = end; i < count; i++) items[i - end] = items[i];
        count -= end;
    }

    /// Removes item `at`, and moves the last item to its place.
    HUSH_UNSANITIZED T take(uint32_t at) {
        T item = items[at];
        items[at] = items[--count];
        return item;
    }
};

}  // namespace hush_emulate
