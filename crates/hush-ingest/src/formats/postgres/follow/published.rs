//! The table of a publication that is followed: found once, and checked before anything is read.

use std::path::Path;

use hush_protocol::wording::Wording;
use tokio_postgres::{Client, Error, error::SqlState};

use super::ReplicationSlot;
use crate::{
    IngestError, IngestOptions,
    formats::postgres::{SESSION, chain},
};

/// Selects the tables of a publication, with whether a name without a schema means them, and the filter of their rows.
const TABLES: &str = "SELECT c.oid, n.nspname::text, c.relname::text, pg_table_is_visible(c.oid), to_jsonb(t) ->> 'rowfilter' \
    FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname \
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename WHERE t.pubname = $1 ORDER BY 2, 3";
/// Selects a row if the publication has the table of this number.
pub(super) const PUBLISHED: &str = "SELECT 1 FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname \
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename WHERE t.pubname = $1 AND c.oid = $2";
/// Selects the columns of a table that are sent, and whether each is in the replica identity.
const COLUMNS: &str = "SELECT a.attname::text, c.relreplident = 'f' OR EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid \
    AND a.attnum = ANY (i.indkey) AND (c.relreplident = 'd' AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)) \
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' \
    WHERE c.oid = $1";

/// A table of a publication.
pub(super) struct PublishedTable {
    pub(super) id: u32,
    /// The name with its schema.
    pub(super) name: String,
    /// The changes that the publication leaves out.
    pub(super) left_out: Option<String>,
}

impl PublishedTable {
    /// Returns the error for a column that is not sent.
    pub(super) fn lacks(&self, path: &Path, column: &str) -> IngestError {
        IngestError::Postgres {
            path: path.into(),
            message: format!(
                "the column {column:?} of {} is not sent: it is generated, was removed, or is none of the publication's",
                self.name
            ),
            advice: Wording("build the table again, without it ({value})"),
        }
    }
}

/// The slot and the columns that are asked of a database.
pub(super) struct Asked<'a> {
    pub(super) path: &'a Path,
    pub(super) slot: &'a ReplicationSlot,
    pub(super) options: &'a IngestOptions,
}

