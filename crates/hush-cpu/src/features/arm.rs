//! The levels of an ARM CPU of 64 bits.
#![cfg(target_arch = "aarch64")]

use std::arch::is_aarch64_feature_detected;

use super::{Cores, Level};

/// Asks the operating system for the best level of the CPU.
pub(super) fn best_level() -> Level {
    match (is_aarch64_feature_detected!("dotprod"), is_aarch64_feature_detected!("i8mm")) {
        (true, true) => Level::I8mm,
        (true, false) => Level::Dotprod,
        (false, _) => Level::Neon,
    }
}

/// Returns [`Cores::Intel`]: no kernel for ARM depends on the maker.
pub(super) fn cores() -> Cores {
    Cores::Intel
}
