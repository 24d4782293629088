//! A table as a client sees it: makes queries, reads answers.

use std::sync::Arc;

use hush_math::csprng::Csprng;
use hush_protocol::{
    ProtocolError, Target,
    column_packing::{self, ColumnScheme},
    column_table::ColumnTable,
    descriptor::{Descriptor, Lookup},
    double,
    keyword::{BlockMap, FilterParams, KeyDigest},
    layout,
    lwe_table::LweTable,
    onion,
    pack_table::PackTable,
    packing,
    ring_keys::RingKeys,
    ring_table::RingTable,
    simple,
    table::{Protocol, TableParams},
    whitening::Whitening,
    wire,
};
use zeroize::Zeroizing;

use crate::{ClientError, Found, Wanted};

/// Names evaluation keys: the BLAKE3 hash of what is uploaded.
pub type KeyId = [u8; wire::KEY_ID_BYTES];

/// A table's descriptor, with its hint or with the client's keys, ready for look-ups.
pub struct Table {
    descriptor: Descriptor,
    params: TableParams,
    /// Block map of a table by key.
    block_map: Option<BlockMap>,
    scheme: SchemeState,
}

/// What the client holds for a table's scheme.
enum SchemeState {
    Lwe { table: LweTable, hint: Hint },
    Ring { table: RingTable, whitening: Whitening, keys: Option<Box<RingKeys>> },
    Pack { table: PackTable, keys: Option<Box<RingKeys>> },
    Column { table: ColumnTable, scheme: Box<ColumnScheme> },
}

/// A hint in memory or in a mapped file.
type Hint = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What is kept between a query and its answer: the secrets, which decrypt and are wiped when dropped.
pub struct PendingLookup {
    state: State,
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

enum State {
    Simple(simple::Pending),
    Double(double::Pending),
    Onion(onion::Pending),
    Pack(packing::Pending),
    Column(column_packing::Pending),
}

impl Table {
    /// A table over LWE from its descriptor and its hint: memory, or a map of the cached file whose BLAKE3 was checked
    /// against [`Descriptor::hint`] by the caller. For a table with evaluation keys the hint is `None`, and
    /// [`Table::use_keys`] is to be called before the first look-up.
    ///
    /// # Errors
    /// [`ClientError::Weak`] for a parameter set below 128 bits unless `allow_weak`; [`ClientError::Protocol`] if
    /// the descriptor contradicts itself or the hint's length is wrong.
    pub fn new(descriptor: Descriptor, hint: Option<Hint>, allow_weak: bool) -> Result<Self, ClientError> {
        descriptor.check()?;
        let params = descriptor.params()?;
        check_security(&params, allow_weak)?;
        let (expected, actual) =
            (params.hint_bytes(), hint.as_ref().map_or(0, |hint| (**hint).as_ref().len()));
        if expected != actual {
            return Err(ProtocolError::Length { what: "hint", expected, actual }.into());
        }
        let block_map = match &descriptor.lookup {
            Lookup::Index => None,
            Lookup::Key(key) => Some(key.block_map()),
        };
        let scheme = match params {
            TableParams::Lwe(table) => {
                SchemeState::Lwe { table, hint: hint.unwrap_or_else(|| Arc::new(Vec::new())) }
            }
            TableParams::Ring(table) => {
                let seed = descriptor.whitening.map_or([0; 32], |seed| seed.0);
                SchemeState::Ring { table, whitening: Whitening::new(table.ring(), seed), keys: None }
            }
            TableParams::Pack(table) => SchemeState::Pack { table, keys: None },
            TableParams::Column(table) => {
                SchemeState::Column { table, scheme: Box::new(ColumnScheme::new(table.params())) }
            }
        };
        Ok(Self { descriptor, params, block_map, scheme })
    }

    /// The descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The parameters.
    pub fn params(&self) -> &TableParams {
        &self.params
    }

    /// The parameter set that the client's evaluation keys must be of; `None` for protocols without.
    pub fn key_preset(&self) -> Option<&str> {
        match &self.scheme {
            SchemeState::Lwe { .. } | SchemeState::Column { .. } => None,
            SchemeState::Ring { table, .. } => Some(table.ring().name()),
            SchemeState::Pack { table, .. } => Some(table.params().name()),
        }
    }

    /// Uses the secrets and evaluation keys that follow from `seed`, 32 bytes of the operating system's randomness that
    /// the client keeps like a key. The same seed gives the same keys, so that they are uploaded once. Nothing happens
    /// for protocols without keys.
    pub fn use_keys(&mut self, seed: &[u8; 32]) {
        let (ring, keys) = match &mut self.scheme {
            SchemeState::Lwe { .. } | SchemeState::Column { .. } => return,
            SchemeState::Ring { table, keys, .. } => (*table.ring(), keys),
            SchemeState::Pack { table, keys } => (*table.params().ring(), keys),
        };
        *keys = Some(Box::new(RingKeys::from_seed(&ring, seed)));
    }

