//! The size of a table, known after its input has been read and before any file of it is written.

use std::{fmt, path::Path};

use hush_engine::{Bytes, server_bytes};
use hush_protocol::{
    Protocol,
    any_page::SegmentParams,
    facts::{Database, Facts},
    keyword::BlockKey,
    slot::SlotFormat,
    wording::Wording,
};

use crate::builder::{BuildError, BuildOptions, Lengths, Plan, Tiers, error::NoRoom};

/// A table gets a remark if it is larger than this multiple of the records, and larger than this number of bytes.
const SURPRISE: (u64, usize) = (4, 1 << 30);
/// A smaller table gets a remark if it is larger than this multiple of the values, and larger than this number of bytes.
const SMALL_SURPRISE: (u64, usize) = (20, 64 << 20);
/// A remark tells the size without the longest records: without one in this many, for each entry.
const LONGEST: [usize; 2] = [1000, 100];

/// The size of a table, exact within a few per cent.
pub(in crate::builder) struct TableSize {
    protocol: Protocol,
    records: usize,
    /// The bytes of all keys and values, as they were read.
    input: u64,
    /// The bytes of all values, as they are stored.
    payload: usize,
    /// The bytes of the longest value.
    longest: usize,
    tiers: usize,
    by_key: bool,
    /// The bytes of all slots.
    slots: usize,
    /// The bytes of all files.
    files: usize,
    /// The bytes that a server has in memory: all files except those that clients download.
    resident: usize,
    /// The resident bytes, and the evaluation keys of one client.
    served: u64,
    /// The bytes on disk of the values that are kept for a new base.
    kept: usize,
    /// The bytes on disk beside the files while the table is built.
    scratch: usize,
    /// The bytes in memory beside the files while the table is built.
    working: usize,
    facts: Facts,
}

impl TableSize {
    /// Computes the size of the table of `plan`, for values of these lengths. `input` is the bytes of the records.
    pub(in crate::builder) fn new(plan: &Plan, lengths: &Lengths, input: u64) -> Self {
        let facts = plan.params.facts().clone();
        let files = plan.params.files();
        // A filter over rings is solved in a scratch file, one segment at a time. Slots are removed after their compression.
        let scratch = |segment: &SegmentParams| match segment.database() {
            Database::Plaintexts(table) if plan.is_keyed() => {
                let shape = segment.facts().shape;
                shape.columns * shape.blocks * table.slot_symbols() * size_of::<u32>()
            }
            Database::Slots => segment.facts().encoded_bytes as usize,
            _ => 0,
        };
        let slots = |segment: &SegmentParams| {
            let shape = segment.facts().shape;
            shape.columns * shape.blocks * shape.slot_bytes
        };
        let segments = plan.params.segments();
        // Slots are compressed in memory, one segment at a time.
        let compressed = segments.iter().filter(|segment| segment.database() == Database::Slots);
        let compressed = compressed.map(|segment| segment.facts().encoded_bytes as usize).max().unwrap_or(0);
        // For each key, its offset in the spool and its block key are in memory.
        let key_bytes = size_of::<u64>() + size_of::<BlockKey>();
        Self {
            protocol: facts.protocol,
            records: lengths.records(),
            input,
            payload: lengths.payload(),
            longest: lengths.ends().1,
            tiers: segments.len(),
            slots: segments.iter().map(slots).sum(),
            files: files.iter().map(|file| file.content.bytes() as usize).sum(),
            resident: plan.params.held_bytes() as usize,
            served: server_bytes(&plan.params, 1),
            kept: plan.room.map_or(0, |_| lengths.payload()),
            scratch: segments.iter().map(scratch).max().unwrap_or(0),
            working: compressed + if plan.is_keyed() { lengths.records() * key_bytes } else { 0 },
            by_key: plan.by_key,
            facts,
        }
    }

    /// Returns the ratio of `bytes` to the bytes of the records.
    fn times(&self, bytes: u64) -> f64 {
        bytes as f64 / self.input.max(1) as f64
    }

    /// Returns whether the table is so large that it gets a remark.
    fn is_surprising(&self) -> bool {
        let exceeds = |(times, bytes): (u64, usize), of: u64| {
            self.files > bytes && self.files as u128 > u128::from(times) * u128::from(of)
        };
        exceeds(SURPRISE, self.input) || exceeds(SMALL_SURPRISE, self.payload as u64)
    }

