// Images of compiled kernels, as a driver loads them.
#pragma once
#include <set>
#include <string>

namespace hush_emulate {

/// Returns the names of the kernels in machine code (an ELF file) or text (PTX). The set is empty for any other image.
std::set<std::string> kernels_of(const void* image);

}  // namespace hush_emulate
