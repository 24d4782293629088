//! A table as a client sees it: makes queries, reads answers.

use std::sync::Arc;

use hush_math::csprng::Csprng;
use hush_protocol::{
    ProtocolError, Target,
    any_page::TableParams,
    client::{ClientHalf, Given, Hint, Pending},
    descriptor::{Descriptor, Lookup},
    facts::Facts,
    keyword::{BlockMap, FilterParams, KeyDigest},
    layout,
    ring_keys::RingKeys,
    wire,
};
use zeroize::Zeroizing;

use crate::{Acceptance, ClientError, Found, Wanted};

/// Names evaluation keys: the BLAKE3 hash of what is uploaded.
pub type KeyId = [u8; wire::KEY_ID_BYTES];

/// A table's descriptor, with its hint or with the client's keys, ready for look-ups.
pub struct Table {
    descriptor: Descriptor,
    params: TableParams,
    /// Block map of a table by key.
    block_map: Option<BlockMap>,
    /// What the client has, as far as it is here.
    given: Given,
    /// The client's half; `None` as long as the client's keys are missing.
    half: Option<Box<dyn ClientHalf>>,
}

/// What is kept between a query and its answer: the secrets, which decrypt and are wiped when dropped.
pub struct PendingLookup {
    pending: Pending,
    /// Fingerprint that the slot must have; empty in a table by index.
    fingerprint: Zeroizing<Vec<u8>>,
    /// The index asked for, if the table does not have it.
    out_of_range: Option<u64>,
}

/// Where a record is, and what its slot must hold.
struct Sought {
    target: Target,
    fingerprint: Zeroizing<Vec<u8>>,
    out_of_range: Option<u64>,
}

impl Table {
    /// A table from its descriptor and the hint that clients download, if there is one: memory, or a map of the cached file whose
    /// BLAKE3 was checked against [`Descriptor::hint`] by the caller. For a table with evaluation keys [`Table::use_keys`] is to be
    /// called before the first look-up.
    ///
    /// # Errors
    /// Those of [`Acceptance::check`]; [`ClientError::Protocol`] if the descriptor contradicts itself or the hint's length is
    /// wrong.
    pub fn new(
        descriptor: Descriptor,
        hint: Option<Hint>,
        acceptance: &Acceptance,
    ) -> Result<Self, ClientError> {
        descriptor.check()?;
        let params = descriptor.params()?;
        acceptance.check(&descriptor, params.facts())?;
        let actual = hint.as_ref().map_or(0, |hint| (**hint).as_ref().len());
        if params.facts().hint_bytes != actual as u64 {
            let expected = usize::try_from(params.facts().hint_bytes).unwrap_or(usize::MAX);
            return Err(ProtocolError::Length { what: "hint", expected, actual }.into());
        }
        let block_map = match &descriptor.lookup {
            Lookup::Index => None,
            Lookup::Key(key) => Some(key.block_map()),
        };
        let given = Given { hint, whitening: descriptor.whitening.map(|seed| seed.0), keys: None };
        let needs_keys = params.facts().keys.is_some();
        let half = if needs_keys { None } else { Some(params.client(&given)?) };
        Ok(Self { descriptor, params, block_map, given, half })
    }

    /// The descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What the table is.
    pub fn facts(&self) -> &Facts {
        self.params.facts()
    }

    /// The parameter set that the client's evaluation keys must be of; `None` for protocols without.
    pub fn key_preset(&self) -> Option<&str> {
        self.facts().keys.map(|set| set.name())
    }

    /// Uses the secrets and evaluation keys that follow from `seed`, 32 bytes of the operating system's randomness that
    /// the client keeps like a key. The same seed gives the same keys, so that they are uploaded once. Nothing happens
    /// for protocols without keys.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the table has something else that is missing.
    pub fn use_keys(&mut self, seed: &[u8; 32]) -> Result<(), ClientError> {
        let Some(set) = self.facts().keys else { return Ok(()) };
        self.given.keys = Some(Arc::new(RingKeys::from_seed(&set, seed)));
        self.half = Some(self.params.client(&self.given)?);
        Ok(())
    }

    /// The hash that queries name the evaluation keys by, and the body to upload; `None` for protocols without, and
    /// before [`Table::use_keys`].
    pub fn key_upload(&self) -> Option<(KeyId, Vec<u8>)> {
        self.given.keys.as_ref().map(|keys| (keys.id(), keys.upload().to_vec()))
    }

    /// Encrypts a look-up under fresh secrets from the operating system. A retry is a new call.
    ///
    /// An index that the table does not have makes an ordinary query for another record, so that the server, which
    /// chose the number of records, does not learn of it; [`Table::decode`] then says that it is out of range.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the table is looked up the other way or the key is too long;
    /// [`ClientError::NoKeys`] for a table with evaluation keys before [`Table::use_keys`].
    pub fn query(&self, wanted: &Wanted) -> Result<(wire::Query, PendingLookup), ClientError> {
        let Sought { target, fingerprint, out_of_range } = self.sought(wanted)?;
        let half = self.half.as_ref().ok_or(ClientError::NoKeys)?;
        let (query, pending) = half.query(target, &mut Csprng::from_os());
        Ok((query, PendingLookup { pending, fingerprint, out_of_range }))
    }

    /// Reads an answer. Values of several columns are a JSON object of them.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if its length is wrong, what is found is not the fields that the descriptor names, the index
    /// that was asked for is not in the table, the keys are not those of the query, or the query was made with a table of
    /// another protocol.
    pub fn decode(&self, pending: &PendingLookup, answer: &[u8]) -> Result<Found, ClientError> {
        let half = self.half.as_ref().ok_or(ClientError::NoKeys)?;
        let slot = half.recover(&pending.pending, answer)?;
        let found = self.descriptor.slot.decode(&pending.fingerprint, &slot);
        let values = found.map(|value| match &self.descriptor.fields {
            Some(fields) => fields.to_json(value),
            None => Ok(value.to_vec()),
        });
        match pending.out_of_range {
            Some(index) => {
                Err(ProtocolError::IndexOutOfRange { index, last: self.descriptor.records - 1 }.into())
            }
            None => Ok(values.transpose()?),
        }
    }

    fn sought(&self, wanted: &Wanted) -> Result<Sought, ProtocolError> {
        wanted.check(&self.descriptor.lookup)?;
        match (wanted, &self.descriptor.lookup, &self.block_map) {
            (&Wanted::Index(index), _, _) => {
                let out_of_range = (index >= self.descriptor.records).then_some(index);
                let present = if out_of_range.is_some() { 0 } else { index };
                let (block, column) = layout::index_position(&self.facts().shape, present);
                let target = Target { columns: vec![(column as u32, 1)], block };
                Ok(Sought { target, fingerprint: Zeroizing::default(), out_of_range })
            }
            (Wanted::Key(key), Lookup::Key(lookup), Some(block_map)) => {
                let digest = KeyDigest::new(&lookup.seed, key)?;
                let block = block_map.block_of(&digest);
                let filter = FilterParams { kind: lookup.filter, slots: self.facts().shape.columns };
                let columns = filter.support(&digest, block_map.seeds[block]);
                let fingerprint = digest.fingerprint(usize::from(self.descriptor.slot.fingerprint_bytes));
                let fingerprint = Zeroizing::new(fingerprint.to_vec());
                Ok(Sought { target: Target { columns, block }, fingerprint, out_of_range: None })
            }
            (Wanted::Key(_), _, _) => Err(ProtocolError::WrongLookup { actual: "index", asked: "key" }),
        }
    }
}
