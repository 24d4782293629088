//! The trivial protocol: the hint is the table, and a look-up sends nothing.
//!
//! A client downloads all slots once, as clients of other protocols download their hints, and looks records up locally.
//! This is perfectly private, whatever the server does. Queries and answers are empty, so everything else of a table
//! (descriptor, filter, tiers, changes, batches) works as with any other page.
//!
//! | message | bytes                                   |
//! |---------|-----------------------------------------|
//! | query   | 0                                       |
//! | answer  | 0                                       |
//! | hint    | blocks x columns x slot, compressed     |

use std::{ops::Range, sync::Arc};

use hush_he::{
    entities::PublicSeed,
    params::{LatticeProblem, ParameterSet},
};
use hush_math::csprng::Csprng;
use hush_ops::{contract::Steps, path::Step};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::{Given, Hint},
    facts::{Content, Database, Facts, FileSpec, HINT_FILE, HintPlan, SegmentRule, WordBits},
    halves::{HeadFacts, PartFacts},
    message::{check_length, check_vectors},
    page::{Batch, Files, Host, Page, Partial, Partials},
    registry::Protocol,
    table::{
        MAX_COLUMNS, MAX_DB_ROWS, MAX_SLOT_BYTES, SegmentShape, TableShape, check_limit, invalid_descriptor,
    },
    target::Target,
    wire::{self, QuerySizes},
};

/// The bits of the hash by which a client checks its table. Nothing else can fail or be broken.
const HASH_BITS: f64 = 256.0;
/// The most bytes of a segment, which a client holds in memory.
pub const MAX_DOWNLOAD_BYTES: usize = 256 << 20;
/// The most columns of a block. Larger blocks take longer to build and save little.
const BLOCK_COLUMNS: usize = 1 << 15;

/// The page of `download`.
pub struct Download;

/// The parameter set of a protocol without encryption. It has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain;

impl ParameterSet for Plain {
    fn presets() -> &'static [Self] {
        &[Self]
    }

    fn name(&self) -> &'static str {
        "DOWNLOAD"
    }

    fn security_bits(&self) -> f64 {
        HASH_BITS
    }

    fn problems(&self) -> Vec<LatticeProblem> {
        Vec::new()
    }
}

/// A table that clients download. It is determined by its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadTable(TableShape);

impl DownloadTable {
    /// Creates a table of `shape`, and checks the limits.
    fn new(shape: TableShape) -> Result<Self, ProtocolError> {
        check_limit("columns", shape.columns, MAX_COLUMNS)?;
        check_limit("slot bytes", shape.slot_bytes, MAX_SLOT_BYTES)?;
        let bytes = shape.blocks.saturating_mul(shape.columns).saturating_mul(shape.slot_bytes);
        check_limit("bytes of a table that clients download", bytes, MAX_DOWNLOAD_BYTES)?;
        Ok(Self(shape))
    }

    /// Returns the size of all slots in bytes.
    fn bytes(self) -> usize {
        self.0.blocks * self.0.columns * self.0.slot_bytes
    }

    /// Returns the byte range of a slot. `column` is a column of the base, and wraps around if the segment has fewer.
    fn slot(self, block: usize, column: u32) -> Range<usize> {
        let Self(TableShape { columns, slot_bytes, .. }) = self;
        let start = (block * columns + column as usize % columns) * slot_bytes;
        start..start + slot_bytes
    }
}

impl Page for Download {
    const PROTOCOL: Protocol = Protocol::Download;
    const NAME: &'static str = "download";
    const KEY_COLUMNS: usize = 1;

    type Set = Plain;
    type Table = DownloadTable;
    type Client = Hint;
    type Prepared = ();
    type Pending = ();
    type Scheme<B: Steps> = ();
    type Part<B: Steps> = Range<usize>;
    type Head<B: Steps> = ();
    type Opened<B: Steps> = ();

    fn default_set(_: usize) -> Plain {
        Plain
    }

    fn columns(_: &Plain, slots: usize, _: usize) -> usize {
        slots.min(BLOCK_COLUMNS)
    }

    fn table(_: Plain, shape: TableShape) -> Result<DownloadTable, ProtocolError> {
        DownloadTable::new(shape)
    }

