//! A table as a client sees it: it encrypts queries and decodes answers.

use std::sync::Arc;

use hush_math::{constant_time::divide, csprng::Csprng};
use hush_protocol::{
    ProtocolError, Target,
    any_page::TableParams,
    changes::{CHANGE_FINGERPRINT_BYTES, Change, ChangeFormat},
    client::{ClientHalf, Given, Hint, Pending, Prepared},
    descriptor::{Descriptor, KeyLookup},
    facts::Facts,
    keyword::{BlockMap, FilterParams, KeyDigest, position_key},
    layout,
    ring_keys::RingKeys,
    sorted::{
        fences::Fences,
        found::{RowMatch, SoughtRow},
    },
    wire,
};
use zeroize::Zeroizing;

use crate::{Acceptance, ClientError, Decompressor, Found, Wanted, decompressor::hint_of_frame};

/// The name of evaluation keys: the BLAKE3 hash of the upload.
pub type KeyId = [u8; wire::KEY_ID_BYTES];

/// A table's descriptor, with its hints or with the client's keys, ready for look-ups.
#[derive(Clone)]
pub struct Table {
    descriptor: Descriptor,
    /// The hash that queries name.
    asked: [u8; 32],
    params: TableParams,
    /// The format of a slot of changes. `None` if the table has no room for changes.
    changes: Option<ChangeFormat>,
    /// The block map. `None` if records are found without a filter.
    block_map: Option<BlockMap>,
    /// The decompressor. `None` if values are not compressed.
    decompressor: Option<Decompressor>,
    /// The fences of a sorted table.
    fences: Option<Arc<Fences>>,
    /// Whether callers get values in the stored form.
    is_stored_form: bool,
    /// The inputs of the client's half of each segment. Evaluation keys may still be missing.
    given: Vec<Given>,
    /// The client's half of every segment, the base first. Empty while the client's keys are missing.
    halves: Vec<Arc<dyn ClientHalf>>,
}

/// The state between a query and its answer: the secrets that decrypt, which are wiped when dropped.
pub struct PendingLookup {
    pending: Pending,
    /// The targets in the segments beside the base.
    beside: Vec<Target>,
    /// The fingerprint of the key, at the greatest length of any slot format. Empty in a table by index.
    fingerprint: Zeroizing<Vec<u8>>,
    /// The row that is sought in the leaf, in a sorted table.
    row: Option<LeafTarget>,
    /// The reason why the table cannot have the record, if there is one.
    refused: Option<ProtocolError>,
}

/// A query without its target, for a single look-up in the table that prepared it. Its secrets are wiped when dropped.
pub struct PreparedQuery {
    /// The hash that the query names.
    asked: [u8; 32],
    prepared: Prepared,
}

/// The result of decoding an answer.
pub struct Decoded {
    /// The record, or the reason why it cannot be read.
    pub found: Result<Found, ClientError>,
    /// Whether an honest server can have sent the answer, because the contents of its slots decode. A server that forges
    /// answers could learn of its client's secrets if it saw whether they decode.
    pub is_sound: bool,
}

/// The target of a look-up, and the fingerprint that its slots must have.
struct Sought {
    target: Target,
    beside: Vec<Target>,
    fingerprint: Zeroizing<Vec<u8>>,
    row: Option<LeafTarget>,
    refused: Option<ProtocolError>,
}

/// The row that a look-up in a sorted table seeks.
struct LeafTarget {
    sought: SoughtRow,
    position: u64,
    /// Whether no leaf is behind the row's leaf.
    is_last: bool,
}

