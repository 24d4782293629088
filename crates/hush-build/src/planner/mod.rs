//! The planner: lists every table that the records could have, with its costs, and chooses the one that suits best.
//!
//! It implements VIPIR's unified model (section 3): a protocol is a path over steps, a step has a size, and a machine takes a time
//! for a step of a size. Sizes come from `Page::path` and `Facts`, times from a [`Machine`]: `docs/explanation/planner.md`.

mod calibrate;
mod choice;
mod cluster;
mod judgement;
mod machine;
mod network;
mod offers;
pub mod operands;
mod records;
mod spreads;
mod wishes;

pub use choice::offers;
pub(crate) use choice::{best_leaf, choose};
pub use cluster::{ClusterWishes, Layout, LayoutError, Node, Placed, Stages, layouts, part_bytes};
pub use machine::{Machine, Times, Timing};
pub use network::{Network, SendWindow};
pub use offers::{Geometry, Linkable, Offer, undominated};
pub use records::Records;
pub use spreads::{Spread, spreads};
pub use wishes::{Budgets, Clients, Goal, MemoryBudget, OutOfBudget, Prices, Wishes};
