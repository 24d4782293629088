//! Look-ups by key: a layer over every protocol.
//!
//! ```text
//!   key ──BLAKE3(table seed)──► digest ─┬─ block_map ──► row block
//!                                       ├─ fingerprint
//!                                       └─ block seed ─► support: slots of the block with coefficients
//!
//!   block:  slot 0 │ slot 1 │ slot 2 │ slot 3 │ ...      one database column each
//!   query:     0   │   1    │   0    │   1    │ ...      what an LWE query encrypts in place of a one-hot vector
//!   answer:  slot 1 + slot 3 = fingerprint ║ value       modulo 2^k, symbol by symbol
//! ```
//!
//! * [`key_hash`](KeyDigest): everything that follows from a key.
//! * [`block_map`](BlockMap): keys to row blocks, evenly. The slots of a key must add up inside one fold, so they
//!   share a row block and every block has a filter of its own. A query is then one vector over the columns, as
//!   in a look-up by index.
//! * [`filter`](FilterParams): the filter of a block, `fuse` or `band`, over bytes (k = 8: the plaintexts of LWE) or
//!   over words, of which any number k <= 32 of low bits may be kept.
//!
//! The value of a key that is not in the table is pseudo-random, so the fingerprint tells: with `f` bytes of
//! fingerprint an absent key is taken for a present one with probability `2^(-8 f)`.
//!
//! The table's seed must be drawn at random when the table is built. Whoever knows it before choosing keys can
//! choose more keys of one block than fit in it.
//!
//! * [`wrapped`](WrappedFilter): the filters of segments that are asked with the queries of another one.
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
