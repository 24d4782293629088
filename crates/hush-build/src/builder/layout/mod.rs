//! Lays records out as databases, segment by segment: by index, or by filters that find them.

pub(super) mod beside;
pub(super) mod blocks;
pub(super) mod delta;
pub(super) mod filter_block;
pub(super) mod index;
pub(super) mod keyed;
pub(super) mod laid;
pub(super) mod members;
pub(super) mod plain_slots;
pub(super) mod ring;
pub(super) mod tile;
pub(super) mod word_slots;
