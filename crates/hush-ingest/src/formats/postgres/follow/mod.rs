//! The changes of a PostgreSQL table, from a replication slot.
//!
//! Changes are looked at, and the slot goes on once they are kept elsewhere, so that none is lost. The functions of a slot run in
//! an ordinary session, whose settings give values the same form as a build reads them in.

mod messages;
mod published;

use std::{collections::BTreeMap, path::PathBuf};

use hush_protocol::{schema::Schema, wording::Wording};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Error, types::Type};

use self::{
    messages::{Message, Relation, RowField, RowFields},
    published::{Asked, PUBLISHED, PublishedTable, failed},
};
use super::{
    DatabaseSession,
    record::{RowConverter, types_of},
    row::CellKind,
    settings,
};
use crate::{
    IngestError, IngestOptions, Input, Record, RowBatch,
    record::projection::Projection,
    remote::{RemoteUrl, Scheme},
    scheme,
};

/// The slot and the publication that are read.
#[derive(Clone, Debug)]
pub struct ReplicationSlot {
    /// The name of the slot, of the plug-in `pgoutput`.
    pub slot: String,
    /// The name of the publication.
    pub publication: String,
}

/// The changes of some transactions, in order: of each key the last one.
pub struct DatabaseBatch {
    /// The position behind the last transaction.
    pub position: u64,
    /// The keys, as the database has them, in the order of their last changes, with the records that have a new value.
    pub changes: Vec<(Vec<u8>, Option<Record>)>,
    /// The columns of the records; empty if there are none.
    pub columns: Schema,
}

impl DatabaseBatch {
    /// Returns the records with new values, and the keys of those that are deleted, as inputs of an update.
    pub fn inputs(self, name: &str) -> [Option<Input>; 2] {
        let Self { changes, columns, .. } = self;
        let (mut puts, mut deletes) = (Vec::new(), Vec::new());
        for (key, record) in changes {
            match record {
                Some(record) => puts.push(record),
                None => deletes.push(Record { key: Some(key), value: Vec::new() }),
            }
        }
        let of_keys = Schema { value: Vec::new(), ..columns.clone() };
        [(puts, columns), (deletes, of_keys)].map(|(records, columns)| {
            (!records.is_empty()).then(|| Input::Rows(RowBatch::new(name, records, columns)))
        })
    }
}

/// A connection that reads a slot.
pub struct DatabaseChanges {
    path: PathBuf,
    runtime: Runtime,
    session: DatabaseSession,
    slot: ReplicationSlot,
    options: IngestOptions,
    table: PublishedTable,
    /// The conversion of rows, once their columns have come.
    converter: Option<RowConverter>,
}

impl DatabaseChanges {
    /// Connects to the database at `url`. `options` name the key columns, the value columns, and the table, unless the publication
    /// has only one.
    ///
    /// # Errors
    /// [`IngestError::Postgres`] if the database cannot be reached, or there is no such slot or publication.
    pub fn open(url: &Input, slot: ReplicationSlot, options: &IngestOptions) -> Result<Self, IngestError> {
        let Input::Url(url) = url else {
            return Err(IngestError::UnknownFormat { path: url.path().into() });
        };
        if scheme(url)? != Scheme::Postgres {
            return Err(IngestError::NotFetched { path: url.shown().into() });
        }
        Self::connect(url, slot, options)
    }

