// Compiled kernels, as a driver gets them.
#pragma once
#include <set>
#include <string>

namespace hush_emulate {

/// The names of the kernels in machine code (an ELF file) or text (PTX); none if it is neither.
std::set<std::string> kernels_of(const void* image);

}  // namespace hush_emulate
