#pragma once

/// Checks modular arithmetic of kernels against that of 128-bit integers, on extreme and on random operands.
void check_arithmetic();