    fn connect(url: &RemoteUrl, slot: ReplicationSlot, options: &IngestOptions) -> Result<Self, IngestError> {
        let path = url.shown().to_owned();
        let settings = settings(url)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| IngestError::Unreadable { path: path.clone(), source })?;
        let session = runtime.block_on(DatabaseSession::open(&settings, &path))?;
        let asked = Asked { path: &path, slot: &slot, options };
        let table = runtime.block_on(asked.find(&session.client))?;
        Ok(Self { path, runtime, session, slot, options: options.clone(), table, converter: None })
    }

    /// Returns the number of the table within the database, which another table of the same name does not have.
    pub fn relation(&self) -> u32 {
        self.table.id
    }

    /// Returns what the publication leaves out, for a note.
    pub fn left_out(&self) -> Option<&str> {
        self.table.left_out.as_deref()
    }

    /// Returns whether the connection is lost, so that another one may do.
    pub fn is_lost(&self) -> bool {
        self.session.client.is_closed()
    }

    fn refusal(&self, message: String, advice: &'static str) -> IngestError {
        IngestError::Postgres { path: self.path.clone(), message, advice: Wording(advice) }
    }

    fn failed(&self, error: &Error) -> IngestError {
        failed(&self.path, error)
    }

    /// Returns the position up to which the slot has forgotten changes, and the one behind all that is written by now.
    ///
    /// # Errors
    /// [`IngestError::Postgres`], also if the table is no longer published.
    pub fn positions(&self) -> Result<[u64; 2], IngestError> {
        let client = &self.session.client;
        let read = async {
            // The position is read first: what is written later is left for the next look.
            let now = client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await?.try_get(0)?;
            let slots = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1";
            let done = client.query_opt(slots, &[&self.slot.slot]).await?;
            let done = done.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
            let published = client.query_opt(PUBLISHED, &[&self.slot.publication, &self.table.id]).await?;
            Ok::<([String; 2], bool), _>(([done, now], published.is_some()))
        };
        let (positions, is_published) = self.runtime.block_on(read).map_err(|error| self.failed(&error))?;
        if !is_published {
            return Err(self.refusal(
                format!("the table {} is gone, or has left the publication", self.table.name),
                "build it again, with a new slot",
            ));
        }
        let [done, now] = positions.map(|position| parse_position(&position));
        let unknown = || {
            self.refusal(
                format!("the slot '{}' is gone", self.slot.slot),
                "make a new one, and build the table again",
            )
        };
        Ok([done.ok_or_else(unknown)?, now.ok_or_else(unknown)?])
    }

    /// Looks at the changes of whole transactions behind `after`, until there are at least `most`. Returns `None` if there is no
    /// transaction.
    ///
    /// # Errors
    /// [`IngestError::Postgres`], also if a change cannot be followed: its message says why.
    pub fn look(&mut self, after: u64, most: usize) -> Result<Option<DatabaseBatch>, IngestError> {
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        let peek = "SELECT data FROM pg_logical_slot_peek_binary_changes($1, NULL, $2, 'proto_version', '1', \
            'publication_names', $3)";
        let publication = format!("\"{}\"", self.slot.publication.replace('"', "\"\""));
        let rows =
            self.runtime.block_on(self.session.client.query(peek, &[&self.slot.slot, &most, &publication]));
        let rows = rows.map_err(|error| self.failed(&error))?;
        let mut changes = TransactionChanges::default();
        let mut position = None;
        for row in &rows {
            let data: &[u8] = row.try_get(0).map_err(|error| self.failed(&error))?;
            let message = messages::read(data).ok_or_else(|| {
                self.refusal("a message of the slot is malformed".into(), "run the command again")
            })?;
            if let Message::Commit { end } = message {
                position = Some(end);
                match end <= after {
                    true => changes.forget(),
                    false => changes.keep(),
                }
            } else {
                self.take(message, &mut changes)?;
            }
        }
        let columns = self.converter.as_ref().map(RowConverter::schema).unwrap_or_default();
        Ok(position.map(|position| DatabaseBatch { position, changes: changes.all(), columns }))
    }

    fn take(&mut self, message: Message<'_>, changes: &mut TransactionChanges) -> Result<(), IngestError> {
        match message {
            Message::Relation(relation) if self.is_followed(relation.id) => self.relate(&relation),
            Message::Insert { relation, new } => self.put(relation, None, new, changes),
            Message::Update { relation, old, new } => self.put(relation, old, new, changes),
            Message::Delete { relation, old } => {
                if self.is_followed(relation) {
                    changes.put(self.key(&old)?, None);
                }
                Ok(())
            }
            Message::Truncate { relations }
                if relations.iter().any(|&relation| self.is_followed(relation)) =>
            {
                Err(self.refusal("the table was truncated".into(), "build it again"))
            }
            Message::Relation(_) | Message::Truncate { .. } | Message::Commit { .. } | Message::Other => {
                Ok(())
            }
        }
    }

    fn is_followed(&self, relation: u32) -> bool {
        self.table.id == relation
    }

    /// Takes the columns of the table.
    fn relate(&mut self, relation: &Relation) -> Result<(), IngestError> {
        let types: Vec<Type> = relation
            .columns
            .iter()
            .map(|column| Type::from_oid(column.type_id).unwrap_or(Type::TEXT))
            .collect();
        let names: Vec<String> = relation.columns.iter().map(|column| column.name.clone()).collect();
        let own = types_of(types.iter().zip(relation.columns.iter().map(|column| column.modifier)));
        let wanted = self.options.key.iter().chain(&self.options.value);
        if let Some(missing) = wanted.into_iter().find(|name| !names.contains(name)) {
            return Err(self.table.lacks(&self.path, missing));
        }
        let projection =
            Projection::new(&self.path, &names, &self.options)?.typed(|index| own[index].clone());
        let mut columns: Vec<Option<(usize, CellKind)>> = vec![None; names.len()];
        for column in projection.columns() {
            let kind = CellKind::of(&types[column.index]);
            if kind == CellKind::Nested {
                return Err(self.refusal(
                    format!("the column {:?} is an array or a row, which is not followed", column.name),
                    "leave it out of the table with {value}",
                ));
            }
            columns[column.index] = Some((column.index, kind));
        }
        self.converter = Some(RowConverter::new(self.path.clone(), projection, columns, own));
        Ok(())
    }

    fn put(
        &mut self,
        relation: u32,
        old: Option<RowFields<'_>>,
        new: RowFields<'_>,
        changes: &mut TransactionChanges,
    ) -> Result<(), IngestError> {
        if !self.is_followed(relation) {
            return Ok(());
        }
        let old_key = old.as_ref().map(|old| self.key(old)).transpose()?;
        let mut fields = Vec::with_capacity(new.len());
        for (at, field) in new.iter().enumerate() {
            fields.push(match (field, old.as_ref().and_then(|old| old.get(at))) {
                (RowField::Text(text), _) => Some(*text),
                (RowField::Null, _) => None,
                (RowField::Unchanged, Some(RowField::Text(text))) => Some(*text),
                (RowField::Unchanged, _) if !self.is_used(at) => None,
                (RowField::Unchanged, _) => {
                    let table = &self.table.name;
                    return Err(self.refusal(
                        format!("a long value did not change, and is not sent; ALTER TABLE {table} REPLICA IDENTITY FULL has such values sent from then on"),
                        "build the table again after it",
                    ));
                }
            });
        }
        let record = self.record(fields)?;
        let key = record.key.clone().unwrap_or_default();
        if let Some(old_key) = old_key.filter(|old| *old != key) {
            changes.put(old_key, None);
        }
        changes.put(key, Some(record));
        Ok(())
    }

    fn is_used(&self, at: usize) -> bool {
        self.converter
            .as_ref()
            .is_some_and(|converter| converter.projection.columns().any(|column| column.index == at))
    }

    fn record(&mut self, fields: Vec<Option<&[u8]>>) -> Result<Record, IngestError> {
        let Some(converter) = &mut self.converter else {
            return Err(self.refusal("a row came before its columns".into(), "run the command again"));
        };
        converter.number += 1;
        converter.row.take(fields);
        converter.record()
    }

    /// Returns the key of an old row, which has the columns of the replica identity.
    fn key(&mut self, old: &RowFields<'_>) -> Result<Vec<u8>, IngestError> {
        let fields = old.iter().map(|field| match field {
            RowField::Text(text) => Some(*text),
            RowField::Null | RowField::Unchanged => None,
        });
        Ok(self.record(fields.collect())?.key.unwrap_or_default())
    }

    /// Has the slot forget changes up to a position, which are kept elsewhere.
    ///
    /// # Errors
    /// [`IngestError::Postgres`].
    pub fn forget(&self, position: u64) -> Result<(), IngestError> {
        let advance = "SELECT pg_replication_slot_advance($1, $2::text::pg_lsn)";
        let position = show_position(position);
        let done = self.runtime.block_on(self.session.client.execute(advance, &[&self.slot.slot, &position]));
        done.map(drop).map_err(|error| self.failed(&error))
    }
}