impl Asked<'_> {
    fn refusal(&self, message: String, advice: &'static str) -> IngestError {
        IngestError::Postgres { path: self.path.into(), message, advice: Wording(advice) }
    }

    /// Returns the table, after checks of the slot, the publication and the columns.
    pub(super) async fn find(&self, client: &Client) -> Result<PublishedTable, IngestError> {
        let failed = |error: Error| failed(self.path, &error);
        client.batch_execute(SESSION).await.map_err(failed)?;
        self.check_slot(client).await?;
        let left_out = self.check_publication(client).await?;
        let rows = client.query(TABLES, &[&self.slot.publication]).await.map_err(failed)?;
        let mut tables = Vec::new();
        for row in &rows {
            let schema: String = row.try_get(1).map_err(failed)?;
            let name: String = row.try_get(2).map_err(failed)?;
            let is_visible: bool = row.try_get(3).map_err(failed)?;
            let filter: Option<String> = row.try_get(4).map_err(failed)?;
            let full = format!("{schema}.{name}");
            let shown = if is_visible { name } else { full.clone() };
            let id = row.try_get(0).map_err(failed)?;
            let filter = filter.map(|filter| format!("rows that are not {filter}"));
            let left_out = filter.or_else(|| left_out.clone());
            tables.push((shown, PublishedTable { id, name: full, left_out }));
        }
        let names = || tables.iter().map(|(shown, _)| &shown[..]).collect::<Vec<_>>().join(", ");
        let at = match &self.options.table {
            Some(asked) => tables.iter().position(|(shown, table)| shown == asked || table.name == *asked),
            None if tables.len() > 1 => {
                let message = format!("the publication has several tables: {}", names());
                return Err(self.refusal(message, "choose one with {table}"));
            }
            None => (!tables.is_empty()).then_some(0),
        };
        let Some(at) = at else {
            let message = match &self.options.table {
                _ if tables.is_empty() => "the publication has no table".into(),
                asked => format!(
                    "the publication has no table {}, but {}",
                    asked.as_deref().unwrap_or_default(),
                    names()
                ),
            };
            let advice = "name one of it with {table}; one with partitions is there if it is published WITH (publish_via_partition_root)";
            return Err(self.refusal(message, advice));
        };
        let (_, table) = tables.swap_remove(at);
        self.check_columns(client, &table).await?;
        Ok(table)
    }

    async fn check_slot(&self, client: &Client) -> Result<(), IngestError> {
        let slot = &self.slot.slot;
        let slots = "SELECT coalesce(plugin::text, '') FROM pg_replication_slots WHERE slot_name = $1";
        let found = client.query_opt(slots, &[slot]).await.map_err(|error| failed(self.path, &error))?;
        let plugin: Option<String> = found.and_then(|row| row.try_get(0).ok());
        match plugin.as_deref() {
            Some("pgoutput") => Ok(()),
            None => Err(self.refusal(
                format!("there is no replication slot '{slot}'"),
                "make it before the table is built: SELECT pg_create_logical_replication_slot('NAME', 'pgoutput')",
            )),
            Some(_) => Err(self.refusal(
                format!("the replication slot '{slot}' is of another plug-in than pgoutput"),
                "name another one with {slot}",
            )),
        }
    }

    /// Checks the publication. Returns what it leaves out.
    async fn check_publication(&self, client: &Client) -> Result<Option<String>, IngestError> {
        let publication = &self.slot.publication;
        let kinds = "SELECT pubinsert, pubupdate, pubdelete FROM pg_publication WHERE pubname = $1";
        let failed = |error: Error| failed(self.path, &error);
        let found = client.query_opt(kinds, &[publication]).await.map_err(failed)?;
        let Some(row) = found else {
            return Err(self.refusal(
                format!("there is no publication '{publication}'"),
                "make it before the slot: CREATE PUBLICATION name FOR TABLE name",
            ));
        };
        let mut left_out = Vec::new();
        for (at, kind) in ["inserts", "updates", "deletes"].into_iter().enumerate() {
            if !row.try_get::<_, bool>(at).map_err(failed)? {
                left_out.push(kind);
            }
        }
        Ok((!left_out.is_empty()).then(|| left_out.join(" and ")))
    }

    /// Checks that the columns in use are sent, and that deletes name their records.
    async fn check_columns(&self, client: &Client, table: &PublishedTable) -> Result<(), IngestError> {
        let failed = |error: Error| failed(self.path, &error);
        let rows = client.query(COLUMNS, &[&table.id]).await.map_err(failed)?;
        let mut columns = Vec::new();
        for row in &rows {
            let name: String = row.try_get(0).map_err(failed)?;
            let is_identity: bool = row.try_get(1).map_err(failed)?;
            columns.push((name, is_identity));
        }
        let IngestOptions { key, value, .. } = self.options;
        let find = |name: &String| columns.iter().find(|(own, _)| own == name);
        if let Some(missing) = key.iter().chain(value).find(|name| find(name).is_none()) {
            return Err(table.lacks(self.path, missing));
        }
        let nameless = key.iter().find(|name| find(name).is_some_and(|(_, is_identity)| !is_identity));
        match nameless {
            None => Ok(()),
            Some(key) => Err(self.refusal(
                format!(
                    "the replica identity of {} lacks the key column {key:?}, so that deletes do not name their records; \
                     ALTER TABLE {} REPLICA IDENTITY FULL has it sent from then on",
                    table.name, table.name
                ),
                "build the table again after it",
            )),
        }
    }
}

/// Returns the error for a refusal by the server, or on the way to it.
pub(super) fn failed(path: &Path, error: &Error) -> IngestError {
    let (message, advice) = match error.as_db_error() {
        Some(refusal) => {
            let advice = match *refusal.code() {
                SqlState::OBJECT_IN_USE => "stop the other process that reads the slot",
                SqlState::INSUFFICIENT_PRIVILEGE => {
                    "the role needs REPLICATION (ALTER ROLE name REPLICATION) and SELECT on the table"
                }
                SqlState::UNDEFINED_OBJECT => {
                    "changes of a publication that was made anew are lost: build the table again, with a new slot"
                }
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => {
                    "set wal_level to logical; a slot that has lost changes is made anew, and the table built again"
                }
                _ => "run the command again",
            };
            (refusal.message().to_owned(), advice)
        }
        None => (chain(error), "run the command again"),
    };
    IngestError::Postgres { path: path.into(), message, advice: Wording(advice) }
}
