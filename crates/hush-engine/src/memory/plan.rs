//! The plan of a table's memory on a device, known before anything is loaded.

use std::ops::Range;

use hush_ops::path::{Footprint, Step, batch_bytes, largest_batch};
use hush_protocol::{
    any_page::{SegmentParams, TableParams},
    share::{Share, shares},
    wording::Wording,
};
use thiserror::Error;

use crate::{placement::BATCHES_IN_FLIGHT, units::Bytes};

/// The number of bytes of a word.
const WORD: usize = size_of::<u32>();
/// The most buffers of a part.
#[cfg(any(feature = "cuda", feature = "emulator"))]
const PART_BUFFERS: usize = 2;

/// The name of the part that clients' keys take.
const KEYS: &str = "keys of clients";

/// A part of a table that stays in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the part.
    pub name: &'static str,
    /// The number of bytes in device memory.
    pub bytes: usize,
}

/// The memory that a table takes on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Whether the plan is of a part, whose others are elsewhere.
    is_part: bool,
    /// The parts that are in memory once the table is loaded.
    parts: Vec<Part>,
    /// The bytes of the keys of all clients, which come later.
    keys: usize,
    /// The bytes of keys that are reserved for other tables: the same clients' in the same memory.
    keys_reserved: usize,
    /// The bytes that are in transit at once while the parts are loaded.
    staging: usize,
    /// The bytes of the host's files that are uploaded.
    upload: usize,
    /// The name of batches of one.
    one: &'static str,
    /// The bytes of batches: entry `b - 1` is for batches of `b` queries, as many as are in flight at once; at least one entry.
    batches: Vec<usize>,
}

impl MemoryPlan {
    /// Plans a share of a table on the backend `F`, with the keys of `clients` clients if the table has any, and as many batches
    /// as are worth answering at once. `finishes`: whether the device finishes answers, some of them or all. Every device opens
    /// all queries, with the keys.
    pub fn of_share<F: Footprint>(
        table: &TableParams,
        share: &Share,
        finishes: bool,
        clients: usize,
    ) -> Self {
        let shares = shares(&share.weights, &table.scanned());
        let own = &shares[share.index];
        let is_whole = |segment: &SegmentParams, units: &Range<usize>| units.len() == segment.facts().units;
        let segments = || table.segments().iter().zip(own);
        let mut files = Vec::new();
        for (segment, units) in segments() {
            if finishes && is_whole(segment, units) {
                files.extend(segment.files());
                continue;
            }
            if !units.is_empty() {
                files.extend(segment.part(units).files);
            }
            if finishes {
                files.extend(segment.head(&[0..segment.facts().units]).files);
            }
        }
        let is_apart = finishes && !segments().all(|(segment, units)| is_whole(segment, units));
        // The partials of all shares for the device's queries, counted twice: as they arrive, and put together.
        let mut gathered = 0;
        if is_apart {
            for (segment, units) in shares.iter().flat_map(|units| table.segments().iter().zip(units)) {
                if !units.is_empty() {
                    gathered += 2 * WORD * segment.part(units).words;
                }
            }
        }
        let devices = shares
            .iter()
            .filter(|units: &&Vec<Range<usize>>| units.iter().any(|units| !units.is_empty()))
            .count()
            .max(1);
        // The partials of this device for all queries are among the results of its steps.
        let bytes = |path: &[Step], batch: usize| {
            BATCHES_IN_FLIGHT * (batch_bytes::<F>(path, batch) + batch.div_ceil(devices) * gathered)
        };
        // Segments are answered one after another, so batches take as much as the largest segment does.
        let paths: Vec<_> = table.segments().iter().map(SegmentParams::path).collect();
        let most = paths.iter().map(|path| largest_batch::<F>(path, usize::MAX)).min().unwrap_or(1);
        let bytes = |batch| paths.iter().map(|path| bytes(path, batch)).max().unwrap_or(0);
        // Files that stay on the host are neither resident nor uploaded.
        let there = || files.iter().filter(|file| file.content.is_held() && F::resident(&file.content) > 0);
        let parts = there().map(|file| Part { name: file.title, bytes: F::resident(&file.content) });
        // Staging counts all files, as some that a share does not keep are on the device while it is opened.
        let all = table.files();
        let keys = table.facts().keys;
        let held = all.iter().filter(|file| file.content.is_held());
        Self {
            is_part: !finishes,
            parts: parts.collect(),
            keys: keys.map_or(0, |ring| clients * F::keys(&ring)),
            keys_reserved: 0,
            staging: held.map(|file| F::staging(&file.content)).max().unwrap_or(0),
            upload: there().map(|file| file.content.bytes() as usize).sum(),
            one: "batches of one query",
            batches: (1..=most).map(bytes).collect(),
        }
    }