/// The changes of transactions, and those of the transaction that is read.
#[derive(Default)]
struct TransactionChanges {
    kept: BTreeMap<Vec<u8>, (usize, Option<Record>)>,
    open: Vec<(Vec<u8>, Option<Record>)>,
    count: usize,
}

impl TransactionChanges {
    fn put(&mut self, key: Vec<u8>, record: Option<Record>) {
        self.open.push((key, record));
    }

    fn forget(&mut self) {
        self.open.clear();
    }

    fn keep(&mut self) {
        for (key, record) in self.open.drain(..) {
            self.count += 1;
            self.kept.insert(key, (self.count, record));
        }
    }

    /// Returns the last change of each key, in order.
    fn all(self) -> Vec<(Vec<u8>, Option<Record>)> {
        let mut all: Vec<_> =
            self.kept.into_iter().map(|(key, (number, record))| (number, key, record)).collect();
        all.sort_unstable_by_key(|(number, ..)| *number);
        all.into_iter().map(|(_, key, record)| (key, record)).collect()
    }
}

/// Returns a position as PostgreSQL writes it, such as `0/16B3748`.
pub fn show_position(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position as u32)
}

pub(super) fn parse_position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |text: &str| u32::from_str_radix(text, 16).ok().map(u64::from);
    Some(part(high)? << 32 | part(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_and_read() {
        for (position, text) in [(0, "0/0"), (0x0001_0000_ABCD, "1/ABCD"), (u64::MAX, "FFFFFFFF/FFFFFFFF")] {
            assert_eq!((show_position(position), parse_position(text)), (text.into(), Some(position)));
        }
        assert_eq!(parse_position("1"), None);
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        let record = |text: &str| Some(Record { key: None, value: text.into() });
        let mut changes = TransactionChanges::default();
        changes.put(b"a".to_vec(), record("1"));
        changes.put(b"b".to_vec(), record("2"));
        changes.keep();
        changes.put(b"c".to_vec(), record("of a transaction that is known"));
        changes.forget();
        changes.put(b"a".to_vec(), None);
        changes.keep();
        changes.put(b"d".to_vec(), record("of a transaction that has not ended"));
        assert_eq!(changes.all(), [(b"b".to_vec(), record("2")), (b"a".to_vec(), None)]);
    }
}
