//! The descriptor: the public description of a table, from which a client learns everything that it needs. It is served as
//! JSON by `GET /v1/tables/{t}`, and kept in a snapshot's header.

use hush_he::{entities::PublicSeed, params::ParameterSet};
use serde::{Deserialize, Serialize};

use crate::{
    ProtocolError,
    any_page::TableParams,
    changes::ChangeFormat,
    facts::{DbForm, WordBits},
    keyword::{BlockMap, FilterKind, LaneMap, MAX_BLOCKS, MAX_FINGERPRINT_BYTES, WrappedFilter},
    page::Page,
    registry::Protocol,
    schema::Schema,
    signature::Signature,
    slot::{MAX_VALUE_BYTES, SlotFormat},
    sorted::Sorted,
    table::{SegmentShape, TableShape, invalid_descriptor},
    wire::MAX_PRESET_BYTES,
};

/// The version of descriptors. Another version may imply other matrices, so a reader refuses all other versions.
pub const DESCRIPTOR_VERSION: u32 = 3;
/// The most length tiers of a table.
pub const MAX_TIERS: usize = 16;
/// The most segments of a table: its tiers, and equally many segments of changes.
pub const MAX_SEGMENTS: usize = 2 * MAX_TIERS;
/// The longest descriptor that a client reads, in bytes.
pub const MAX_DESCRIPTOR_BYTES: usize = 64 << 20;

/// The public description of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// [`DESCRIPTOR_VERSION`].
    pub version: u32,
    /// The hash of the rest of this descriptor without its signature, and so of the table's content. Queries name it,
    /// except in tables with room for changes ([`Descriptor::asked`]).
    #[serde(with = "hex")]
    pub epoch: [u8; 32],
    /// The protocol.
    pub protocol: Protocol,
    /// The name of the parameter set.
    pub preset: String,
    /// The number of records of the base.
    pub records: u64,
    /// The number of columns (D0), which is the number of slots of a block.
    pub columns: usize,
    /// The number of blocks.
    pub blocks: usize,
    /// Over LWE: the bits of a query word, a hint word and an answer word. Where answers are packed, the latter two are the
    /// words that are packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_bits: Option<WordBits>,
    /// Over rings: the form in which the database holds plaintexts.
    #[serde(default, skip_serializing_if = "DbForm::is_default")]
    pub form: DbForm,
    /// The format of a slot.
    pub slot: SlotFormat,
    /// The columns of keys and values. `None` if the input had no columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The compression of values. `None` if they are not compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// The way in which a record is found.
    pub lookup: Lookup,
    /// The order of a sorted table, whose records are leaves. `None` if the table is not sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sorted: Option<Sorted>,
    /// Over LWE without packing: the hint that a client downloads once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<BlobRef>,
    /// Over rings: the seed of the whitening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whitening: Option<WhiteningSeed>,
    /// The hash of the encoded database: BLAKE3 of the checksums of its file.
    #[serde(with = "hex")]
    pub database: [u8; 32],
    /// The segments beside the base. The fields above describe the base, and its query asks all segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// The signature of the publisher. `None` if the table is not signed. It signs the epoch, which does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// The compression of a table's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compression {
    /// The format.
    pub codec: Codec,
    /// The dictionary that all values share, which a client downloads once.
    pub dictionary: BlobRef,
    /// The length of the longest value before compression, in bytes.
    pub max_value_bytes: u32,
}

/// A format of compressed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// A Zstandard frame (RFC 8878) of a single segment, without magic number and with the length of its content.
    Zstd,
}

/// The longest dictionary, in bytes.
pub const MAX_DICTIONARY_BYTES: u64 = 1 << 20;

