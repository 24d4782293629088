//! The features of this CPU. No other module of the workspace asks for them.

use std::{
    arch::x86_64::{__cpuid, __cpuid_count, _xgetbv},
    fmt,
    str::FromStr,
    sync::OnceLock,
};

use thiserror::Error;

/// The environment variable that forces a level.
pub const LEVEL_VARIABLE: &str = "HUSH_CPU";

/// An instruction set that kernels are written for. Each level contains the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable code.
    Scalar,
    /// AVX2.
    Avx2,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512,
    /// AVX-512 as above, DQ and IFMA (products of 52 bits).
    Avx512Ifma,
    /// AVX-512 as above and AMX tiles with 8-bit products.
    Amx,
}

impl Level {
    /// All levels, ascending.
    pub const ALL: [Self; 5] = [Self::Scalar, Self::Avx2, Self::Avx512, Self::Avx512Ifma, Self::Amx];

    /// Returns the best level of this machine. Asks the CPU (and the kernel, for AMX) on the first call only.
    pub fn detect() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni");
            let ifma = is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512ifma");
            match (is_x86_feature_detected!("avx2"), avx512, ifma) {
                (false, _, _) => Self::Scalar,
                (true, false, _) => Self::Avx2,
                (true, true, false) => Self::Avx512,
                (true, true, true) if amx_usable() => Self::Amx,
                (true, true, true) => Self::Avx512Ifma,
            }
        })
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
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Ifma => "avx512ifma",
            Self::Amx => "amx",
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
        Self::ALL
            .into_iter()
            .find(|level| level.name() == value)
            .ok_or_else(|| CpuError::UnknownLevel { value: value.to_owned() })
    }
}

/// A failure to set up the CPU backend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum CpuError {
    #[error("HUSH_CPU is {value:?}, expected scalar, avx2, avx512, avx512ifma or amx")]
    UnknownLevel { value: String },
    #[error(
        "this machine has no {wanted}; its best level is {best} (set HUSH_CPU to that or a lower one, or unset it)"
    )]
    MissingLevel { wanted: Level, best: Level },
    #[error("cannot start {threads} threads: {reason}")]
    Threads { threads: usize, reason: String },
}

/// The maker of the cores. Cores differ in what they fetch ahead by themselves, and in how many ports multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Cores of Intel, and of unknown makers.
    Intel,
    /// Cores of AMD, and of Hygon, whose cores are AMD's.
    Amd,
}

impl Cores {
    /// Asks the CPU for its vendor.
    pub(crate) fn detect() -> Self {
        let vendor = __cpuid(0);
        match [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() {
            b"AuthenticAMD" | b"HygonGenuine" => Self::Amd,
            _ => Self::Intel,
        }
    }
}

/// Returns whether the CPU has AMX tiles with 8-bit products, and the operating system lets this process use them.
fn amx_usable() -> bool {
    const XSAVE_ENABLED: u32 = 1 << 27;
    const AMX_TILE: u32 = 1 << 24;
    const AMX_INT8: u32 = 1 << 25;
    const TILE_STATE: u64 = 0b11 << 17;
    let max_leaf = __cpuid(0).eax;
    if max_leaf < 7 || __cpuid(1).ecx & XSAVE_ENABLED == 0 {
        return false;
    }
    if __cpuid_count(7, 0).edx & (AMX_TILE | AMX_INT8) != AMX_TILE | AMX_INT8 {
        return false;
    }
    // SAFETY: the XSAVE_ENABLED bit says that the operating system lets user code read XCR0.
    let enabled_state = unsafe { read_xcr0() };
    enabled_state & TILE_STATE == TILE_STATE && request_tile_state()
}

/// # Safety
/// The CPU must have XSAVE and the operating system must have enabled it.
#[target_feature(enable = "xsave")]
unsafe fn read_xcr0() -> u64 {
    // SAFETY: the caller promises that XSAVE is enabled.
    unsafe { _xgetbv(0) }
}

/// Asks the kernel for the tile state. Linux grants it on request only, as it is 8 KiB a thread. The permission
/// holds for the whole process, also for threads started later.
fn request_tile_state() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: this request reads two integers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        for bad in ["", "AVX2", "sse", "avx512 "] {
            assert_eq!(bad.parse::<Level>(), Err(CpuError::UnknownLevel { value: bad.to_owned() }));
        }
    }

    #[test]
    fn levels_above_the_best_are_refused() {
        let best = Level::detect();
        for level in Level::ALL {
            assert_eq!(level.require().is_ok(), level <= best);
        }
    }
}
