//! The segments that hold changes: everything that changed since the base was made. They answer the base's queries, and are
//! rebuilt as a whole.
//!
//! The shapes of these segments are reserved when the base is made, so that they do not reveal how much has changed. The segments
//! are tiers like the base's, and end where some of the base's tiers end.

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_protocol::{
    any_page::TableParams,
    changes::{CHANGE_FINGERPRINT_BYTES, ChangeFormat},
    descriptor::{Role, Segment},
    keyword::{BlockMap, FilterKind, KeyDigest},
    table::SegmentShape,
};
use hush_store::snapshot::{Changes, SnapshotWriter};

use super::beside::{Beside, encode_part};
use crate::builder::{
    BuildError, Crew, Lengths, Written,
    shape::segment_shapes::{Candidate, SegmentShapes, fullest},
};

/// The number of long values for which there is room beyond the expected number.
const SPARE: usize = 16;

/// Returns the cheapest shapes of segments for `room` changes beside the base of `table`. The changes are expected to have values
/// like `lengths`; the base's tiers end at `ends`.
pub(in crate::builder) fn shapes(
    table: &TableParams,
    filter: FilterKind,
    ends: &[usize],
    room: usize,
    lengths: &Lengths,
) -> Result<Vec<SegmentShape>, BuildError> {
    let longest = ends[ends.len() - 1];
    let beside = SegmentShapes::beside(table, filter);
    let cheapest = |from: Option<usize>, to: usize| -> Option<Candidate> {
        let (changes, slot_bytes) = match from {
            None => (room, ChangeFormat::new(longest, to).slot_bytes()),
            Some(from) => {
                // The expected number of changes longer than `from`, plus four standard deviations, if changes are like
                // the records.
                let mean = room as f64 * lengths.longer_than(from) as f64 / lengths.records() as f64;
                let longer = (mean + 4.0 * mean.sqrt()).ceil() as usize + SPARE;
                (room.min(longer), to - from)
            }
        };
        beside.of_slots(slot_bytes, |entries| fullest(changes, entries)).into_iter().next()
    };
    // For each end: the cost of the segments up to it, and their shapes.
    let mut up_to: Vec<Option<(f64, Vec<SegmentShape>)>> = Vec::new();
    for (at, &to) in ends.iter().enumerate() {
        let mut best: Option<(f64, Vec<SegmentShape>)> =
            cheapest(None, to).map(|Candidate { shape, cost, .. }| (cost, vec![shape]));
        for (before, &from) in up_to.iter().zip(&ends[..at]) {
            let (Some((cost, shapes)), Some(next)) = (before, cheapest(Some(from), to)) else { continue };
            if best.as_ref().is_none_or(|(known, _)| cost + next.cost < *known) {
                best = Some((cost + next.cost, [&shapes[..], &[next.shape]].concat()));
            }
        }
        up_to.push(best);
    }
    let cheapest = up_to.pop().flatten();
    cheapest.map(|(_, shapes)| shapes).ok_or(BuildError::NoChangeRoom { changes: room })
}

/// The changes beside a base, with the base's `seed`, `block_map` and `filter`.
pub(in crate::builder) struct ChangeLayout<'a> {
    /// The changes, with values as slots hold them.
    pub(in crate::builder) changes: &'a Changes,
    pub(in crate::builder) room: usize,
    pub(in crate::builder) seed: &'a [u8; 32],
    pub(in crate::builder) block_map: &'a BlockMap,
    pub(in crate::builder) filter: FilterKind,
    pub(in crate::builder) cpu: &'a Cpu,
    pub(in crate::builder) crew: Option<&'a dyn Crew>,
    pub(in crate::builder) progress: &'a dyn Progress,
}

impl ChangeLayout<'_> {
    /// Writes segment `first` of `table` and all later ones, which are the segments of changes.
    ///
    /// # Errors
    /// [`BuildError::ChangesFull`] if not all changes fit.
    pub(in crate::builder) fn lay_out(
        &self,
        table: &TableParams,
        first: usize,
        shapes: &[SegmentShape],
        longest: usize,
        writer: &SnapshotWriter,
    ) -> Result<Vec<(Segment, Written)>, BuildError> {
        let &Self { changes: Changes(changes), room, seed, block_map, filter, cpu, crew, progress } = self;
        let full = || BuildError::ChangesFull { changes: changes.len(), room };
        if changes.len() > room {
            return Err(full());
        }
        let digests = changes.keys().map(|key| KeyDigest::new(seed, key)).collect::<Result<Vec<_>, _>>()?;
        let values: Vec<Option<&[u8]>> = changes.values().map(Option::as_deref).collect();
        let digest = &|key: u32| digests[key as usize].clone();
        let base = table.base().facts();
        let beside = Beside { digest, block_map, filter, base, cpu, crew, progress };
        let format = ChangeFormat::of_slots(longest, shapes[0].shape.slot_bytes).expect("it was made of one");
        let mut end = 0;
        let mut laid = Vec::new();
        for (index, &shape) in shapes.iter().enumerate() {
            let start = end;
            let slot_bytes = shape.shape.slot_bytes;
            end = if index == 0 { format.head_bytes() } else { start + slot_bytes };
            let value = |key: u32| values[key as usize];
            let keys: Vec<u32> = (0..values.len() as u32)
                .filter(|key: &u32| index == 0 || value(*key).is_some_and(|value| value.len() > start))
                .collect();
            let placed = beside.place(&keys, shape)?.ok_or_else(full)?;
            let encode = |key: u32, digest: &KeyDigest, slot: &mut [u8]| match index {
                0 => {
                    format.encode_into(digest.fingerprint(CHANGE_FINGERPRINT_BYTES), value(key), slot);
                }
                _ => encode_part(value(key).unwrap_or_default(), start..end, slot),
            };
            progress.start("filter", keys.len() as u64, "changes");
            let segment = &table.segments()[first + index];
            let writer = writer.segment(first + index);
            let written = beside.write(segment, &placed, &encode, &writer)?;
            laid.push((placed.segment(Role::Delta, room as u64), written));
        }
        Ok(laid)
    }
}
