//! What a client must know of a table. Served as JSON by `GET /v1/tables/{t}`, kept in a snapshot's header.

use hush_he::params::ParameterSet;
use serde::{Deserialize, Serialize};

use crate::{
    ProtocolError,
    any_page::TableParams,
    facts::WordBits,
    fields::Fields,
    keyword::{BlockMap, FilterKind, MAX_BLOCKS, MAX_FINGERPRINT_BYTES},
    page::Page,
    registry::Protocol,
    signature::Signature,
    slot::{MAX_VALUE_BYTES, SlotFormat},
    table::{TableShape, invalid_descriptor},
    wire::MAX_PRESET_BYTES,
};

/// The version of the descriptor that this program writes and reads.
pub const DESCRIPTOR_VERSION: u32 = 1;
/// Longest descriptor that a client reads.
pub const MAX_DESCRIPTOR_BYTES: usize = 64 << 20;

/// The public description of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// [`DESCRIPTOR_VERSION`].
    pub version: u32,
    /// Hash of the rest of this descriptor but its signature (and so of the table's content): what a query names.
    #[serde(with = "hex")]
    pub epoch: [u8; 32],
    /// The protocol.
    pub protocol: Protocol,
    /// Name of the parameter set.
    pub preset: String,
    /// Number of records.
    pub records: u64,
    /// Columns (D0): slots of a block.
    pub columns: usize,
    /// Blocks.
    pub blocks: usize,
    /// Over LWE: bits of a query word, a hint word and an answer word; the latter two are those that are packed where
    /// answers are packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_bits: Option<WordBits>,
    /// What is in a slot.
    pub slot: SlotFormat,
    /// Of values of several columns: their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Fields>,
    /// How a record is found.
    pub lookup: Lookup,
    /// Over LWE, unpacked: the hint that a client downloads once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<BlobRef>,
    /// Over rings: the seed of the whitening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whitening: Option<WhiteningSeed>,
    /// A hash of the encoded database: BLAKE3 of the checksums of its file.
    #[serde(with = "hex")]
    pub database: [u8; 32],
    /// Who published it, if that is known. It signs the epoch, which is not of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// How a record is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Lookup {
    /// By its position in the input, from 0.
    Index,
    /// By key.
    Key(KeyLookup),
}

/// The key layer of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLookup {
    /// The filter.
    pub filter: FilterKind,
    /// Seed of the key hash.
    #[serde(with = "hex")]
    pub seed: [u8; 32],
    /// One byte a block: keys whose balance byte is below it live in their second block.
    #[serde(with = "hex")]
    pub thresholds: Vec<u8>,
    /// One byte a block: the seed under which its filter could be built.
    #[serde(with = "hex")]
    pub block_seeds: Vec<u8>,
}

/// A file to download, named by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// BLAKE3 of the content.
    #[serde(with = "hex")]
    pub blake3: [u8; 32],
    /// Length.
    pub bytes: u64,
}

/// The public seed of a table's whitening ([`crate::whitening`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WhiteningSeed(#[serde(with = "hex")] pub [u8; 32]);

impl Descriptor {
    /// Sets the epoch to the hash of everything else but a signature, of which there is none then.
    pub fn seal(&mut self) {
        self.epoch = self.computed_epoch();
        self.signature = None;
    }

    /// The JSON text that is served.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a descriptor is plain data")
    }

    /// Reads a descriptor from the network.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if it is too long, no descriptor, of another version, or altered.
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
            let text = format!("version {version}, this program reads {DESCRIPTOR_VERSION}: update it");
            return Err(invalid_descriptor(&text));
        }
        let descriptor: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        descriptor.check()?;
        Ok(descriptor)
    }

    /// Everything that can be wrong with a descriptor beside its syntax.
    ///
    /// # Errors
    /// [`ProtocolError`] with the reason.
    pub fn check(&self) -> Result<(), ProtocolError> {
        if self.epoch != self.computed_epoch() {
            return Err(invalid_descriptor("the epoch is not the hash of the content"));
        }
        if self.signature.is_some_and(|signature| !signature.is_of(&self.epoch)) {
            return Err(invalid_descriptor("the publisher that it names has not signed the epoch"));
        }
        // It is part of messages.
        if !self.preset.bytes().all(|c| c.is_ascii_graphic()) || self.preset.len() > MAX_PRESET_BYTES {
            return Err(invalid_descriptor("no parameter set has such a name"));
        }
        self.fields.as_ref().map_or(Ok(()), Fields::check)?;
        let params = self.params()?;
        let facts = params.facts();
        if self.hint.as_ref().map_or(0, |hint| hint.bytes) != facts.hint_bytes
            || self.hint.is_some() != (facts.hint_bytes > 0)
        {
            return Err(invalid_descriptor("the hint's length does not fit the shape"));
        }
        if self.whitening.is_some() != facts.is_whitened {
            return Err(invalid_descriptor("a table has whitening if it is over rings"));
        }
        if self.slot.max_value_bytes as usize > MAX_VALUE_BYTES
            || self.slot.length_bytes > 3
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
            Lookup::Key(_) if self.blocks > MAX_BLOCKS => {
                Err(invalid_descriptor("more blocks than a descriptor can list: use more columns"))
            }
            Lookup::Key(_) if self.slot.fingerprint_bytes == 0 => {
                Err(invalid_descriptor("a table by key needs fingerprints"))
            }
            Lookup::Key(key) if [key.thresholds.len(), key.block_seeds.len()] != [self.blocks; 2] => {
                Err(invalid_descriptor("the block map does not fit the number of blocks"))
            }
            _ => Ok(()),
        }
    }

    /// The parameters.
    ///
    /// # Errors
    /// [`ProtocolError`] if the preset is unknown or the shape is refused.
    pub fn params(&self) -> Result<TableParams, ProtocolError> {
        self.protocol.page().described(&self.preset, self.shape(), self.word_bits)
    }

    /// The parameters as those of the page `P`, which is that of the protocol.
    ///
    /// # Errors
    /// As [`Descriptor::params`].
    pub fn table<P: Page>(&self) -> Result<P::Table, ProtocolError> {
        P::described(P::Set::named(&self.preset)?, self.shape(), self.word_bits)
    }

    fn shape(&self) -> TableShape {
        TableShape { columns: self.columns, blocks: self.blocks, slot_bytes: self.slot.slot_bytes() }
    }

    fn computed_epoch(&self) -> [u8; 32] {
        let unsealed = Self { epoch: [0; 32], signature: None, ..self.clone() };
        blake3::derive_key("hushdb v1 2026 epoch", &unsealed.to_json())
    }
}

/// The parser's words, in which there may be some of the server's: fit for one line of a terminal.
fn unreadable(error: serde_json::Error) -> ProtocolError {
    const SHOWN: usize = 300;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    invalid_descriptor(&error.to_string().chars().take(SHOWN).map(plain).collect::<String>())
}

impl KeyLookup {
    /// The block of every key.
    pub fn block_map(&self) -> BlockMap {
        BlockMap { thresholds: self.thresholds.clone(), seeds: self.block_seeds.clone() }
    }
}