impl Table {
    /// Creates a table from its descriptor and the files that clients download, in the order of [`Descriptor::blobs`]: the
    /// dictionary, the fences and the hints, if there are any. They are in memory or mapped, and the caller has checked their
    /// hashes.
    /// For a table with evaluation keys, call [`Table::use_keys`] before the first look-up.
    ///
    /// # Errors
    /// The errors of [`Acceptance::check`]. [`ClientError::Protocol`] if the descriptor is inconsistent, or a hint has a
    /// wrong length. [`ClientError::Compression`] if the dictionary, a file of fences or a compressed hint is invalid.
    pub fn new(
        descriptor: Descriptor,
        blobs: impl IntoIterator<Item = Hint>,
        acceptance: &Acceptance,
    ) -> Result<Self, ClientError> {
        descriptor.check()?;
        let params = descriptor.params()?;
        acceptance.check(&descriptor, params.facts())?;
        let mut hints = blobs.into_iter();
        let decompressor = match &descriptor.compression {
            None => None,
            Some(compression) => {
                let dictionary = hints.next().ok_or(ClientError::Compression)?;
                Some(Decompressor::new(compression, (*dictionary).as_ref())?)
            }
        };
        let fences = match &descriptor.sorted {
            None => None,
            Some(sorted) => {
                let texts = sorted.files().map(|file| {
                    let frame = hints.next().ok_or(ClientError::Compression)?;
                    let length = usize::try_from(file.length).map_err(|_| ClientError::Compression)?;
                    hint_of_frame((*frame).as_ref(), length)
                });
                let texts = texts.collect::<Result<Vec<_>, _>>()?;
                let added = texts.get(1).map_or(&[][..], |text| text);
                let fences = Fences::parse(&texts[0], added, descriptor.records);
                Some(Arc::new(fences.ok_or(ClientError::Compression)?))
            }
        };
        let seed = descriptor.public_seed();
        let mut given = Vec::new();
        for (segment, (_, whitening)) in params.segments().iter().zip(descriptor.given()) {
            let expected = segment.facts().hint_bytes;
            let mut hint = if expected > 0 { hints.next() } else { None };
            if segment.facts().is_hint_compressed
                && let Some(frame) = hint.as_deref().map(AsRef::as_ref)
                && (frame.len() as u64) < expected
            {
                let length = usize::try_from(expected).map_err(|_| wrong_hint(expected, frame.len()))?;
                hint = Some(Arc::new(hint_of_frame(frame, length)?));
            }
            let actual = hint.as_ref().map_or(0, |hint| (**hint).as_ref().len());
            if expected != actual as u64 {
                return Err(wrong_hint(expected, actual));
            }
            given.push(Given { seed, hint, whitening: whitening.map(|seed| seed.0), keys: None });
        }
        if let Some(hint) = hints.next() {
            return Err(wrong_hint(0, (*hint).as_ref().len()));
        }
        let block_map = descriptor.lookup.keys().map(KeyLookup::block_map);
        let needs_keys = params.facts().keys.is_some();
        let asked = descriptor.asked();
        let changes = descriptor.changes();
        let halves = Vec::new();
        let is_stored_form = false;
        let mut table = Self {
            descriptor,
            asked,
            params,
            changes,
            block_map,
            decompressor,
            fences,
            is_stored_form,
            given,
            halves,
        };
        if !needs_keys {
            table.halves = table.all_halves()?;
        }
        Ok(table)
    }

    fn all_halves(&self) -> Result<Vec<Arc<dyn ClientHalf>>, ProtocolError> {
        let segments = self.params.segments().iter().zip(&self.given);
        segments.map(|(segment, given)| Ok(segment.client(given)?.into())).collect()
    }

    /// Returns the hash that queries name ([`Descriptor::asked`]).
    pub fn asked(&self) -> &[u8; 32] {
        &self.asked
    }

    /// Chooses the form of values. Callers read the stored form with the [schema](hush_protocol::schema::Schema::read). It
    /// preserves everything: null differs from the empty text, and bytes are not base64.
    pub fn use_stored_form(&mut self, is_stored_form: bool) {
        self.is_stored_form = is_stored_form;
    }

    /// Returns the descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the facts of a look-up in the table.
    pub fn facts(&self) -> &Facts {
        self.params.facts()
    }

    /// Returns the parameter set of the client's evaluation keys, or `None` for a protocol without keys.
    pub fn key_preset(&self) -> Option<&str> {
        self.facts().keys.map(|set| set.name())
    }

    /// Uses the secrets and evaluation keys that follow from `seed`: 32 random bytes from the operating system, which the client
    /// keeps as a secret. The same seed gives the same keys, so they are uploaded once. Does nothing for protocols without keys.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the table lacks another input.
    pub fn use_keys(&mut self, seed: &[u8; 32]) -> Result<(), ClientError> {
        let Some(set) = self.facts().keys else { return Ok(()) };
        let keys = Arc::new(RingKeys::from_seed(&set, seed));
        self.given.iter_mut().for_each(|given| given.keys = Some(keys.clone()));
        self.halves = self.all_halves()?;
        Ok(())
    }

