//! The seed from which client and server derive the same public values of a table.

/// The seed of a table's public values, its matrices and masks: the hash of the table's geometry.
///
/// Client and server compute the seed from the descriptor and never take the seed itself from the network. Every stream has a
/// domain string, so that matrices and masks of one seed are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicSeed(pub [u8; 32]);
