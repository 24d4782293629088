//! Look-ups by key: a layer over every protocol.
//!
//! ```text
//!   key ──BLAKE3(table seed)──► digest ─┬─ block_map ──► row block
//!                                       ├─ fingerprint
//!                                       └─ block seed ─► support: slots of the block with coefficients
//!
//!   block:  slot 0 │ slot 1 │ slot 2 │ slot 3 │ ...      one database column each
//!   query:     0   │   1    │   0    │   1    │ ...      encrypted by LWE in place of a one-hot vector
//!   answer:  slot 1 + slot 3 = fingerprint ║ value       modulo 2^k, symbol by symbol
//! ```
//!
//! * [`key_hash`](KeyDigest): the hash of a key, from which everything else of the key follows.
//! * [`block_map`](BlockMap): distributes keys evenly to row blocks. The slots of a key must add up inside one fold, so
//!   they share a row block, and every block has its own filter. A query is then one vector over the columns, as in a
//!   look-up by index.
//! * [`filter`](FilterParams): the filter of a block, `fuse` or `band`. It works over bytes (k = 8, the plaintexts of LWE)
//!   or over words, of which any number k <= 32 of low bits may be kept.
//!
//! A look-up of an absent key finds a pseudo-random value, which the fingerprint reveals. With `f` bytes of fingerprint, an
//! absent key is taken for a present one with probability `2^(-8 f)`.
//!
//! The table's seed must be drawn at random when the table is built. Otherwise a person who chooses keys could put more of
//! them into one block than fit.
//!
//! * [`wrapped`](WrappedFilter): the filters of segments that are asked with the queries of the base.
//!
//! Sources: ChalametPIR (a key-value filter in place of a table, sections 4 and 5), Graf and Lemire (binary fuse
//! filters), Dietzfelbinger and Walzer (banded systems). Row blocks, balancing and the band over Z_2^k are ours.

mod band;
mod block_map;
mod filter;
mod fuse;
mod key_hash;
#[cfg(test)]
mod tests;
mod wrapped;

pub use block_map::{BlockKey, BlockKeys, BlockMap, MAX_BLOCKS, NotBalanced};
pub use filter::{FilterError, FilterKind, FilterParams, UnknownFilter};
pub use key_hash::{KeyDigest, MAX_FINGERPRINT_BYTES, MAX_KEY_BYTES, position_key};
pub use wrapped::{LaneMap, Seeded, WrappedFilter};
