//! An emulator of the AMX instructions, on machines of x86-64.

mod x86;

/// Catches illegal instructions of this process from now on, and executes those that are AMX 8-bit instructions. Does nothing on
/// other architectures, whose programs have none.
pub fn install() {
    #[cfg(target_arch = "x86_64")]
    x86::install();
}
