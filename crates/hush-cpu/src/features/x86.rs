//! The levels of an x86-64 CPU.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

use super::{Cores, Level};

/// Asks the CPU for its best level.
pub(super) fn best_level() -> Level {
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    let ifma = is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512ifma");
    match (is_x86_feature_detected!("avx2"), avx512, ifma) {
        (false, _, _) => Level::Portable,
        (true, false, _) => Level::Avx2,
        (true, true, false) => Level::Avx512,
        (true, true, true) if amx_usable() => Level::Amx,
        (true, true, true) => Level::Avx512Ifma,
    }
}

/// Asks the CPU for its vendor.
pub(super) fn cores() -> Cores {
    let vendor = __cpuid(0);
    match [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() {
        b"AuthenticAMD" | b"HygonGenuine" => Cores::Amd,
        _ => Cores::Intel,
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