/// A segment beside the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The role of the segment.
    pub role: Role,
    /// The number of records. In a segment of changes, the number of records for which there is room.
    pub records: u64,
    /// The number of columns, a divisor of the base's.
    pub columns: usize,
    /// The number of blocks. Each entry has the same number of them.
    pub blocks: usize,
    /// The number of entries. The entry of a key is its entry in the base modulo this number.
    pub entries: usize,
    /// The number of bytes of a slot.
    pub slot_bytes: usize,
    /// The map from keys to lanes.
    pub lanes: LaneMap,
    /// The hint, as in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<BlobRef>,
    /// The seed of the whitening, as in the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whitening: Option<WhiteningSeed>,
    /// The hash of the database, as in the base.
    #[serde(with = "hex")]
    pub database: [u8; 32],
}

/// The role of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A length tier: the next bytes of the values that are longer than the base and the tiers before hold.
    Tier,
    /// A segment of changes. These follow all tiers. The first holds the records that changed since the base was built
    /// ([`ChangeFormat`]), and further ones the next bytes of changed values.
    Delta,
}

impl Role {
    /// Returns the name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tier => "tier",
            Self::Delta => "delta",
        }
    }
}

impl Segment {
    /// Returns the shape of the segment.
    pub fn shape(&self) -> SegmentShape {
        let &Self { columns, blocks, slot_bytes, entries, .. } = self;
        SegmentShape { shape: TableShape { columns, blocks, slot_bytes }, entries }
    }
}

/// The way in which a record is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Lookup {
    /// By its position in the input, from 0.
    Index,
    /// By key.
    Key(KeyLookup),
    /// By its position, used as an 8-byte little-endian key. Tables of several segments do so.
    #[serde(rename = "position")]
    Position(KeyLookup),
}

impl Lookup {
    /// Returns the key layer, or `None` for a table that is asked by index.
    pub fn keys(&self) -> Option<&KeyLookup> {
        match self {
            Self::Index => None,
            Self::Key(keys) | Self::Position(keys) => Some(keys),
        }
    }
}

/// The key layer of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLookup {
    /// The filter.
    pub filter: FilterKind,
    /// The seed of the key hash.
    #[serde(with = "hex")]
    pub seed: [u8; 32],
    /// The thresholds, one byte for each block. Keys whose balance byte is below the threshold are in their second block.
    #[serde(with = "hex")]
    pub thresholds: Vec<u8>,
    /// The filter seeds, one byte for each block: the seed under which the block's filter could be built.
    #[serde(with = "hex")]
    pub block_seeds: Vec<u8>,
}

/// A file to download, named by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// The BLAKE3 hash of the content.
    #[serde(with = "hex")]
    pub blake3: [u8; 32],
    /// The length in bytes.
    pub bytes: u64,
}

/// The public seed of a table's whitening ([`crate::whitening`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WhiteningSeed(#[serde(with = "hex")] pub [u8; 32]);

impl Descriptor {
    /// Sets the epoch to the hash of the content, and removes the signature, which was of the former epoch.
    pub fn seal(&mut self) {
        self.epoch = self.computed_epoch();
        self.signature = None;
    }

