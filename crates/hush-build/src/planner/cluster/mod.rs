//! A table in parts on several machines: the costs of parts and of a look-up, and the number of equal machines that wishes take.
//!
//! | file | what |
//! |------|------|
//! | `node.rs` | a machine, and the cost of messages between machines |
//! | `costs.rs` | the memory and the seconds of a part, and of the head |
//! | `wishes.rs` | wishes for a table in parts, and the error if none meets them |
//! | `layout.rs` | parts on given machines, and the times of a batch |
//! | `search.rs` | the fewest machines that meet the wishes, for every table |
//!
//! Sizes come from the page's halves ([`hush_protocol::halves`]). Sources: PPIR section 4.3, which cuts a table 2:2:1:2:1 for
//! five GPUs in four servers; VIPIR, section 4.5.

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