    /// Returns the reason for the size, with advice that reduces it.
    fn why(&self, lengths: &Lengths, options: &BuildOptions) -> String {
        let padding = self.slots as f64 / self.payload.max(1) as f64;
        let keeping = self.files as f64 / self.slots.max(1) as f64;
        if keeping > padding {
            let protocol = self.protocol;
            return format!(
                "{protocol} keeps {keeping:.1} bytes for every byte of a slot; {}",
                Wording("a long table of {protocol=colpack} keeps 1.25")
            );
        }
        let average = self.payload / self.records.max(1);
        let mut text = match self.tiers {
            1 => format!(
                "every value takes as much as the longest, {} bytes, and the average has {average}",
                self.longest
            ),
            tiers => format!(
                "every value of a tier takes as much as the longest of it, in {tiers} tiers up to {} bytes, and the average has \
                 {average}",
                self.longest
            ),
        };
        let mut shorter = without_longest(lengths, self.by_key, self.input, options);
        shorter.dedup_by_key(|size| size.records);
        for size in shorter {
            text += &format!(
                "; without the longest {}, the longest has {} bytes and the table {}",
                self.records - size.records,
                size.longest,
                Bytes(size.files)
            );
        }
        let may_have_tiers = matches!(options.tiers, Tiers::AtMost(1));
        let advice = if self.tiers == 1 && may_have_tiers {
            Wording(
                "Allow tiers ({max-tiers=4}), leave the longest values out of the input, or store fewer columns ({value})",
            )
        } else {
            Wording("Leave the longest values out of the input, or store fewer columns ({value})")
        };
        format!("{text}. {advice}")
    }

    /// Refuses a table that does not fit the disk or memory. Prints the reason with `note` if a table that fits is far larger than
    /// its records.
    ///
    /// # Errors
    /// [`BuildError::NoRoom`], unless the options force the build.
    pub(in crate::builder) fn admit(
        &self,
        lengths: &Lengths,
        options: &BuildOptions,
        room: &DiskRoom,
        note: impl Fn(&str),
    ) -> Result<(), BuildError> {
        let why = || self.why(lengths, options);
        if !options.force_size {
            self.check(room, why)?;
        }
        if self.is_surprising() {
            let times = self.times(self.files as u64);
            note(&format!("on disk that is {times:.0} times the records: {}", why()));
        }
        Ok(())
    }

    fn check(&self, room: &DiskRoom, why: impl FnOnce() -> String) -> Result<(), BuildError> {
        let disk = self.files + self.kept + self.scratch;
        let memory = self.resident + self.working;
        let lacks = [("disk", disk, room.disk), ("memory", memory, room.memory)];
        let lack = lacks.into_iter().find_map(|(what, needed, free)| {
            free.filter(|&free| needed > free).map(|free| (what, needed, free))
        });
        lack.map_or(Ok(()), |(what, needed, free)| Err(NoRoom { what, needed, free, why: why() }.into()))
    }
}

/// Returns the sizes of the table without the longest values, for each share of `LONGEST` for which there is such a table.
fn without_longest(lengths: &Lengths, by_key: bool, input: u64, options: &BuildOptions) -> Vec<TableSize> {
    LONGEST
        .into_iter()
        .filter_map(|share: usize| {
            let kept = lengths.without_longest(lengths.records().div_ceil(share));
            let is_shorter = kept.records() > 0 && kept.records() < lengths.records();
            let plan = is_shorter.then(|| Plan::of_protocol(&kept, by_key, options).ok()).flatten()?;
            Some(TableSize::new(&plan, &kept, input))
        })
        .collect()
}

impl fmt::Display for TableSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, input, files, served, kept, facts, .. } = self;
        write!(
            f,
            "{records} records of {}: {} on disk ({:.2}x), {} in the memory of a server ({:.2}x)",
            Bytes(*input as usize),
            Bytes(*files),
            self.times(*files as u64),
            Bytes(*served as usize),
            self.times(*served)
        )?;
        let query = facts.query.total();
        let answer = facts.answer_bytes;
        write!(f, "; a look-up sends {} and gets {}", Bytes(query), Bytes(answer))?;
        if *kept > 0 {
            write!(f, "; {} of records are kept on disk for a new base", Bytes(*kept))?;
        }
        if facts.hint_bytes > 0 {
            let at_most = if facts.is_hint_compressed { "at most " } else { "" };
            write!(f, "; each client downloads {at_most}{}", Bytes(facts.hint_bytes as usize))?;
        }
        if facts.key_bytes > 0 {
            write!(f, "; each client uploads {}", Bytes(facts.key_bytes))?;
        }
        Ok(())
    }
}

