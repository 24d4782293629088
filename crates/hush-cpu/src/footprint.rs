//! The memory of files and keys on the host, and the largest batches. The memory of a step is stated beside the step.

use hush_he::params::RingParams;
use hush_ops::path::{Content, Footprint};

use crate::Cpu;

/// The number of queries from which a pass over a database in evaluation form is worth its while.
pub(crate) const EXPANDED_QUERIES: usize = 8;

impl Footprint for Cpu {
    type Steps = Self;
    /// The number of queries that the largest tile of a fold over bytes holds.
    const LARGEST_BATCH: usize = 64;

    fn resident(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) => tiling.bytes(),
            Content::Eval(tiling) => tiling.bytes(),
            Content::Symbols { db, .. } => db.bytes(),
            Content::Chain { .. } => content.bytes() as usize,
            Content::Download { .. } => 0,
        }
    }

    fn staging(_: &Content) -> usize {
        0
    }

    fn keys(ring: &RingParams) -> usize {
        let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        let digits: usize =
            ring.levels().iter().chain([&ring.square_gadget()]).map(|gadget| gadget.digits).sum();
        let packing = 6 * ring.pack_gadget().digits * ring.kept_limbs();
        let private = ring.tlwe().map_or(0, |tlwe| 4 * tlwe.key_rows() * limbs);
        let switch = ring.switch().map_or(0, |switch| switch.key_words(ring.degree()));
        size_of::<u32>() * (ring.degree() * (2 * digits * limbs + packing + private) + switch)
    }
}