    /// Returns the hash by which queries name the evaluation keys, and the body to upload. Returns `None` for protocols
    /// without keys, and before [`Table::use_keys`].
    pub fn key_upload(&self) -> Option<(KeyId, Vec<u8>)> {
        self.given[0].keys.as_ref().map(|keys| (keys.id(), keys.upload().to_vec()))
    }

    /// Encrypts a look-up under fresh secrets from the operating system. A retry is a new call. One query asks all
    /// segments, whatever the target is.
    ///
    /// An index that the table does not have, or a key that does not fit the table's columns, yields an ordinary query. So the
    /// server, which chose the number of records and the columns, does not learn of it. [`Table::decode`] then returns the error.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the key is too long, or if a key is given for a table by position or the reverse.
    /// [`ClientError::NoKeys`] for a table with evaluation keys before [`Table::use_keys`].
    pub fn query(&self, wanted: &Wanted) -> Result<(wire::Query, PendingLookup), ClientError> {
        let Sought { target, beside, fingerprint, row, refused } = self.sought(wanted)?;
        let base = self.halves.first().ok_or(ClientError::NoKeys)?;
        let (query, pending) = base.query(target, &mut Csprng::from_os());
        Ok((query, PendingLookup { pending, beside, fingerprint, row, refused }))
    }

    /// Makes most of a query, and of the decoding of its answer, before the target is known.
    ///
    /// Source: FrodoPIR (Davidson, Pestana, Celi) section 4; ChalametPIR appendix C.4.
    ///
    /// # Errors
    /// [`ClientError::NothingToPrepare`] for a protocol whose queries depend on the target from the start.
    /// [`ClientError::Protocol`] if the hint is malformed.
    pub fn prepare(&self) -> Result<PreparedQuery, ClientError> {
        self.prepared_bytes()?;
        let base = self.halves.first().ok_or(ClientError::NoKeys)?;
        // The products of the hint are those of the base alone.
        let prepared = base.prepare(self.halves.len() == 1, &mut Csprng::from_os())?;
        Ok(PreparedQuery { asked: self.asked, prepared })
    }

    /// Returns the bytes that a prepared query takes, at least 1.
    ///
    /// # Errors
    /// [`ClientError::NothingToPrepare`] for a protocol whose queries depend on the target from the start.
    pub fn prepared_bytes(&self) -> Result<usize, ClientError> {
        match self.facts().prepared_bytes {
            0 => Err(ClientError::NothingToPrepare { protocol: self.facts().protocol.name() }),
            bytes => Ok(bytes),
        }
    }

    /// Returns whether a prepared query is for this table.
    pub fn is_prepared_by(&self, prepared: &PreparedQuery) -> bool {
        self.asked == prepared.asked
    }

    /// Encrypts a look-up as [`Table::query`] does, with a prepared query.
    ///
    /// # Errors
    /// The errors of [`Table::query`], and [`ProtocolError::OtherTable`] if another table prepared the query.
    pub fn query_prepared(
        &self,
        wanted: &Wanted,
        prepared: PreparedQuery,
    ) -> Result<(wire::Query, PendingLookup), ClientError> {
        if !self.is_prepared_by(&prepared) {
            return Err(ProtocolError::OtherTable.into());
        }
        let Sought { target, beside, fingerprint, row, refused } = self.sought(wanted)?;
        let base = self.halves.first().ok_or(ClientError::NoKeys)?;
        let (query, pending) = base.ask(prepared.prepared, target, &mut Csprng::from_os())?;
        Ok((query, PendingLookup { pending, beside, fingerprint, row, refused }))
    }

    /// Converts a look-up that was encrypted for another epoch of the same geometry, whose query is the same, to one of this epoch.
    /// Fails with [`ClientError::Protocol`] if the key is too long, or if a key is given for a table by position or the reverse.
    pub fn adopt(&self, pending: PendingLookup, wanted: &Wanted) -> Result<PendingLookup, ClientError> {
        let Sought { beside, fingerprint, row, .. } = self.sought(wanted)?;
        Ok(PendingLookup { beside, fingerprint, row, ..pending })
    }