    /// The hash that queries name the evaluation keys by, and the body to upload; `None` for protocols without, and
    /// before [`Table::use_keys`].
    pub fn key_upload(&self) -> Option<(KeyId, Vec<u8>)> {
        match &self.scheme {
            SchemeState::Lwe { .. } | SchemeState::Column { .. } => None,
            SchemeState::Ring { keys, .. } | SchemeState::Pack { keys, .. } => {
                keys.as_ref().map(|keys| (keys.id(), keys.upload().to_vec()))
            }
        }
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
        let mut rng = Csprng::from_os();
        let (query, state) = match &self.scheme {
            SchemeState::Lwe { table, .. } if table.protocol() == Protocol::Double => {
                let (query, pending) = double::query(table, &target, &mut rng);
                (query, State::Double(pending))
            }
            SchemeState::Lwe { table, .. } => {
                let (query, pending) = simple::query(table, &target, &mut rng);
                (query, State::Simple(pending))
            }
            SchemeState::Ring { table, keys, .. } => {
                let keys = keys.as_ref().ok_or(ClientError::NoKeys)?;
                let (packed, pending) = onion::query(table, keys, target, &mut rng);
                let key_id = keys.id().to_vec().into();
                (wire::Query { packed: packed.into(), key_id, ..Default::default() }, State::Onion(pending))
            }
            SchemeState::Pack { table, keys } => {
                let keys = keys.as_ref().ok_or(ClientError::NoKeys)?;
                let (query, pending) = packing::query(table, keys, target, &mut rng);
                (query, State::Pack(pending))
            }
            SchemeState::Column { table, scheme } => {
                let (query, pending) = column_packing::query(table, scheme, target, &mut rng);
                (query, State::Column(pending))
            }
        };
        Ok((query, PendingLookup { state, fingerprint, out_of_range }))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if its length is wrong, the index that was asked for is not in the table, or the keys
    /// are not those of the query; [`ClientError::OtherTable`] if the query was made with a table of another protocol.
    pub fn decode(&self, pending: &PendingLookup, answer: &[u8]) -> Result<Found, ClientError> {
        let slot = match (&pending.state, &self.scheme) {
            (State::Simple(state), SchemeState::Lwe { table, hint }) => {
                Zeroizing::new(simple::recover(table, (**hint).as_ref(), state, answer)?)
            }
            (State::Double(state), SchemeState::Lwe { table, hint }) => {
                Zeroizing::new(double::recover(table, (**hint).as_ref(), state, answer)?)
            }
            (State::Onion(state), SchemeState::Ring { table, whitening, keys: Some(keys) }) => {
                onion::recover(table, keys, whitening, state, answer)?
            }
            (State::Pack(state), SchemeState::Pack { table, keys: Some(keys) }) => {
                packing::recover(table, keys, state, answer)?
            }
            (State::Column(state), SchemeState::Column { table, scheme }) => {
                column_packing::recover(table, scheme, state, answer)?
            }
            _ => return Err(ClientError::OtherTable),
        };
        let found = self.descriptor.slot.decode(&pending.fingerprint, &slot).map(<[u8]>::to_vec);
        match pending.out_of_range {
            Some(index) => {
                Err(ProtocolError::IndexOutOfRange { index, last: self.descriptor.records - 1 }.into())
            }
            None => Ok(found),
        }
    }

    fn sought(&self, wanted: &Wanted) -> Result<Sought, ProtocolError> {
        match (wanted, &self.descriptor.lookup, &self.block_map) {
            (&Wanted::Index(index), Lookup::Index, _) => {
                let out_of_range = (index >= self.descriptor.records).then_some(index);
                let present = if out_of_range.is_some() { 0 } else { index as usize };
                let (block, column) = layout::index_position(&self.params.shape(), present);
                let target = Target { columns: vec![(column as u32, 1)], block };
                Ok(Sought { target, fingerprint: Zeroizing::default(), out_of_range })
            }
            (Wanted::Key(key), Lookup::Key(lookup), Some(block_map)) => {
                let digest = KeyDigest::new(&lookup.seed, key)?;
                let block = block_map.block_of(&digest);
                let filter = FilterParams { kind: lookup.filter, slots: self.params.shape().columns };
                let columns = filter.support(&digest, block_map.seeds[block]);
                let fingerprint = digest.fingerprint(usize::from(self.descriptor.slot.fingerprint_bytes));
                let fingerprint = Zeroizing::new(fingerprint.to_vec());
                Ok(Sought { target: Target { columns, block }, fingerprint, out_of_range: None })
            }
            (Wanted::Key(_), _, _) => Err(ProtocolError::WrongLookup { actual: "index", asked: "key" }),
            (Wanted::Index(_), _, _) => Err(ProtocolError::WrongLookup { actual: "key", asked: "index" }),
        }
    }
}

/// Refuses a parameter set below 128 bits unless `allow_weak`.
pub(crate) fn check_security(params: &TableParams, allow_weak: bool) -> Result<(), ClientError> {
    if params.is_secure() || allow_weak {
        return Ok(());
    }
    Err(ClientError::Weak { preset: params.preset(), bits: params.security_bits() })
}