    /// Plans work on `parts`, which stay in memory meanwhile. The work takes `working` bytes beside them. While the
    /// parts are loaded, `staging` bytes are in transit at once, of `upload` bytes in all.
    pub fn of_work(parts: Vec<Part>, staging: usize, upload: usize, working: usize) -> Self {
        let one = "working memory";
        let batches = vec![working];
        Self { is_part: false, parts, keys: 0, keys_reserved: 0, staging, upload, one, batches }
    }

    /// Returns the bytes that stay: loaded files, and keys of clients beyond those that are reserved for other tables.
    pub fn kept_bytes(&self) -> usize {
        self.kept().map(|part| part.bytes).sum()
    }

    /// Returns the bytes of the keys of all clients.
    pub fn keys_bytes(&self) -> usize {
        self.keys
    }

    fn kept(&self) -> impl Iterator<Item = Part> {
        let keys = self.keys.saturating_sub(self.keys_reserved);
        let keys = (keys > 0).then_some(Part { name: KEYS, bytes: keys });
        self.parts.iter().cloned().chain(keys)
    }

    /// Returns the plan with `bytes` bytes of keys reserved for other tables.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(crate) fn with_keys_reserved(self, bytes: usize) -> Self {
        Self { keys_reserved: bytes, ..self }
    }

    /// Returns the plan for a device on which `buffers` buffers of `bytes` bytes in all take `taken(bytes, buffers)` bytes.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub fn in_blocks(mut self, taken: impl Fn(usize, usize) -> usize) -> Self {
        let several = |bytes| taken(bytes, usize::MAX);
        for part in &mut self.parts {
            part.bytes = taken(part.bytes, PART_BUFFERS);
        }
        self.batches.iter_mut().for_each(|batch| *batch = several(*batch));
        Self { keys: several(self.keys), staging: several(self.staging), ..self }
    }

    /// Returns the least bytes that work needs: those that stay, and those of the loading or of a batch of one.
    pub fn needed_bytes(&self) -> usize {
        self.kept_bytes() + self.staging.max(self.batch_bytes(1))
    }

    /// Returns the bytes of batches of `batch` queries, as many as are in flight at once; those of the largest batch if `batch` is
    /// larger.
    pub fn batch_bytes(&self, batch: usize) -> usize {
        self.batches[batch.clamp(1, self.batches.len()) - 1]
    }

    /// Returns the bytes that are uploaded.
    pub fn upload_bytes(&self) -> usize {
        self.upload
    }

    /// Returns the largest batch for a device with `free` bytes. Batches in flight take at most half of what the table leaves, as
    /// it may be one of several; but one query is always possible.
    pub fn max_batch(&self, free: usize) -> usize {
        let room = free.saturating_sub(self.kept_bytes()) / 2;
        (1..=self.batches.len()).rev().find(|batch: &usize| self.batch_bytes(*batch) <= room).unwrap_or(1)
    }

    /// Checks whether a device has enough memory: `free` bytes, for a table of `encoded` bytes.
    ///
    /// # Errors
    /// [`DoesNotFit`] with the needed bytes.
    pub fn check(&self, device: &str, free: usize, encoded: u64) -> Result<(), DoesNotFit> {
        let needed = self.needed_bytes();
        if needed <= free {
            return Ok(());
        }
        let keys = self.kept().filter(|part| part.name == KEYS).map(|part| part.bytes).sum::<usize>();
        let parts = self.kept().map(|part| format!("{} {}", part.name, Bytes(part.bytes)));
        let parts: Vec<String> =
            parts.chain([format!("{} {}", self.one, Bytes(self.batch_bytes(1)))]).collect();
        // Nearly all of it grows with the records.
        let fits = (encoded as u128 * free as u128 / needed as u128) as usize;
        let is_part = self.is_part;
        let device = device.to_owned();
        Err(DoesNotFit {
            is_part,
            needed,
            parts: parts.join(", "),
            device,
            free,
            fits,
            are_keys: keys > needed / 2,
        })
    }

    /// Checks all of these plans together, of a table of `encoded` bytes in parts, on devices with `free` bytes in all. Returns the
    /// refusal if they do not fit.
    pub(crate) fn refused_together(
        plans: &[Self],
        devices: &str,
        free: usize,
        encoded: u64,
    ) -> Option<DoesNotFit> {
        let mut parts: Vec<Part> = Vec::new();
        for part in plans.iter().flat_map(Self::kept) {
            match parts.iter_mut().find(|known| known.name == part.name) {
                Some(known) => known.bytes += part.bytes,
                None => parts.push(part),
            }
        }
        let largest = plans.iter().max_by_key(|plan| plan.batch_bytes(1))?;
        let all = Self {
            parts,
            keys: 0,
            staging: plans.iter().map(|plan| plan.needed_bytes() - plan.kept_bytes()).sum(),
            batches: vec![plans.iter().map(|plan| plan.batch_bytes(1)).sum()],
            ..largest.clone()
        };
        all.check(devices, free, encoded).err()
    }

    /// Returns the plan as text: a line a part, the largest batch, and the sum.
    pub fn lines(&self, device: &str, free: usize) -> Vec<String> {
        let batch = self.max_batch(free);
        let batch_name = if batch == 1 { self.one.to_owned() } else { format!("batches of {batch} queries") };
        let line = |name: &str, bytes: usize| format!("  {name:<28}{:>12}", Bytes(bytes).to_string());
        let mut lines = vec![format!("on {device}, {} free", Bytes(free))];
        lines.extend(self.kept().map(|part| line(part.name, part.bytes)));
        lines.push(line(&batch_name, self.batch_bytes(batch)));
        lines.push(line("in all", self.kept_bytes() + self.batch_bytes(batch)));
        lines
    }
}