    /// Decodes an answer as [`Table::decoded`] does, and returns the record.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the answer has a wrong length, if the value does not consist of the fields that the
    /// descriptor names, if the table does not have the index, if the key does not fit the columns, if the keys are not
    /// those of the query, or if the query was made with a table of another protocol. [`ClientError::Compression`] if the
    /// value is not compressed as the table states.
    pub fn decode(&self, pending: &PendingLookup, answer: &[u8]) -> Result<Found, ClientError> {
        self.decoded(pending, answer).found
    }

    /// Decodes an answer. Values of several columns become a JSON object, unless the [stored form](Table::use_stored_form) is set.
    pub fn decoded(&self, pending: &PendingLookup, answer: &[u8]) -> Decoded {
        let mut is_sound = true;
        let found = self.value(pending, answer, &mut is_sound);
        let found = found.and_then(|value| self.readable(value, pending.row.as_ref()));
        is_sound &= found.is_ok();
        let found = match &pending.refused {
            Some(refused) => Err(refused.clone().into()),
            None => found,
        };
        Decoded { found, is_sound }
    }

    /// Converts a value to the form that callers get. The value of a sorted table is a leaf, in which the row is found.
    fn readable(
        &self,
        value: Option<Zeroizing<Vec<u8>>>,
        row: Option<&LeafTarget>,
    ) -> Result<Found, ClientError> {
        let mut value = match &self.decompressor {
            Some(decompressor) => decompressor.value_in_even_time(value.as_ref().map(|value| &value[..]))?,
            None => value,
        };
        if let (Some(sorted), Some(row), Some(schema)) =
            (&self.descriptor.sorted, row, &self.descriptor.schema)
        {
            let leaf = value.as_ref().map_or(&[][..], |leaf| leaf);
            value = sorted.find(schema, leaf, &row.sought, row.is_last)?;
            if row.sought.is_shown() {
                return Ok(value.map(|rows| rows.to_vec()));
            }
        }
        let (Some(value), Some(schema)) = (&value, &self.descriptor.schema) else {
            return Ok(value.map(|value| value.to_vec()));
        };
        if self.is_stored_form {
            schema.read(value)?;
            return Ok(Some(value.to_vec()));
        }
        Ok(Some(schema.readable(value)?))
    }

