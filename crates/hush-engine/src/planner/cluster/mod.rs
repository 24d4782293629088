//! A table in parts on several machines: how many parts, of which weights, where, and what a look-up then takes.
//!
//! | file | what |
//! |------|------|
//! | `machines.rs` | the machines that there are, and what carries messages between them |
//! | `costs.rs` | what a part of a table takes on a machine, and the head |
//! | `weights.rs` | shares of parts as integers, by speed, bounded by memory |
//! | `layout.rs` | a choice of machines, and the times of a batch |
//! | `search.rs` | the layouts that meet the wishes |
//! | `needs.rs` | what layouts lack, and what binds if none meets all |
//!
//! Sizes are those that the page says of its halves ([`hush_protocol::halves`]). Source: PPIR, whose map server hands shares of
//! 2:2:1:2:1 to database servers of two speeds; VIPIR, section 4.5.

mod costs;
mod layout;
mod machines;
mod needs;
mod search;
mod weights;

pub use costs::part_bytes;
pub use layout::{Layout, Placed, Stages};
pub use machines::{Cluster, MachineKind, Transport};
pub use needs::LayoutError;
pub use search::{ClusterWishes, layouts};