    /// Returns the JSON text that a server sends.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a descriptor is plain data")
    }

    /// Reads a descriptor from the network.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if the descriptor is too long, malformed, inconsistent or of another version, if its text is
    /// not the one that [`Descriptor::to_json`] writes, or if its epoch is not its hash.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ProtocolError> {
        if bytes.len() > MAX_DESCRIPTOR_BYTES {
            return Err(invalid_descriptor("longer than 64 MiB"));
        }
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let Version { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version != u64::from(DESCRIPTOR_VERSION) {
            let remedy = match version < u64::from(DESCRIPTOR_VERSION) {
                true => "build the table again, with the program of this version",
                false => "update this program",
            };
            let text = format!("version {version}, this program reads {DESCRIPTOR_VERSION}: {remedy}");
            return Err(invalid_descriptor(&text));
        }
        let descriptor: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        // Otherwise a text could say to others what it does not say here, and have the same epoch.
        if descriptor.to_json() != bytes {
            return Err(invalid_descriptor(
                "its text has white space, other members, or is written otherwise",
            ));
        }
        descriptor.check()?;
        Ok(descriptor)
    }

    /// Checks the version, the hash, the signature and the ranges of a parsed descriptor.
    pub fn check(&self) -> Result<(), ProtocolError> {
        if self.version != DESCRIPTOR_VERSION {
            return Err(invalid_descriptor(&format!(
                "version {}, this program knows {DESCRIPTOR_VERSION} alone",
                self.version
            )));
        }
        if self.epoch != self.computed_epoch() {
            return Err(invalid_descriptor("the epoch is not the hash of the content"));
        }
        if self.signature.as_ref().is_some_and(|signature| !signature.is_of(&self.epoch)) {
            return Err(invalid_descriptor(
                "the publisher that it names has not signed its name, serial, time and epoch",
            ));
        }
        // The preset's name is sent in messages.
        if !self.preset.bytes().all(|c| c.is_ascii_graphic()) || self.preset.len() > MAX_PRESET_BYTES {
            return Err(invalid_descriptor("no parameter set has such a name"));
        }
        self.schema.as_ref().map_or(Ok(()), |schema| schema.check(self.is_by_key()))?;
        self.sorted.as_ref().map_or(Ok(()), |sorted| sorted.check(self))?;
        self.check_segments()?;
        if self.compression.as_ref().is_some_and(|compression| {
            compression.dictionary.bytes > MAX_DICTIONARY_BYTES
                || compression.max_value_bytes as usize > MAX_VALUE_BYTES
        }) {
            return Err(invalid_descriptor("the compression is out of range"));
        }
        let params = self.params()?;
        for (segment, (hint, whitening)) in params.segments().iter().zip(self.given()) {
            let facts = segment.facts();
            let is_as_long = match hint {
                None => facts.hint_bytes == 0,
                Some(hint) if facts.is_hint_compressed => (1..=facts.hint_bytes).contains(&hint.bytes),
                Some(hint) => facts.hint_bytes > 0 && hint.bytes == facts.hint_bytes,
            };
            if !is_as_long {
                return Err(invalid_descriptor("the hint's length does not fit the shape"));
            }
            if whitening.is_some() != facts.is_whitened {
                return Err(invalid_descriptor("a table has whitening if it is over rings"));
            }
        }
        if self.slot.max_value_bytes as usize > MAX_VALUE_BYTES
            || self.slot.length_bytes > 4
            || usize::from(self.slot.fingerprint_bytes) > MAX_FINGERPRINT_BYTES
        {
            return Err(invalid_descriptor("the slot format is out of range"));
        }
        match &self.lookup {
            Lookup::Index if self.slot.fingerprint_bytes != 0 => {
                Err(invalid_descriptor("a table by index has no fingerprints"))
            }
            Lookup::Index if self.records == 0 || self.records > self.columns as u64 * self.blocks as u64 => {
                Err(invalid_descriptor("the number of records does not fit the shape"))
            }
            Lookup::Key(_) | Lookup::Position(_) if self.blocks > MAX_BLOCKS => {
                Err(invalid_descriptor("more blocks than a descriptor can list: use more columns"))
            }
            Lookup::Key(_) if self.slot.fingerprint_bytes == 0 => {
                Err(invalid_descriptor("a table by key needs fingerprints"))
            }
            Lookup::Position(_) if self.segments.is_empty() || self.records == 0 => {
                Err(invalid_descriptor("a position is a key in tables of several segments alone"))
            }
            Lookup::Key(key) | Lookup::Position(key)
                if [key.thresholds.len(), key.block_seeds.len()] != [self.blocks; 2] =>
            {
                Err(invalid_descriptor("the block map does not fit the number of blocks"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether clients look rows up by key: in a table by key, and in a sorted table.
    pub fn is_by_key(&self) -> bool {
        matches!(self.lookup, Lookup::Key(_)) || self.sorted.is_some()
    }

    /// Returns the number of rows that clients can find: of records, or in a sorted table of the rows of its leaves.
    pub fn rows(&self) -> u64 {
        self.sorted.as_ref().map_or(self.records, |sorted| sorted.rows)
    }

    /// Returns the number of segments that are tiers of the base. All segments after these hold changes.
    pub fn tiers(&self) -> usize {
        self.segments.iter().take_while(|segment| segment.role == Role::Tier).count()
    }

    /// Returns the ends of the parts of a value, in bytes: the end of the part in the base, then in each tier.
    pub fn tier_ends(&self) -> Vec<usize> {
        let mut ends = vec![self.slot.stored_bytes()];
        ends.extend(self.segments[..self.tiers()].iter().scan(self.slot.stored_bytes(), |end, tier| {
            *end += tier.slot_bytes;
            Some(*end)
        }));
        ends
    }

    /// Returns the format of a slot of changes, or `None` if the table has no room for changes.
    pub fn changes(&self) -> Option<ChangeFormat> {
        let first = self.segments.get(self.tiers())?;
        ChangeFormat::of_slots(self.slot.max_value_bytes as usize, first.slot_bytes)
    }

    /// Returns the hash that a query names. This is the epoch, or the [geometry](Descriptor::geometry) of a table with room
    /// for changes, so that its queries stay valid in later epochs. In a sorted table, it also depends on the fences: a split moves
    /// rows to another position, so that all queries are made anew, whichever leaf they ask.
    pub fn asked(&self) -> [u8; 32] {
        match &self.sorted {
            _ if self.changes().is_none() => self.epoch,
            None => self.geometry(),
            Some(sorted) => {
                let mut parts = self.geometry().to_vec();
                sorted.files().for_each(|file| parts.extend_from_slice(&file.blob.blake3));
                blake3::derive_key("hushdb v2 2026 sorted queries", &parts)
            }
        }
    }

    /// Returns the seed of the table's public matrices and masks, which is its [geometry](Descriptor::geometry). Everyone
    /// computes it from the descriptor; no message contains it.
    pub fn public_seed(&self) -> PublicSeed {
        PublicSeed(self.geometry())
    }

    /// Returns a hash of everything on which queries and the sizes of answers depend. It leaves out the records and what is
    /// computed from the public matrix, such as hints, so it stays the same while records change.
    pub fn geometry(&self) -> [u8; 32] {
        let segments = self.segments.iter().map(|segment| Segment {
            records: 0,
            lanes: LaneMap { seeds: Vec::new(), thresholds: Vec::new() },
            hint: None,
            whitening: None,
            database: [0; 32],
            ..segment.clone()
        });
        let geometry = Self {
            epoch: [0; 32],
            records: 0,
            schema: None,
            compression: None,
            sorted: None,
            hint: None,
            whitening: None,
            database: [0; 32],
            segments: segments.collect(),
            signature: None,
            ..self.clone()
        };
        blake3::derive_key("hushdb v2 2026 geometry", &geometry.to_json())
    }

    /// Returns the parameters.
    ///
    /// # Errors
    /// [`ProtocolError`] if the preset is unknown, or the shape is out of range.
    pub fn params(&self) -> Result<TableParams, ProtocolError> {
        let base =
            self.protocol.page().described(&self.preset, self.shape(), self.word_bits)?.in_form(self.form)?;
        self.segments.iter().try_fold(base, |table, segment| table.with_segment(segment.shape()))
    }

    /// Returns the parameters of all segments, the base first, as types of the page `P`. `P` must be the page of the protocol.
    pub fn tables<P: Page>(&self) -> Result<Vec<P::Table>, ProtocolError> {
        let base = P::described(P::Set::named(&self.preset)?, self.shape(), self.word_bits)?;
        let base = P::in_form(base, self.form)?;
        let beside = self.segments.iter().map(|segment| P::segment(&base, segment.shape()));
        let beside = beside.collect::<Result<Vec<_>, _>>()?;
        Ok([vec![base], beside].concat())
    }

    /// Returns the files that a client downloads once: the dictionary and the fences, if there are any, then the hints.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobRef> {
        let dictionary = self.compression.iter().map(|compression| &compression.dictionary);
        let fences = self.sorted.iter().flat_map(Sorted::files).map(|file| &file.blob);
        dictionary.chain(fences).chain(self.given().filter_map(|(hint, _)| hint))
    }

    /// Returns the total size of all hints as clients download them, in bytes.
    pub fn hint_bytes(&self) -> u64 {
        self.given().filter_map(|(hint, _)| hint).map(|hint| hint.bytes).sum()
    }

    /// Returns the hint and the whitening seed of every segment, the base first.
    pub fn given(&self) -> impl Iterator<Item = (Option<&BlobRef>, Option<WhiteningSeed>)> {
        let beside = self.segments.iter().map(|segment| (segment.hint.as_ref(), segment.whitening));
        std::iter::once((self.hint.as_ref(), self.whitening)).chain(beside)
    }

    /// Checks the list of segments. Their shapes are checked by [`Descriptor::params`].
    fn check_segments(&self) -> Result<(), ProtocolError> {
        if self.segments.is_empty() {
            let is_whole = self.slot.head_bytes.is_none();
            return if is_whole { Ok(()) } else { Err(invalid_descriptor("a value goes on in no segment")) };
        }
        if self.segments.len() >= MAX_SEGMENTS {
            return Err(invalid_descriptor("more segments than any table has"));
        }
        let Some(keys) = self.lookup.keys() else {
            return Err(invalid_descriptor("a table of several segments is looked up by key or position"));
        };
        if !WrappedFilter::suits(keys.filter) || self.columns < WrappedFilter::min_columns(keys.filter) {
            return Err(invalid_descriptor("the filter is none of a table of several segments"));
        }
        if !self.segments.iter().all(|segment: &Segment| {
            segment.columns >= WrappedFilter::min_columns(keys.filter)
                && segment.blocks <= MAX_BLOCKS
                && segment.lanes.thresholds.len() == segment.blocks
                && segment.lanes.seeds.len() == segment.entries
        }) {
            return Err(invalid_descriptor("a segment's lanes do not fit its shape"));
        }
        let (tiers, changes) = self.segments.split_at(self.tiers());
        if changes.iter().any(|segment| segment.role != Role::Delta) {
            return Err(invalid_descriptor("changes come behind all tiers"));
        }
        let longest = self.slot.max_value_bytes as usize;
        let stored = |head, tiers: &[Segment]| {
            tiers.iter().map(|segment| segment.slot_bytes).fold(head, usize::saturating_add)
        };
        if stored(self.slot.stored_bytes(), tiers) != longest {
            return Err(invalid_descriptor("the tiers are not as long as the longest value"));
        }
        let Some((_, behind)) = changes.split_first() else { return Ok(()) };
        match self.changes() {
            Some(format) if stored(format.head_bytes(), behind) == longest => Ok(()),
            _ => Err(invalid_descriptor("the changes are not as long as the longest value")),
        }
    }

    fn shape(&self) -> TableShape {
        TableShape { columns: self.columns, blocks: self.blocks, slot_bytes: self.slot.slot_bytes() }
    }

    fn computed_epoch(&self) -> [u8; 32] {
        let unsealed = Self { epoch: [0; 32], signature: None, ..self.clone() };
        blake3::derive_key("hushdb v2 2026 epoch", &unsealed.to_json())
    }
}

/// Converts an error of the JSON parser. Its text may quote the server's, so it is shortened to one line for a terminal.
fn unreadable(error: serde_json::Error) -> ProtocolError {
    const SHOWN: usize = 300;
    invalid_descriptor(
        &error
            .to_string()
            .chars()
            .take(SHOWN)
            .map(|c: char| if c.is_control() { ' ' } else { c })
            .collect::<String>(),
    )
}

impl KeyLookup {
    /// Returns the map from keys to blocks.
    pub fn block_map(&self) -> BlockMap {
        BlockMap { thresholds: self.thresholds.clone(), seeds: self.block_seeds.clone() }
    }
}
