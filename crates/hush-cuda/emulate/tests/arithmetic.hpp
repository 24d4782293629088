#pragma once

/// Checks the modular arithmetic of kernels against 128-bit integers, on extreme and random operands.
void check_arithmetic();