    /// Returns the value in the slots of all segments. All slots are decrypted, whatever length the base has. A change takes
    /// precedence over the base and its tiers. `is_sound` becomes false if an honest server cannot have a slot with this content.
    fn value(
        &self,
        pending: &PendingLookup,
        answer: &[u8],
        is_sound: &mut bool,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, ClientError> {
        let facts = self.facts();
        let base = self.halves.first().ok_or(ClientError::NoKeys)?;
        if answer.len() != facts.answer_bytes {
            let expected = facts.answer_bytes;
            let actual = answer.len();
            return Err(ProtocolError::Length { what: "answer", expected, actual }.into());
        }
        let segments = self.params.segments();
        let (own, mut rest) = answer.split_at(segments[0].facts().answer_bytes);
        let mut slots = vec![base.recover(&pending.pending, own)?];
        for ((half, segment), target) in self.halves.iter().zip(segments).skip(1).zip(&pending.beside) {
            let (own, behind) = rest.split_at(segment.facts().answer_bytes);
            slots.push(half.recover_at(&pending.pending, target, own)?);
            rest = behind;
        }
        let (own, changes) = slots.split_at(1 + self.descriptor.tiers());
        let format = &self.descriptor.slot;
        let fingerprint = &pending.fingerprint;
        let own_fingerprint = &fingerprint[..usize::from(format.fingerprint_bytes)];
        *is_sound &= !format.is_damaged(own_fingerprint, &own[0]);
        let found = format.decode_head(own_fingerprint, &own[0]);
        let found = found.map(|(length, head)| joined(length, head, &own[1..]));
        let Some((format, [first, behind @ ..])) = self.changes.zip(Some(changes)) else { return Ok(found) };
        let fingerprint = &fingerprint[..CHANGE_FINGERPRINT_BYTES];
        *is_sound &= !format.is_damaged(fingerprint, first);
        Ok(match format.decode(fingerprint, first) {
            None => found,
            Some(Change::Deleted) => None,
            Some(Change::Value { length, head }) => Some(joined(length, head, behind)),
        })
    }

    /// Returns the leaf of the row that is sought. A text that is no key of the table is sought in the first leaf, and refused.
    fn leaf_target(&self, by: RowMatch, key: &[u8]) -> Option<(LeafTarget, Option<ProtocolError>)> {
        let (sorted, fences) = (self.descriptor.sorted.as_ref()?, self.fences.as_ref()?);
        let schema = self.descriptor.schema.as_ref()?;
        let (sought, refused) = match sorted.sought(schema, by, key) {
            Ok(sought) => (sought, None),
            Err(error) => (SoughtRow::default(), Some(error)),
        };
        let leaf = fences.leaf_of(sought.key());
        let position = fences.sought_position(leaf);
        Some((LeafTarget { sought, position, is_last: leaf + 1 == fences.len() }, refused))
    }

    fn sought(&self, wanted: &Wanted) -> Result<Sought, ProtocolError> {
        wanted.check(&self.descriptor)?;
        let records = self.descriptor.records;
        let (row, mut refused) = match wanted.row().and_then(|(by, key)| self.leaf_target(by, &key)) {
            Some((row, refused)) => (Some(row), refused),
            None => (None, None),
        };
        let mut key = Zeroizing::default();
        let mut index = row.as_ref().map(|row| row.position);
        match wanted {
            _ if row.is_some() => {}
            &Wanted::Index(wanted) => {
                if wanted >= records {
                    refused = Some(ProtocolError::IndexOutOfRange { index: wanted, last: records - 1 });
                }
                index = Some(if refused.is_some() { 0 } else { wanted });
            }
            wanted => match wanted.key(self.descriptor.schema.as_ref()) {
                Some(Ok(own)) => key = own,
                Some(Err(error)) => refused = Some(error),
                None => {}
            },
        }
        if let Some(index) = index {
            if self.block_map.is_none() {
                let (block, column) = layout::index_position(&self.facts().shape, index);
                let target = Target { columns: vec![(column as u32, 1)], block };
                let fingerprint = Zeroizing::default();
                return Ok(Sought { target, beside: Vec::new(), fingerprint, row, refused });
            }
            key = Zeroizing::new(position_key(index).to_vec());
        }
        let (Some(lookup), Some(block_map)) = (self.descriptor.lookup.keys(), &self.block_map) else {
            return Err(ProtocolError::WrongLookup { actual: "index", asked: "key" });
        };
        let digest = KeyDigest::new(&lookup.seed, &key)?;
        let (block, block_seed) = block_map.sought(&digest);
        let filter = FilterParams { kind: lookup.filter, slots: self.facts().shape.columns };
        let columns = filter.support(&digest, block_seed);
        let of_changes = if self.changes.is_some() { CHANGE_FINGERPRINT_BYTES } else { 0 };
        let bytes = of_changes.max(usize::from(self.descriptor.slot.fingerprint_bytes));
        let fingerprint = Zeroizing::new(digest.fingerprint(bytes).to_vec());
        let (entry, _) = divide(block as u64, self.facts().lanes as u64);
        let beside = self.descriptor.segments.iter().map(|segment| {
            let lanes = segment.shape().lanes();
            let (_, entry) = divide(entry as u64, segment.entries as u64);
            let block = segment.lanes.sought_block(&digest, entry, lanes);
            Target { columns: columns.clone(), block }
        });
        let beside = beside.collect();
        Ok(Sought { target: Target { columns, block }, beside, fingerprint, row, refused })
    }
}

/// Returns a value of `length` bytes. It begins with `head` and continues in the slots of `tiers`.
fn joined(length: usize, head: &[u8], tiers: &[Zeroizing<Vec<u8>>]) -> Zeroizing<Vec<u8>> {
    let tiers = tiers.iter().map(|slot| &slot[..]);
    let mut value = Zeroizing::new(std::iter::once(head).chain(tiers).collect::<Vec<_>>().concat());
    value.truncate(length);
    value
}

fn wrong_hint(expected: u64, actual: usize) -> ClientError {
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    ProtocolError::Length { what: "hint", expected, actual }.into()
}
