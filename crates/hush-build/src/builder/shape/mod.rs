//! The choice of a table for some records: its length tiers, the shapes of its segments, and its size.

pub(super) mod lengths;
pub(super) mod plan;
pub(super) mod segment_shapes;
pub(super) mod size;
pub(super) mod tier_search;
