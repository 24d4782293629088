//! The planner: every table that some records could have, what each costs, and which suits best.
//!
//! VIPIR's unified model (section 3) as code: a protocol is a path over steps, a step has a size, and a machine takes so long for a
//! step of a size. Sizes come from `Page::path` and `Facts`, times from a [`Machine`]: `docs/explanation/planner.md`.

mod calibrate;
mod choice;
mod cluster;
mod judgement;
mod machine;
mod offers;
pub mod operands;
mod records;
mod wishes;

pub(crate) use choice::choose;
pub use choice::offers;
pub use cluster::{ClusterWishes, Layout, LayoutError, Node, Placed, Stages, layouts, part_bytes};
pub use machine::{Machine, Rates, Times, Timing};
pub use offers::{Geometry, Linkable, Offer, undominated};
pub use records::Records;
pub use wishes::{Budgets, Clients, Goal, MemoryBudget, Network, OutOfBudget, Prices, Wishes};
