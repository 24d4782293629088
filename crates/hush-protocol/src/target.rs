//! What a look-up asks for, before encryption.

/// A small vector over the columns, and the row block in which its slots lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `(column, coefficient)`: the sum of these slots modulo 256, byte by byte, is the slot value asked for.
    pub columns: Vec<(u32, u8)>,
    /// The row block.
    pub block: usize,
}
