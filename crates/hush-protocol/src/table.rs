//! A table's protocol, parameters and shape, checked together, and every size that follows from them.

use std::{fmt, str::FromStr};

use hush_he::params::{
    ColumnParams, LweParams, MIN_SECURITY_BITS, PackParams, RingParams, Widths, column_preset, pack_preset,
    ring_preset,
};
use hush_ops::tiling::Tiling;
use serde::{Deserialize, Serialize};

use crate::{
    ProtocolError, column_table::ColumnTable, lwe_table::LweTable, pack_table::PackTable,
    ring_keys::upload_bytes, ring_table::RingTable, wire::QuerySizes,
};

/// Most columns (D0): a query of this many words is 256 MiB, beyond any sensible one.
pub const MAX_COLUMNS: usize = 1 << 26;
/// Most database rows.
pub const MAX_ROWS: usize = 1 << 31;
/// Longest slot: a value of 1 MiB with fingerprint and length.
pub const MAX_SLOT_BYTES: usize = (1 << 20) + 64;
/// Look-ups that a client is taken to make before the table changes: what shapes and widths are weighed by.
pub const LOOKUPS_PER_EPOCH: f64 = 100.0;
/// Most bytes of DoublePIR's hint, which grows by several MiB with every byte of a slot.
pub const MAX_DOUBLE_HINT_BYTES: usize = 1 << 30;

/// Most bytes of what a server computes from a table and keeps beside it in one file: a lifted hint, the second database of
/// `exppack-d`, pack columns.
pub const MAX_KEPT_BYTES: u64 = 1 << 40;
/// Most bytes of an answer that is packed, which a client holds in memory.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// FrodoPIR: one row block; long queries, a small hint, answers of one record.
    Frodo,
    /// SimplePIR: several row blocks; query and answer of about the square root of the table.
    Simple,
    /// DoublePIR: a second fold over the first's result; a hint that does not grow with the table.
    Double,
    /// OnionPIRv2: over rings; nothing to download, short queries, evaluation keys that are uploaded once.
    Onion,
    /// ExpPack(S): SimplePIR with a packed answer: nothing to download; answers grow with the table.
    ExppackS,
    /// ExpPack(D): DoublePIR with a packed answer: nothing to download; for the shortest values.
    ExppackD,
    /// Double-packing: ExpPack(S) whose answer is a database for a second query.
    DoublePack,
    /// hybrid: ExpPack(S) whose answer is folded to one entry.
    Hybrid,
    /// Column packing, an answer for every entry: nothing to download, no keys to upload; answers grow with the table.
    ColpackS,
    /// Column packing, folded to one entry: nothing to download, no keys to upload: the default.
    Colpack,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 10] = [
        Protocol::Frodo,
        Protocol::Simple,
        Protocol::Double,
        Protocol::Onion,
        Protocol::ExppackS,
        Protocol::ExppackD,
        Protocol::DoublePack,
        Protocol::Hybrid,
        Protocol::ColpackS,
        Protocol::Colpack,
    ];

    /// The name used on the command line, in descriptors and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Frodo => "frodo",
            Protocol::Simple => "simple",
            Protocol::Double => "double",
            Protocol::Onion => "onion",
            Protocol::ExppackS => "exppack-s",
            Protocol::ExppackD => "exppack-d",
            Protocol::DoublePack => "double-pack",
            Protocol::Hybrid => "hybrid",
            Protocol::ColpackS => "colpack-s",
            Protocol::Colpack => "colpack",
        }
    }

    /// Whether clients upload evaluation keys before they ask.
    pub fn has_evaluation_keys(self) -> bool {
        matches!(self.family(), Family::Ring | Family::Pack)
    }

    /// What its ciphertexts are.
    pub fn family(self) -> Family {
        match self {
            Protocol::Frodo | Protocol::Simple | Protocol::Double => Family::Lwe,
            Protocol::Onion => Family::Ring,
            Protocol::ExppackS | Protocol::ExppackD | Protocol::DoublePack | Protocol::Hybrid => Family::Pack,
            Protocol::ColpackS | Protocol::Colpack => Family::Column,
        }
    }
}