    fn described(
        _: Plain,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<DownloadTable, ProtocolError> {
        match word_bits {
            None => DownloadTable::new(shape),
            Some(_) => Err(invalid_descriptor("a table that clients download has no widths of words")),
        }
    }

    fn segment(base: &DownloadTable, shape: SegmentShape) -> Result<DownloadTable, ProtocolError> {
        shape.check(&Self::facts(base).segments, MAX_DB_ROWS)?;
        DownloadTable::new(shape.shape)
    }

    fn facts(table: &DownloadTable) -> Facts {
        let DownloadTable(shape) = *table;
        Facts {
            protocol: Protocol::Download,
            preset: Plain.name(),
            security_bits: HASH_BITS,
            sigmas: f64::INFINITY,
            log2_failure: -HASH_BITS,
            shape,
            word_bits: None,
            query: QuerySizes::default(),
            answer_bytes: 0,
            hint_bytes: table.bytes() as u64,
            is_hint_compressed: true,
            keys: None,
            key_bytes: 0,
            prepared_bytes: 0,
            is_whitened: false,
            encoded_bytes: table.bytes() as u64,
            units: 1,
            lanes: shape.blocks,
            segments: SegmentRule { columns: shape.columns, column_unit: 1, entries: vec![1] },
            details: Vec::new(),
        }
    }

    fn partials(_: &DownloadTable) -> Partials {
        Partials::Together
    }

    fn database(_: &DownloadTable) -> Database {
        Database::Slots
    }

    fn hint(_: &DownloadTable) -> Option<HintPlan> {
        None
    }

    fn files(table: &DownloadTable) -> Vec<FileSpec> {
        let content = Content::Download { bytes: table.bytes() as u64 };
        vec![FileSpec { name: HINT_FILE, title: "table", content }]
    }

    fn opening(_: &DownloadTable) -> Vec<Step> {
        Vec::new()
    }

    fn part(_: &DownloadTable, _: &Range<usize>) -> PartFacts {
        PartFacts { files: Vec::new(), steps: Vec::new(), words: 0 }
    }

    fn head(_: &DownloadTable, _: &[Range<usize>]) -> HeadFacts {
        HeadFacts { files: Vec::new(), steps: Vec::new() }
    }

    fn client(table: &DownloadTable, given: &Given) -> Result<Hint, ProtocolError> {
        let hint = given.hint.clone().unwrap_or_else(|| Arc::new([]));
        check_length("hint", table.bytes(), (*hint).as_ref().len())?;
        Ok(hint)
    }

    fn prepare(_: &DownloadTable, _: &Hint, _: &mut Csprng) {}

    fn ask(_: &DownloadTable, _: &Hint, (): (), _: &Target, _: &mut Csprng) -> (wire::Query, ()) {
        (wire::Query::default(), ())
    }

    fn recover(
        table: &DownloadTable,
        hint: &Hint,
        (): &(),
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        check_length("answer", 0, answer.len())?;
        // A mapped file may have been shortened since `client` checked it.
        let slots = (**hint).as_ref();
        check_length("hint", table.bytes(), slots.len())?;
        let mut sum = Zeroizing::new(vec![0u8; table.0.slot_bytes]);
        for &(column, coefficient) in &target.columns {
            let slot = &slots[table.slot(target.block, column)];
            let bytes = sum.iter_mut().zip(slot);
            bytes.for_each(|(sum, byte)| *sum = sum.wrapping_add(byte.wrapping_mul(coefficient)));
        }
        Ok(sum)
    }

    fn scheme<B: Steps>(_: &B, _: &DownloadTable, _: PublicSeed) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn open_part<B: Steps, F: Files>(
        _: &Host<'_, Self, B>,
        units: Range<usize>,
        _: &F,
    ) -> Result<Range<usize>, F::Error> {
        Ok(units)
    }

    fn open_head<B: Steps, F: Files>(
        _: &Host<'_, Self, B>,
        _: &[Range<usize>],
        _: &F,
    ) -> Result<(), F::Error> {
        Ok(())
    }

    fn open<B: Steps>(
        _: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        _: &Range<usize>,
    ) -> Result<(), ProtocolError> {
        check_vectors(QuerySizes::default(), batch.queries)
    }

    fn wrap<B: Steps>(_: &Host<'_, Self, B>, (): &()) -> Result<(), ProtocolError> {
        Ok(())
    }

    fn narrow<B: Steps>((): &(), _: &Range<usize>) {}

    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        units: &Range<usize>,
        (): &(),
    ) -> Result<Partial<B::Words>, ProtocolError> {
        Ok(Partial { units: units.clone(), words: vec![host.backend.keep(Vec::new())?] })
    }

    fn finish<B: Steps>(
        _: &Host<'_, Self, B>,
        (): &(),
        (): &(),
        batch: &Batch<'_, B>,
        _: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        Ok(vec![Vec::new(); batch.queries.len()])
    }
}
