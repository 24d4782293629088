//! A table in parts on several machines: what parts and a look-up take, and how many equal machines wishes take.
//!
//! | file | what |
//! |------|------|
//! | `node.rs` | a machine, and what carries messages between machines |
//! | `costs.rs` | the memory and the seconds of a part, and of the head |
//! | `wishes.rs` | wishes for a table in parts, and why none meets them |
//! | `layout.rs` | parts on machines that are given, and the times of a batch |
//! | `search.rs` | for every table the fewest machines that meet the wishes |
//!
//! Sizes are those that the page says of its halves ([`hush_protocol::halves`]). Source: PPIR, whose map server hands shares of
//! 2:2:1:2:1 to database servers of two speeds; VIPIR, section 4.5.

mod costs;
mod layout;
mod node;
mod search;
mod wishes;

pub use costs::part_bytes;
pub use layout::{Layout, Placed, Stages};
pub use node::Node;
pub use search::layouts;
pub use wishes::{ClusterWishes, LayoutError};
