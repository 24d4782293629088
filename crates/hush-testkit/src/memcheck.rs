//! Requests to valgrind's memcheck: secrets count as undefined memory. A branch or an address that depends on one is an error.
//!
//! A request is a sequence of instructions that does nothing on a machine and that valgrind recognises. It is documented in
//! `valgrind.h` and `memcheck.h` (valgrind 3.19). Source of the idea: Langley, ctgrind.

/// The request for the number of valgrinds around the program.
const RUNNING_ON_VALGRIND: usize = 0x1001;
/// The request that makes memory undefined: the letters MC, and the number of the request.
const MAKE_UNDEFINED: usize = 0x4d43_0001;

/// Returns whether the program runs under valgrind.
pub fn is_watched() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) > 0
}

/// Declares bytes to be secret.
pub fn mark_secret(bytes: &mut [u8]) {
    request(MAKE_UNDEFINED, bytes.as_mut_ptr().expose_provenance(), bytes.len());
}

/// Makes a request of two arguments. Returns 0 where no valgrind is.
#[cfg(target_arch = "x86_64")]
fn request(code: usize, first: usize, second: usize) -> usize {
    let arguments = [code, first, second, 0, 0, 0];
    let mut result = 0;
    // SAFETY: rdi is rotated by 128 bits in all and rbx exchanged with itself, so no register changes. Valgrind reads the
    // arguments and writes rdx. It changes no memory of the program, only its own record of what is defined.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") result, options(nostack)
        );
    }
    result
}

/// Makes no request: the sequence of other machines is not written.
#[cfg(not(target_arch = "x86_64"))]
fn request(_: usize, _: usize, _: usize) -> usize {
    0
}
