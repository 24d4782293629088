//! A table as plain data: facts, files, and the plan for its hint.

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

/// How plaintexts are kept in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DbForm {
    /// In evaluation form: read as they are.
    #[default]
    Evaluation,
    /// Symbols: as long as the records, and transformed for every batch.
    Symbols,
}

impl DbForm {
    /// Returns whether it is the one that goes without saying.
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

/// Bits of the words of a query, a hint and an answer, as a descriptor has them.
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
    /// The limit of decoding in standard deviations of the error; infinite without noise.
    pub sigmas: f64,
    /// log2 of the probability that an honest answer decodes wrongly (union bound).
    pub log2_failure: f64,
    /// The shape.
    pub shape: TableShape,
    /// Bits of words, where there are any.
    pub word_bits: Option<WordBits>,
    /// Bytes of the parts of a query.
    pub query: QuerySizes,
    /// Bytes of an answer.
    pub answer_bytes: usize,
    /// Bytes of the hint that a client has; 0 if there is none.
    pub hint_bytes: u64,
    /// Whether a hint that is downloaded with fewer bytes is a Zstandard frame of it.
    pub is_hint_compressed: bool,
    /// The RLWE set of the evaluation keys that a client uploads once; `None` if there are none.
    pub keys: Option<RingParams>,
    /// Bytes of the evaluation keys; 0 if there are none.
    pub key_bytes: usize,
    /// Whether the database is whitened, by a seed that the descriptor has.
    pub is_whitened: bool,
    /// Bytes of the database as it is scanned (without what a server computes from it and scans beside it).
    pub encoded_bytes: u64,
    /// Units in which the table can be cut into parts.
    pub units: usize,
    /// Blocks of an entry: an answer holds those of one entry.
    pub lanes: usize,
    /// The shapes of segments that are asked with the same queries.
    pub segments: SegmentRule,
    /// Facts that only some protocols have, by name, for people.
    pub details: Vec<(&'static str, Value)>,
}

impl Facts {
    /// Returns whether the parameter set reaches what every default does.
    pub fn is_secure(&self) -> bool {
        self.security_bits >= MIN_SECURITY_BITS
    }

    /// Returns whether a look-up sends nothing and gets nothing: all that it needs is in the client's hint.
    pub fn is_local(&self) -> bool {
        self.query.total() == 0 && self.answer_bytes == 0
    }
}

/// The rule for segments that are asked with the queries of a table, their base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRule {
    /// Columns of the base.
    pub columns: usize,
    /// The unit of a segment's columns: they are a divisor of the base's, and a multiple of this, or all.
    pub column_unit: usize,
    /// How many entries they may have, ascending. The entry of a key is its entry in the base modulo these.
    pub entries: Vec<usize>,
}

/// A file of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSpec {
    /// The name of the file in the snapshot's folder.
    pub name: &'static str,
    /// The name of the file for people.
    pub title: &'static str,
    /// The content of the file.
    pub content: Content,
}

/// The database of the first fold.
pub const DB_FILE: &str = "db.bin";
/// The database of a second fold, which is made of a hint.
pub const SECOND_DB_FILE: &str = "db2.bin";
/// The dictionary of compressed values, which clients download.
pub const DICTIONARY_FILE: &str = "dictionary.bin";
/// The hint that clients download.
pub const HINT_FILE: &str = "hint.bin";
/// The hint in evaluation form.
pub const LIFTED_FILE: &str = "lifted.bin";
/// The pack columns.
pub const COLUMNS_FILE: &str = "columns.bin";
/// The polynomials of the chain.
pub const CHAIN_FILE: &str = "chain.bin";

/// How slots lie in the database.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Database {
    /// Bytes: a block is a band of rows, a slot a column of it.
    Bytes(Tiling),
    /// Plaintexts, whitened, in the form that the table says.
    Plaintexts(RingTable),
    /// Slot after slot, block after block: what clients download, compressed, and no server computes with.
    Slots,
}

impl Database {
    /// Returns how plaintexts are kept in it; bytes are as they are.
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
    /// Rows of the database.
    pub rows: usize,
    /// A second database, of the whole hint; what follows is then made of *its* hint.
    pub second: Option<SecondDb>,
    /// The product that is made of the hint.
    pub product: HintProduct,
}

/// A database that is made of words of a hint ([`hush_ops::contract::LweOps::reinterpret_lwe`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondDb {
    /// Words of a block.
    pub items: usize,
    /// Bytes into which a word is cut.
    pub digits: usize,
    /// The database.
    pub tiling: Tiling,
    /// The shape of its public matrix.
    pub matrix: MatrixShape,
}

/// The product of a hint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HintProduct {
    /// Clients download it, a word at so many bits.
    Download {
        /// Bits of a word.
        bits: u32,
    },
    /// The server keeps it in evaluation form.
    Lifted {
        /// The RLWE set.
        ring: RingParams,
        /// Which rows are packed together.
        shape: PackShape,
    },
    /// Pack columns and a chain, to which the hint is switched.
    Chained {
        /// The parameter set.
        params: ColumnParams,
        /// Which rows are packed together.
        shape: PackShape,
    },
}