/// What the ciphertexts of a protocol are, and so which parameter sets it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// LWE.
    Lwe,
    /// RLWE.
    Ring,
    /// LWE that is packed into RLWE by a client's evaluation keys.
    Pack,
    /// LWE that is packed into RLWE by keys that travel with the query.
    Column,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Protocol::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
            format!("unknown protocol '{name}': use {}", Protocol::ALL.map(Protocol::name).join(", "))
        })
    }
}

/// A protocol with its parameter set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// `frodo`, `simple` or `double` over LWE.
    Lwe(Protocol, LweParams),
    /// `onion` over rings.
    Ring(RingParams),
    /// `exppack-s`, `exppack-d`, `double-pack` or `hybrid`.
    Pack(Protocol, PackParams),
    /// `colpack-s` or `colpack`.
    Column(Protocol, ColumnParams),
}

impl Scheme {
    /// The scheme of `protocol` under the parameter set called `preset`.
    ///
    /// # Errors
    /// [`ProtocolError::He`] if the protocol has no set of that name.
    pub fn new(protocol: Protocol, preset: &str) -> Result<Self, ProtocolError> {
        Ok(match protocol.family() {
            Family::Lwe => Self::Lwe(protocol, hush_he::params::preset(preset)?),
            Family::Ring => Self::Ring(ring_preset(preset)?),
            Family::Pack => Self::Pack(protocol, pack_preset(preset)?),
            Family::Column => Self::Column(protocol, column_preset(preset)?),
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Lwe(protocol, _) | Self::Pack(protocol, _) | Self::Column(protocol, _) => *protocol,
            Self::Ring(_) => Protocol::Onion,
        }
    }
}

/// The shape of a table: `blocks` blocks, `columns` (D0) slots in each, of which a look-up adds up a few.
///
/// Over LWE, packed or not, a block is a band of `slot_bytes` database rows. Over rings it is a place in a plaintext of every row
/// of the first dimension ([`RingTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Slots in a block, the first dimension D0.
    pub columns: usize,
    /// Blocks.
    pub blocks: usize,
    /// Bytes of a slot.
    pub slot_bytes: usize,
}

impl TableShape {
    /// The tiling of the byte database of a table that is folded over LWE: a block is a band of `slot_bytes` rows.
    pub fn byte_tiling(&self) -> Tiling {
        Tiling::new(self.blocks * self.slot_bytes, self.columns)
    }
}

/// Checked parameters of a table. Everything on the wire has a size that is a function of this alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TableParams {
    /// Over LWE: `frodo`, `simple`, `double`.
    Lwe(LweTable),
    /// Over rings: `onion`.
    Ring(RingTable),
    /// LWE packed into RLWE: `exppack-s`, `exppack-d`, `double-pack`, `hybrid`.
    Pack(PackTable),
    /// LWE packed by keys that travel with the query: `colpack-s`, `colpack`.
    Column(ColumnTable),
}

impl TableParams {
    /// A table of `shape`, with the widths of words that suit it.
    ///
    /// # Errors
    /// As [`LweTable::new`], [`RingTable::new`], [`PackTable::new`] and [`ColumnTable::new`].
    pub fn new(scheme: Scheme, shape: TableShape) -> Result<Self, ProtocolError> {
        Ok(match scheme {
            Scheme::Lwe(protocol, lwe) => Self::Lwe(LweTable::new(protocol, lwe, shape)?),
            Scheme::Ring(ring) => Self::Ring(RingTable::new(ring, shape)?),
            Scheme::Pack(protocol, params) => Self::Pack(PackTable::new(protocol, params, shape)?),
            Scheme::Column(protocol, params) => Self::Column(ColumnTable::new(protocol, params, shape)?),
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Lwe(table) => table.protocol(),
            Self::Ring(_) => Protocol::Onion,
            Self::Pack(table) => table.protocol(),
            Self::Column(table) => table.protocol(),
        }
    }

    /// The shape.
    pub fn shape(&self) -> TableShape {
        match self {
            Self::Lwe(table) => table.shape(),
            Self::Ring(table) => table.shape(),
            Self::Pack(table) => table.shape(),
            Self::Column(table) => table.shape(),
        }
    }

    /// Name of the parameter set.
    pub fn preset(&self) -> &'static str {
        match self {
            Self::Lwe(table) => table.lwe().name(),
            Self::Ring(table) => table.ring().name(),
            Self::Pack(table) => table.params().name(),
            Self::Column(table) => table.params().name(),
        }
    }

