//! The target of a look-up, before encryption.

use zeroize::Zeroize;

/// A small vector over the columns, and the block in which its slots lie: what a client keeps to itself, so it has
/// no `Debug` and is wiped when dropped.
#[derive(Clone)]
pub struct Target {
    /// `(column, coefficient)`: the sum of these slots is the slot value asked for: modulo 256, byte by byte,
    /// or over rings modulo 2^k, symbol by symbol.
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
