//! The target of a look-up, before encryption.

use zeroize::Zeroize;

/// A short vector over the columns, and the block of its slots. It is the secret of a look-up, so it has no `Debug` and is
/// wiped when dropped.
#[derive(Clone)]
pub struct Target {
    /// Pairs `(column, coefficient)`. The wanted slot value is the sum of `coefficient * slot`: modulo 256 and byte by byte
    /// over LWE, modulo 2^k and symbol by symbol over rings.
    pub columns: Vec<(u32, u8)>,
    /// The block.
    pub block: usize,
}

impl Drop for Target {
    fn drop(&mut self) {
        self.columns.zeroize();
        self.block.zeroize();
    }
}
