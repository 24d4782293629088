//! The features of this CPU. No other module of the workspace asks for them. `x86.rs` and `arm.rs` ask the CPUs of an architecture;
//! on others there is [`Level::Portable`] alone.

mod arm;
mod x86;

use std::{fmt, str::FromStr, sync::OnceLock};

use thiserror::Error;

#[cfg(target_arch = "aarch64")]
use self::arm as machine;
#[cfg(target_arch = "x86_64")]
use self::x86 as machine;

/// The environment variable that forces a level.
pub const LEVEL_VARIABLE: &str = "HUSH_CPU";

/// An instruction set that kernels are written for. Each level contains the ones before it. A program has the levels of the
/// architecture that it is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable code, which compilers vectorise for the least that every machine of an architecture has.
    Portable,
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, VL and VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 as above, DQ and IFMA (products of 52 bits).
    #[cfg(target_arch = "x86_64")]
    Avx512Ifma,
    /// AVX-512 as above and AMX tiles with 8-bit products.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// NEON, which every ARMv8 has.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// NEON with dot products of four bytes (`sdot`, optional from ARMv8.2).
    #[cfg(target_arch = "aarch64")]
    Dotprod,
    /// NEON as above with products of 2 x 8 by 8 x 2 bytes (`smmla`, optional from ARMv8.2).
    #[cfg(target_arch = "aarch64")]
    I8mm,
}

impl Level {
    /// All levels of this architecture, ascending.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: &[Self] = &[Self::Portable, Self::Avx2, Self::Avx512, Self::Avx512Ifma, Self::Amx];
    /// All levels of this architecture, ascending.
    #[cfg(target_arch = "aarch64")]
    pub const ALL: &[Self] = &[Self::Portable, Self::Neon, Self::Dotprod, Self::I8mm];
    /// All levels of this architecture, ascending.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub const ALL: &[Self] = &[Self::Portable];

    /// Returns the best level of this machine. Asks the CPU (and the kernel, for AMX) on the first call only.
    pub fn detect() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(machine::best_level)
    }

    /// Returns the levels that this machine has, ascending.
    pub fn usable() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|&level| level <= Self::detect())
    }

    /// Returns the level to run at: the one that `HUSH_CPU` names, or the best of this machine.
    ///
    /// # Errors
    /// [`CpuError::UnknownLevel`] if the variable names no level, [`CpuError::MissingLevel`] if the machine lacks
    /// it.
    pub fn from_env() -> Result<Self, CpuError> {
        match std::env::var_os(LEVEL_VARIABLE) {
            None => Ok(Self::detect()),
            Some(value) => value.to_string_lossy().parse::<Self>()?.require(),
        }
    }

    /// Whether `HUSH_CPU` is set.
    pub(crate) fn is_forced() -> bool {
        std::env::var_os(LEVEL_VARIABLE).is_some()
    }

    /// Returns this level, or [`CpuError::MissingLevel`] if the machine lacks it.
    pub fn require(self) -> Result<Self, CpuError> {
        let best = Self::detect();
        if self <= best { Ok(self) } else { Err(CpuError::MissingLevel { wanted: self, best }) }
    }

    /// Returns the name that `HUSH_CPU` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => "avx512ifma",
            #[cfg(target_arch = "x86_64")]
            Self::Amx => "amx",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Self::Dotprod => "dotprod",
            #[cfg(target_arch = "aarch64")]
            Self::I8mm => "i8mm",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = CpuError;

    fn from_str(value: &str) -> Result<Self, CpuError> {
        let found = Self::ALL.iter().copied().find(|level| level.name() == value);
        found.ok_or_else(|| CpuError::UnknownLevel { value: value.to_owned(), known: Self::ALL })
    }
}

/// A failure to set up the CPU backend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum CpuError {
    #[error("HUSH_CPU is {value:?}, which is no level of this architecture; use {}", names(known))]
    UnknownLevel { value: String, known: &'static [Level] },
    #[error(
        "this machine has no {wanted}; its best level is {best} (set HUSH_CPU to that or a lower one, or unset it)"
    )]
    MissingLevel { wanted: Level, best: Level },
    #[error("cannot start {threads} threads: {reason}")]
    Threads { threads: usize, reason: String },
}

/// Returns the names of levels, separated by commas.
fn names(levels: &[Level]) -> String {
    levels.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ")
}

/// The maker of the cores. Cores differ in what they fetch ahead by themselves, and in how many ports multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Cores of Intel, and of unknown makers.
    Intel,
    /// Cores of AMD, and of Hygon, whose cores are AMD's.
    #[allow(dead_code, reason = "cores of ARM are none of them")]
    Amd,
}

impl Cores {
    /// Asks the CPU for its maker.
    pub(crate) fn detect() -> Self {
        machine::cores()
    }
}

/// The answers on an architecture without levels of its own.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub(super) fn best_level() -> super::Level {
        super::Level::Portable
    }

    pub(super) fn cores() -> super::Cores {
        super::Cores::Intel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        for bad in ["", "AVX2", "sse", "avx512 "] {
            let error = bad.parse::<Level>().unwrap_err();
            assert_eq!(error, CpuError::UnknownLevel { value: bad.to_owned(), known: Level::ALL });
            assert!(error.to_string().contains("use portable"), "{error}");
        }
    }

    #[test]
    fn levels_above_the_best_are_refused() {
        let best = Level::detect();
        for &level in Level::ALL {
            assert_eq!(level.require().is_ok(), level <= best);
        }
    }
}
