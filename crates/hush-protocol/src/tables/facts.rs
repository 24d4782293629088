//! The public facts of a table as plain data: sizes, files, and the plan for its hint.

use std::{fmt, str::FromStr};

use hush_he::{
    entities::MatrixShape,
    params::{ColumnParams, MIN_SECURITY_BITS, RingParams},
};
pub use hush_ops::path::Content;
use hush_ops::{pack_shape::PackShape, tiling::Tiling};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{registry::Protocol, ring_table::RingTable, table::TableShape, wire::QuerySizes};

/// The form in which a database holds its plaintexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DbForm {
    /// Evaluation form, which a scan reads directly.
    #[default]
    Evaluation,
    /// Symbols, which take as many bytes as the records and are transformed for every batch.
    Symbols,
}

impl DbForm {
    /// Returns whether the form is the default, which descriptors leave out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for DbForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Evaluation => "evaluation",
            Self::Symbols => "symbols",
        })
    }
}

impl FromStr for DbForm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "evaluation" => Ok(Self::Evaluation),
            "symbols" => Ok(Self::Symbols),
            _ => Err(format!("unknown form '{name}': use evaluation or symbols")),
        }
    }
}

/// The bits of a word of a query, of a hint and of an answer, in this order, as in a descriptor.
pub type WordBits = [u32; 3];

/// The facts of a table, as plain data. Every size on the wire is a function of these alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The protocol.
    pub protocol: Protocol,
    /// Name of the parameter set.
    pub preset: &'static str,
    /// Security of the parameter set, in bits.
    pub security_bits: f64,
    /// The margin of decoding in standard deviations of the error. Infinite without noise.
    pub sigmas: f64,
    /// log2 of the probability that an honest answer decodes wrongly (union bound).
    pub log2_failure: f64,
    /// The shape.
    pub shape: TableShape,
    /// The bits of words. `None` if the protocol has no words.
    pub word_bits: Option<WordBits>,
    /// The sizes of the parts of a query, in bytes.
    pub query: QuerySizes,
    /// The size of an answer, in bytes.
    pub answer_bytes: usize,
    /// The size of the hint that a client downloads, in bytes. 0 without a hint.
    pub hint_bytes: u64,
    /// Whether the hint may be downloaded as a Zstandard frame, which has fewer bytes.
    pub is_hint_compressed: bool,
    /// The RLWE set of the evaluation keys that a client uploads once. `None` without such keys.
    pub keys: Option<RingParams>,
    /// The size of the evaluation keys, in bytes. 0 without keys.
    pub key_bytes: usize,
    /// The bytes that a query takes which a client prepares before it knows the target. 0 if there is nothing to prepare.
    pub prepared_bytes: usize,
    /// Whether the database is whitened, with the seed in the descriptor.
    pub is_whitened: bool,
    /// The size of the scanned database in bytes, without the data that a server derives from it.
    pub encoded_bytes: u64,
    /// The number of units of the table. A table can be split into parts at the bounds of units.
    pub units: usize,
    /// The number of blocks of an entry. An answer holds all blocks of one entry.
    pub lanes: usize,
    /// The shapes of segments that the same queries can ask.
    pub segments: SegmentRule,
    /// Facts that only some protocols have, by name, to be shown to people.
    pub details: Vec<(&'static str, Value)>,
}

impl Facts {
    /// Returns whether the parameter set is as secure as every default set must be.
    pub fn is_secure(&self) -> bool {
        self.security_bits >= MIN_SECURITY_BITS
    }

    /// Returns whether a look-up is answered by the client's hint alone, without a request.
    pub fn is_local(&self) -> bool {
        self.query.total() == 0 && self.answer_bytes == 0
    }
}

/// The rule for segments that are asked with the queries of a table, which is their base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRule {
    /// The number of columns of the base.
    pub columns: usize,
    /// The unit of a segment's columns: a divisor of the base's columns that is a multiple of it, or all.
    pub column_unit: usize,
    /// The permitted numbers of entries, ascending. A key's entry is its entry in the base modulo its number.
    pub entries: Vec<usize>,
}

/// A file of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSpec {
    /// The name of the file in the snapshot's folder.
    pub name: &'static str,
    /// The name of the file that people are shown.
    pub title: &'static str,
    /// The content of the file.
    pub content: Content,
}

/// The database of the first fold.
pub const DB_FILE: &str = "db.bin";
/// The database of a second fold, computed from a hint.
pub const SECOND_DB_FILE: &str = "db2.bin";
/// The dictionary of compressed values, which clients download.
pub const DICTIONARY_FILE: &str = "dictionary.bin";
/// The fences of a sorted table, which clients download.
pub const FENCES_FILE: &str = "fences.bin";
/// The fences of leaves that were split from others.
pub const ADDED_FENCES_FILE: &str = "fences-added.bin";
/// The hint that clients download.
pub const HINT_FILE: &str = "hint.bin";
/// The hint in evaluation form.
pub const LIFTED_FILE: &str = "lifted.bin";
/// The pack columns.
pub const COLUMNS_FILE: &str = "columns.bin";
/// The polynomials of the chain.
pub const CHAIN_FILE: &str = "chain.bin";

/// The arrangement of slots in the database.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Database {
    /// Bytes. A block is a band of rows, and a slot is a column of its block.
    Bytes(Tiling),
    /// Whitened plaintexts, in the form that the table names.
    Plaintexts(RingTable),
    /// Slot after slot, block after block: a compressed download, with which no server computes.
    Slots,
}

impl Database {
    /// Returns the form of the plaintexts, or the default form for a database without plaintexts.
    pub fn form(&self) -> DbForm {
        match self {
            Self::Bytes(_) | Self::Slots => DbForm::default(),
            Self::Plaintexts(table) => table.form(),
        }
    }
}

/// The plan for the hint of the database when a table is built.
#[derive(Clone, Debug, PartialEq)]
pub struct HintPlan {
    /// The shape of the public matrix of the database.
    pub matrix: MatrixShape,
    /// The number of rows of the database.
    pub rows: usize,
    /// A second database, computed from the whole hint. With one, `product` is computed from *its* hint.
    pub second: Option<SecondDb>,
    /// The product of the hint.
    pub product: HintProduct,
}

/// A database computed from words of a hint ([`hush_ops::contract::LweOps::reinterpret_lwe`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondDb {
    /// The number of words of a block.
    pub items: usize,
    /// The number of bytes into which a word is cut.
    pub digits: usize,
    /// The arrangement of the database.
    pub tiling: Tiling,
    /// The shape of its public matrix.
    pub matrix: MatrixShape,
}

/// The data that is computed from a hint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HintProduct {
    /// A hint that clients download, with a fixed number of bits for each word.
    Download {
        /// Bits of a word.
        bits: u32,
    },
    /// A hint that the server keeps in evaluation form.
    Lifted {
        /// The RLWE set.
        ring: RingParams,
        /// The rows that are packed together.
        shape: PackShape,
    },
    /// Pack columns and the chain of key switches that is applied to the hint, whose masks clients may download.
    Chained {
        /// The parameter set.
        params: ColumnParams,
        /// The rows that are packed together.
        shape: PackShape,
        /// The bits of a coefficient of the masks that clients download. `None` if they download none.
        mask_bits: Option<u32>,
    },
}