/// The refusal of a table that does not fit a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the {} {}: {}", self.what(), self.needs(), self.instead())]
pub struct DoesNotFit {
    is_part: bool,
    needed: usize,
    parts: String,
    device: String,
    free: usize,
    /// The approximate encoded bytes of a table that would fit.
    fits: usize,
    /// Whether most of it is keys of clients.
    are_keys: bool,
}

impl DoesNotFit {
    pub(crate) fn what(&self) -> &'static str {
        if self.is_part { "part" } else { "table" }
    }

    /// Returns the needed and the free bytes: "needs .. of device memory (..), .. are free on ..".
    pub fn needs(&self) -> String {
        let Self { needed, parts, device, free, .. } = self;
        format!("needs {} of device memory ({parts}), {} are free on {device}", Bytes(*needed), Bytes(*free))
    }

    fn instead(&self) -> String {
        if self.is_part {
            return "have more parts, or no GPUs for them".into();
        }
        let use_cpu = Wording("use {backend=cpu}");
        if self.are_keys {
            return format!(
                "{}, or {use_cpu}",
                Wording("have memory for fewer clients' keys with {open-keys=N}")
            );
        }
        format!("{use_cpu}, or a table of at most about {} of records of this shape", Bytes(self.fits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: usize = 1 << 30;

    fn plan() -> MemoryPlan {
        MemoryPlan {
            is_part: false,
            parts: vec![
                Part { name: "database", bytes: 64 * GIB },
                Part { name: "pack columns", bytes: 8 * GIB },
            ],
            keys: 0,
            keys_reserved: 0,
            staging: GIB / 2,
            upload: 70 * GIB,
            one: "a batch of one query",
            batches: (1..=64).map(|batch| batch * GIB / 16).collect(),
        }
    }

    #[test]
    fn batches_take_half_of_what_is_left() {
        let plan = plan();
        assert_eq!((plan.kept_bytes(), plan.needed_bytes()), (72 * GIB, 72 * GIB + GIB / 2));
        for (left, batch) in
            [(0, 1), (GIB / 8, 1), (GIB / 4, 2), (3 * GIB, 24), (8 * GIB, 64), (100 * GIB, 64)]
        {
            assert_eq!(plan.max_batch(72 * GIB + left), batch, "{left}");
        }
        assert_eq!(plan.max_batch(0), 1);
        assert_eq!(plan.batch_bytes(0), GIB / 16);
        assert_eq!(plan.batch_bytes(1000), 4 * GIB);
    }

    #[test]
    fn what_does_not_fit_is_told_with_all_numbers() {
        let plan = plan();
        plan.check("GPU", 72 * GIB + GIB / 2, 64 << 30).unwrap();
        let refused = plan.check("GPU", 36 * GIB + GIB / 4, 64 << 30).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the table needs 72.50 GiB of device memory (database 64.00 GiB, pack columns 8.00 GiB, a batch of one query \
             64.00 MiB), 36.25 GiB are free on GPU: use 'backend: cpu', or a table of at most about 32.00 GiB of records of this \
             shape"
        );
        let refused =
            MemoryPlan { is_part: true, ..plan }.check("GPU", 36 * GIB + GIB / 4, 64 << 30).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the part needs 72.50 GiB of device memory (database 64.00 GiB, pack columns 8.00 GiB, a batch of one query \
             64.00 MiB), 36.25 GiB are free on GPU: have more parts, or no GPUs for them"
        );
    }

    #[test]
    fn a_plan_has_a_line_for_each_part() {
        let lines = plan().lines("GPU", 76 * GIB);
        assert_eq!(
            lines,
            [
                "on GPU, 76.00 GiB free",
                "  database                       64.00 GiB",
                "  pack columns                    8.00 GiB",
                "  batches of 32 queries           2.00 GiB",
                "  in all                         74.00 GiB",
            ]
        );
    }

    #[test]
    fn keys_are_counted_once() {
        let plan = MemoryPlan { keys: 3 * GIB, ..plan() };
        assert_eq!((plan.kept_bytes(), plan.needed_bytes()), (75 * GIB, 75 * GIB + GIB / 2));
        assert_eq!(plan.max_batch(75 * GIB + GIB / 4), 2);
        assert_eq!(plan.lines("GPU", 80 * GIB)[3], "  keys of clients                 3.00 GiB");
        let plan = MemoryPlan { keys_reserved: GIB, ..plan };
        assert_eq!((plan.kept_bytes(), plan.keys_bytes()), (74 * GIB, 3 * GIB));
        let plan = MemoryPlan { keys_reserved: 4 * GIB, ..plan };
        assert_eq!(plan.kept_bytes(), 72 * GIB);
        let lines = plan.lines("GPU", 80 * GIB);
        assert!(lines.iter().all(|line| !line.contains("keys")), "{lines:?}");
    }

    #[cfg(any(feature = "cuda", feature = "emulator"))]
    #[test]
    fn plans_are_rounded_up_as_the_device_does() {
        let plan = MemoryPlan { keys: 8 * GIB, ..plan() };
        let rounded = plan.clone().in_blocks(|bytes, buffers| bytes + (bytes / 8).min(buffers));
        assert_eq!(rounded.kept_bytes(), 81 * GIB + 2 * PART_BUFFERS);
        assert_eq!(rounded.batch_bytes(64), 4 * GIB + GIB / 2);
        assert_eq!(rounded.needed_bytes() - rounded.kept_bytes(), GIB / 2 + GIB / 16);
        assert_eq!(rounded.upload_bytes(), plan.upload_bytes());
    }
}
