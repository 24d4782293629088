//! Which table it is to be: its length tiers, the shapes of its segments, and what it takes.

pub(super) mod lengths;
pub(super) mod plan;
pub(super) mod segment_shapes;
pub(super) mod size;
pub(super) mod tier_search;