/// The free disk and memory for a build, in bytes; `None` if the system does not report it.
pub(in crate::builder) struct DiskRoom {
    disk: Option<usize>,
    memory: Option<usize>,
}

impl DiskRoom {
    /// Measures the free disk of `folder`, and the free memory.
    pub(in crate::builder) fn here(folder: &Path) -> Self {
        Self {
            disk: hush_engine::free_disk(folder).map(|free| free as usize),
            memory: hush_engine::memory().map(|memory| memory.available as usize),
        }
    }
}

impl BuildOptions {
    /// Returns the format of a slot of the base, for values between the shortest and the longest length, and for tiers that end at
    /// `tiers`.
    pub(in crate::builder) fn slot_format(
        &self,
        by_key: bool,
        (shortest, longest): (usize, usize),
        tiers: &[usize],
    ) -> SlotFormat {
        let fingerprint_bytes = if by_key { self.fingerprint_bytes } else { 0 };
        match tiers {
            [head, .., last] => {
                SlotFormat::for_values(fingerprint_bytes, shortest, (*last).max(longest)).with_head(*head)
            }
            _ => {
                let longest = tiers.last().map_or(longest, |&last| last.max(longest));
                SlotFormat::for_values(fingerprint_bytes, shortest, longest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use hush_cpu::Cpu;
    use hush_ingest::{OnDuplicate, Record, Spool, SpooledRecords};
    use hush_store::snapshot::SnapshotWriter;
    use tempfile::tempdir;

    use super::*;
    use hush_engine::{Backends, Silent};

    use crate::builder::build;

    const GIB: usize = 1 << 30;

    /// Creates records with values of these lengths, with or without keys.
    fn spooled(lengths: &[usize], by_key: bool) -> SpooledRecords {
        let mut spool = Spool::create(tempdir().unwrap().path()).unwrap();
        for (index, &length) in lengths.iter().enumerate() {
            let key = by_key.then(|| index.to_le_bytes().to_vec());
            spool.push(&Record { key, value: vec![index as u8; length] }).unwrap();
        }
        spool.finish(OnDuplicate::Error).unwrap()
    }

    fn options(protocol: Protocol) -> BuildOptions {
        let small = ["INSECURE_COLPACK_N256", "INSECURE_PACK_N256", "INSECURE_RING_N256"];
        let preset = small.into_iter().find(|set| protocol.page().has_set(set)).map(str::to_owned);
        BuildOptions {
            protocol: Some(protocol),
            preset,
            filter: Some("band64".parse().unwrap()),
            tiers: Tiers::AtMost(1),
            ..BuildOptions::default()
        }
    }

    fn size_of_table(records: &SpooledRecords, by_key: bool, options: &BuildOptions) -> TableSize {
        let lengths = Lengths::of(records);
        TableSize::new(&Plan::of_protocol(&lengths, by_key, options).unwrap(), &lengths, records.bytes())
    }

    #[test]
    fn what_is_told_is_what_is_built() {
        let backends = Backends::cpu_only(Arc::new(Cpu::new(2).unwrap()));
        for &protocol in Protocol::ALL {
            for by_key in [false, true] {
                let records = spooled(&[40; 3000], by_key);
                let options = options(protocol);
                let size = size_of_table(&records, by_key, &options);
                let folder = tempdir().unwrap();
                let writer = SnapshotWriter::create(&folder.path().join("table"), false).unwrap();
                let header = build(&records, by_key, "", &options, writer, &backends, &Silent).unwrap();
                let facts = header.descriptor.params().unwrap().facts().clone();
                let built: u64 = header.files.iter().map(|file| file.bytes).sum();
                let ratio = size.files as f64 / built as f64;
                // Few keys are balanced with some slack.
                let tolerance = if by_key { 0.12 } else { 0.0 };
                // The saving by compression is not known before.
                let most = if facts.is_hint_compressed { f64::INFINITY } else { 1.0 + tolerance };
                assert!((1.0 - tolerance..=most).contains(&ratio), "{protocol}, by key {by_key}: {ratio}");
                assert_eq!(size.facts.answer_bytes, facts.answer_bytes, "{protocol}, by key {by_key}");
                let told = if facts.is_hint_compressed { &size.facts } else { &facts };
                assert_eq!(size.files - size.resident, told.hint_bytes as usize);
            }
        }
    }

    #[test]
    fn a_long_tail_is_told_with_what_dropping_it_saves() {
        let mut lengths = vec![100; 100_000];
        lengths[500] = 1 << 20;
        lengths[600..650].fill(5000);
        let records = spooled(&lengths, true);
        let options = options(Protocol::Simple);
        let size = size_of_table(&records, true, &options);
        assert!(size.is_surprising() && size.files > 95 * GIB, "{}", size.files);
        let why = size.why(&Lengths::of(&records), &options);
        assert!(
            why.starts_with(
                "every value takes as much as the longest, 1048576 bytes, and the average has 112; without the longest 51, the \
                 longest has 100 bytes and the table "
            ),
            "{why}"
        );
        assert!(
            why.ends_with(". Allow tiers ('max-tiers: 4'), leave the longest values out of the input, or store fewer columns ('value')"),
            "{why}"
        );
        let told = size.to_string();
        assert!(
            told.starts_with("100000 records of 11.53 MiB: ") && told.contains("; each client downloads "),
            "{told}"
        );
        // Each number has its own ratio, because clients download most of this table.
        let input = records.bytes() as f64;
        let disk = size.files as f64 / input;
        let memory = size.resident as f64 / input;
        assert!(told.contains(&format!(" on disk ({disk:.2}x)")), "{told}");
        assert!(told.contains(&format!(" of a server ({memory:.2}x)")) && disk > 1.01 * memory, "{told}");
    }

    #[test]
    fn a_small_table_of_many_times_its_values_is_remarked_on() {
        let remarks = |count: usize, longest: usize| {
            let mut lengths = vec![10; count];
            lengths[0] = longest;
            let records = spooled(&lengths, true);
            let options = options(Protocol::Simple);
            let size = size_of_table(&records, true, &options);
            let told = Cell::new(0);
            let room = DiskRoom { disk: None, memory: None };
            size.admit(&Lengths::of(&records), &options, &room, |line: &str| {
                assert!(
                    line.starts_with("on disk that is ") && line.contains(" times the records: every value "),
                    "{line}"
                );
                told.set(told.get() + 1);
            })
            .unwrap();
            (size.files, told.get())
        };
        let (files, told) = remarks(2000, 64 << 10);
        assert!((64 << 20..GIB).contains(&files) && told == 1, "{files}");
        // This table takes as many times its values, but it is small.
        let (files, told) = remarks(20, 10_000);
        assert!(files < 64 << 20 && told == 0, "{files}");
    }

    #[test]
    fn what_a_protocol_keeps_is_told_as_that() {
        let records = spooled(&[100; 1000], false);
        let options = options(Protocol::Onion);
        let size = size_of_table(&records, false, &options);
        assert!(!size.is_surprising());
        let why = size.why(&Lengths::of(&records), &options);
        assert!(
            why.starts_with("onion keeps ")
                && why.ends_with("a long table of 'protocol: colpack' keeps 1.25"),
            "{why}"
        );
    }

    #[test]
    fn a_table_without_room_is_refused() {
        let records = spooled(&[100; 1000], true);
        let options = options(Protocol::Simple);
        let size = size_of_table(&records, true, &options);
        let disk = size.files + size.scratch;
        let memory = size.resident + size.working;
        assert!(memory > size.resident);
        let check = |disk, memory| size.check(&DiskRoom { disk, memory }, || "because".into());
        for enough in [(None, None), (Some(disk), Some(memory)), (Some(disk), None), (None, Some(memory))] {
            check(enough.0, enough.1).unwrap();
        }
        for (disk, memory, what) in [(Some(disk - 1), None, "disk"), (Some(disk), Some(memory - 1), "memory")]
        {
            let error = check(disk, memory).unwrap_err().to_string();
            assert!(error.contains(&format!(" of {what}, ")), "{error}");
            assert!(
                error.ends_with(" are free: because; 'force-size: true' goes on all the same"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_forced_is_not_refused() {
        let records = spooled(&[100; 1000], true);
        let options = options(Protocol::Simple);
        let size = size_of_table(&records, true, &options);
        let none = DiskRoom { disk: Some(0), memory: Some(0) };
        let admitted = |options| size.admit(&Lengths::of(&records), options, &none, |line| panic!("{line}"));
        assert!(matches!(admitted(&options), Err(BuildError::NoRoom(_))));
        admitted(&BuildOptions { force_size: true, ..options.clone() }).unwrap();
    }
}