    /// Security of the parameter set, in bits.
    pub fn security_bits(&self) -> f64 {
        match self {
            Self::Lwe(table) => table.lwe().security_bits(),
            Self::Ring(table) => table.ring().security_bits(),
            Self::Pack(table) => table.params().security_bits(),
            Self::Column(table) => table.params().security_bits(),
        }
    }

    /// Whether the parameter set reaches what every default does.
    pub fn is_secure(&self) -> bool {
        self.security_bits() >= MIN_SECURITY_BITS
    }

    /// Bytes of the parts of a query.
    pub fn query_bytes(&self) -> QuerySizes {
        match self {
            Self::Lwe(table) => {
                let (first, second) = table.query_bytes();
                QuerySizes::lwe(first, second)
            }
            Self::Ring(table) => QuerySizes::rlwe(table.query_bytes()),
            Self::Pack(table) => table.query_bytes(),
            Self::Column(table) => table.query_bytes(),
        }
    }

    /// Bytes of an answer.
    pub fn answer_bytes(&self) -> usize {
        match self {
            Self::Lwe(table) => table.answer_bytes(),
            Self::Ring(table) => table.answer_bytes(),
            Self::Pack(table) => table.answer_bytes(),
            Self::Column(table) => table.answer_bytes(),
        }
    }

    /// Bytes of the hint that a client downloads; 0 if the protocol has none.
    pub fn hint_bytes(&self) -> usize {
        match self {
            Self::Lwe(table) => table.hint_bytes(),
            Self::Ring(_) | Self::Pack(_) | Self::Column(_) => 0,
        }
    }

    /// Bytes of the evaluation keys that a client uploads once; 0 if the protocol has none.
    pub fn key_bytes(&self) -> usize {
        match self {
            Self::Lwe(_) | Self::Column(_) => 0,
            Self::Ring(table) => upload_bytes(table.ring()),
            Self::Pack(table) => upload_bytes(table.params().ring()),
        }
    }

    /// Bytes of the database as it is scanned (without what a server computes from it and scans beside it).
    pub fn encoded_bytes(&self) -> usize {
        match self {
            Self::Lwe(table) => table.tiling().bytes(),
            Self::Ring(table) => table.tiling().bytes(),
            Self::Pack(table) => table.tiling().bytes(),
            Self::Column(table) => table.tiling().bytes(),
        }
    }

    /// The limit of decoding in standard deviations of the error; infinite without noise.
    pub fn sigmas(&self) -> f64 {
        match self {
            Self::Lwe(table) => table.noise().sigmas(),
            Self::Ring(table) => table.noise().sigmas(),
            Self::Pack(table) => table.sigmas(),
            Self::Column(table) => table.sigmas(),
        }
    }

    /// log2 of the probability that an honest answer decodes wrongly (union bound).
    pub fn log2_failure(&self) -> f64 {
        match self {
            Self::Lwe(table) => table.log2_failure(),
            Self::Ring(table) => table.log2_failure(),
            Self::Pack(table) => table.log2_failure(),
            Self::Column(table) => table.log2_failure(),
        }
    }
}

/// The fewest bits of a query word that keep [`Widths::MIN_SIGMAS`]; 32 if none do.
pub(crate) fn fewest_query_bits(sigmas: impl Fn(u32) -> f64) -> u32 {
    (16..=32).find(|&bits| sigmas(bits) >= Widths::MIN_SIGMAS).unwrap_or(32)
}

/// `Ok` if `protocol` is one of `family`.
pub(crate) fn check_family(protocol: Protocol, family: Family) -> Result<(), ProtocolError> {
    if protocol.family() == family { Ok(()) } else { Err(ProtocolError::Family { protocol }) }
}

/// `Ok` if what a server keeps is at most [`MAX_KEPT_BYTES`] long.
pub(crate) fn check_kept(what: &'static str, actual: u64) -> Result<(), ProtocolError> {
    if actual <= MAX_KEPT_BYTES {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual, allowed: format!("up to {MAX_KEPT_BYTES}") })
}

/// `Ok` if `actual` is 1 to `max`.
pub(crate) fn check_limit(what: &'static str, actual: usize, max: usize) -> Result<(), ProtocolError> {
    if (1..=max).contains(&actual) {
        return Ok(());
    }
    Err(ProtocolError::Limit { what, actual: actual as u64, allowed: format!("1 to {max}") })
}
