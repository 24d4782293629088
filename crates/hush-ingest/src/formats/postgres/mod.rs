//! PostgreSQL: the rows of a table or of a query, copied out within one snapshot of the database.

pub(crate) mod follow;
mod record;
pub(crate) mod row;
pub(crate) mod settings;
pub(crate) mod tls;

use std::{
    error::Error as _,
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::ReadyChunks};
use hush_protocol::{schema::Schema, wording::Wording};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::timeout,
};
use tokio_postgres::{Client, CopyOutStream, Error, error::SqlState};

use crate::remote::{AUTHORITY_AS_SERVER, Refused, RemoteUrl};
use crate::{
    IngestError, IngestOptions, MAX_ROW_SIZE, Progress, ProgressUnit, Reader, Record,
    formats::postgres::{
        record::{RowConverter, types_of},
        row::CellKind,
        settings::Settings,
    },
    record::projection::Projection,
};

/// The most rows that are taken at a time, if that many have arrived.
const ROWS_AHEAD: usize = 256;
/// The longest wait for a server to end the transaction, and again to end the connection.
const FAREWELL: Duration = Duration::from_secs(2);
/// The most tables among which the requested one is searched.
const MAX_TABLES: i64 = 100_000;

/// Begins a transaction that writes nothing and sees all rows at one moment. Their text does not depend on the settings of the
/// server. Rows without an ORDER BY come in the order of the table, so that an interrupted build finds it again.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; \
    SET LOCAL datestyle = 'ISO'; SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'iso_8601'; \
    SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3; SET LOCAL client_encoding = 'UTF8'; \
    SET LOCAL synchronize_seqscans = off; SET LOCAL max_parallel_workers_per_gather = 0; \
    SET LOCAL statement_timeout = 0";

/// Gives values of a session the form that those of a build have.
const SESSION: &str = "SET datestyle = 'ISO'; SET timezone = 'UTC'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'; \
    SET extra_float_digits = 3; SET client_encoding = 'UTF8'; SET statement_timeout = 0";

/// Selects the tables, views and other relations with rows, with about how many rows each has; first those visible unqualified.
const TABLES: &str = "SELECT n.nspname::text, c.relname::text, pg_table_is_visible(c.oid), c.reltuples::float8 \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition \
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
    ORDER BY 3 DESC, 1, 2 LIMIT $1";

/// Reads the rows of a PostgreSQL query.
pub(crate) struct PostgresReader {
    path: PathBuf,
    /// The rows that have arrived and are not read yet, the next one last.
    come: Vec<Result<Bytes, Error>>,
    rows: Pin<Box<ReadyChunks<CopyOutStream>>>,
    /// Keeps the connection open; `None` once it is closed.
    session: Option<DatabaseSession>,
    runtime: Runtime,
    converter: RowConverter,
    total: Option<u64>,
    position: Option<u64>,
}

impl PostgresReader {
    pub(crate) fn open(url: &RemoteUrl, options: &IngestOptions) -> Result<Self, IngestError> {
        let path = url.shown();
        let settings = settings(url)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| IngestError::Unreadable { path: path.into(), source })?;
        let (session, begun) = runtime.block_on(open(&settings, path, options))?;
        let Begun { rows, converter, total, position } = begun;
        Ok(Self {
            path: path.into(),
            come: Vec::new(),
            rows: Box::pin(rows.ready_chunks(ROWS_AHEAD)),
            session: Some(session),
            runtime,
            converter,
            total,
            position,
        })
    }

    fn record(&mut self, line: &[u8]) -> Result<Record, IngestError> {
        let converter = &mut self.converter;
        converter.number += 1;
        if line.len() as u64 > MAX_ROW_SIZE {
            let what = format!(" is longer than {MAX_ROW_SIZE} bytes");
            return Err(converter.refused(&what, Wording("leave its long columns out with {value}")));
        }
        if !converter.row.read(line, converter.used()) {
            return Err(converter.refused(" does not have the columns of the others", AGAIN));
        }
        converter.record()
    }
}

impl Iterator for PostgresReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.come.is_empty() {
            let Some(come) = self.runtime.block_on(self.rows.next()) else {
                if let Some(session) = self.session.take() {
                    self.runtime.block_on(session.end());
                }
                return None;
            };
            self.come = come;
            self.come.reverse();
        }
        match self.come.pop()? {
            Ok(line) => Some(self.record(&line)),
            Err(error) => Some(Err(refused(&self.path, &error, None))),
        }
    }
}

impl Reader for PostgresReader {
    fn progress(&self) -> Progress {
        Progress { read: self.converter.number, total: self.total, unit: ProgressUnit::Rows }
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.converter.projection)
    }

    fn log_position(&self) -> Option<u64> {
        self.position
    }

    fn columns(&self) -> Option<Schema> {
        Some(self.converter.schema())
    }
}

/// Returns how the server of a URL is reached.
pub(crate) fn settings(url: &RemoteUrl) -> Result<Settings, IngestError> {
    Settings::of(url).map_err(|Refused { message, advice }| {
        let advice = advice.map_or(AGAIN, Wording);
        IngestError::Postgres { path: url.shown().into(), message, advice }
    })
}

/// A running query.
struct Begun {
    rows: CopyOutStream,
    converter: RowConverter,
    total: Option<u64>,
    position: Option<u64>,
}

/// A connection.
struct DatabaseSession {
    client: Client,
    connection: JoinHandle<Result<(), Error>>,
}

impl DatabaseSession {
    async fn open(settings: &Settings, path: &Path) -> Result<Self, IngestError> {
        let left_out = settings.left_out.as_deref();
        let connected = settings.config.connect(settings.tls.clone()).await;
        let (client, connection) = connected.map_err(|error| refused(path, &error, left_out))?;
        // An error that ends the connection also reaches every caller that waits for an answer.
        Ok(Self { client, connection: tokio::spawn(connection) })
    }

    /// Ends the transaction and the connection in order; otherwise the log of the server would show a broken connection. Nothing
    /// was written, so an error changes nothing.
    async fn end(self) {
        let _ = timeout(FAREWELL, self.client.batch_execute("COMMIT")).await;
        drop(self.client);
        let _ = timeout(FAREWELL, self.connection).await;
    }
}

async fn open(
    settings: &Settings,
    path: &Path,
    options: &IngestOptions,
) -> Result<(DatabaseSession, Begun), IngestError> {
    let session = DatabaseSession::open(settings, path).await?;
    match begin(&session.client, path, options).await {
        Ok(begun) => Ok((session, begun)),
        Err(error) => {
            session.end().await;
            Err(error)
        }
    }
}

/// Begins the transaction and the query.
async fn begin(client: &Client, path: &Path, options: &IngestOptions) -> Result<Begun, IngestError> {
    let failed = |error: Error| refused(path, &error, None);
    let position = position(client).await;
    client.batch_execute(BEGIN).await.map_err(failed)?;
    let (query, total) = match &options.sql {
        Some(sql) => (sql.trim_end_matches(|c: char| c.is_whitespace() || c == ';').to_owned(), None),
        None => choose_table(client, path, options).await?,
    };
    let statement = client.prepare(&query).await.map_err(failed)?;
    let names: Vec<String> = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    if names.is_empty() {
        let reason = Wording("{sql} returns no columns; write a SELECT");
        return Err(IngestError::Option { path: path.into(), reason });
    }
    let types = types_of(statement.columns().iter().map(|column| (column.type_(), column.type_modifier())));
    let projection = Projection::new(path, &names, options)?.typed(|index| types[index].clone());
    let mut used: Vec<usize> = projection.columns().map(|column| column.index).collect();
    used.sort_unstable();
    used.dedup();
    let mut columns = vec![None; names.len()];
    let mut list = Vec::new();
    for (field, &index) in used.iter().enumerate() {
        let kind = CellKind::of(statement.columns()[index].type_());
        let name = quoted(&names[index]);
        list.push(if kind == CellKind::Nested { format!("to_json(q.{name})") } else { format!("q.{name}") });
        columns[index] = Some((field, kind));
    }
    let list = list.join(", ");
    // A comment may end the query, hence the line end.
    let copy = format!("COPY (SELECT {list} FROM ({query}\n) AS q) TO STDOUT");
    let rows = client.copy_out(&copy).await.map_err(failed)?;
    Ok(Begun { rows, converter: RowConverter::new(path.into(), projection, columns, types), total, position })
}

/// Returns the position of the database behind which changes may be missing in what is read from now on. A server that does not
/// tell it, such as a copy of another one, has none.
async fn position(client: &Client) -> Option<u64> {
    let row = client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.ok()?;
    follow::parse_position(&row.try_get::<_, String>(0).ok()?)
}

/// Returns the query of the rows of a table, and about how many there are.
async fn choose_table(
    client: &Client,
    path: &Path,
    options: &IngestOptions,
) -> Result<(String, Option<u64>), IngestError> {
    let refused = |error: Error| refused(path, &error, None);
    let found = client.query(TABLES, &[&MAX_TABLES]).await.map_err(refused)?;
    let mut tables = Vec::new();
    for row in &found {
        let schema: String = row.try_get(0).map_err(refused)?;
        let name: String = row.try_get(1).map_err(refused)?;
        let visible: bool = row.try_get(2).map_err(refused)?;
        let rows: f64 = row.try_get(3).map_err(refused)?;
        let query = format!("SELECT * FROM {}.{}", quoted(&schema), quoted(&name));
        let shown = if visible { name.clone() } else { format!("{schema}.{name}") };
        tables.push((shown, format!("{schema}.{name}"), query, (rows >= 1.0).then_some(rows as u64)));
    }
    let chosen = match &options.table {
        Some(asked) => tables.iter().find(|(shown, full, ..)| asked == shown || asked == full),
        None => <&[_; 1]>::try_from(&tables[..]).ok().map(|[only]| only),
    };
    if let Some((_, _, query, rows)) = chosen {
        return Ok((query.clone(), *rows));
    }
    let mut tables: Vec<String> = tables.into_iter().map(|(shown, ..)| shown).collect();
    if let Some(asked) = &options.table {
        tables.sort_by_key(|name| strsim::damerau_levenshtein(name, asked));
    }
    Err(IngestError::NoTable { path: path.into(), tables })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

const AGAIN: Wording = Wording("run the build again");

/// Returns the error for a refusal by the server, or on the way to it. `left_out` says which passwords were not read.
fn refused(path: &Path, error: &Error, left_out: Option<&str>) -> IngestError {
    let (mut message, advice) = match error.as_db_error() {
        Some(refusal) => {
            let hint = refusal.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            (format!("{}{hint}", refusal.message()), advice(refusal.code()))
        }
        None if chain(error).contains("CaUsedAsEndEntity") => {
            (AUTHORITY_AS_SERVER.0.to_owned(), Wording(AUTHORITY_AS_SERVER.1))
        }
        None => {
            let message = chain(error);
            let advice = match &message {
                text if text.contains("password missing") => PASSWORD,
                text if text.contains("TLS") => {
                    Wording("sslmode says what is checked, sslrootcert which authority may sign")
                }
                text if text.contains("connecting") || text.contains("timeout") => {
                    Wording("check the host and the port, and that the server runs and lets this machine in")
                }
                text if error.is_closed() || text.contains("communicating") => AGAIN,
                _ => Wording("check the URL"),
            };
            (message, advice)
        }
    };
    if let Some(left_out) = left_out {
        message = format!("{message} ({left_out})");
    }
    IngestError::Postgres { path: path.into(), message, advice }
}

const PASSWORD: Wording = Wording("give the password in PGPASSWORD, in ~/.pgpass or in the URL");

fn advice(code: &SqlState) -> Wording {
    match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => PASSWORD,
        SqlState::INVALID_CATALOG_NAME => Wording("the last part of the URL names the database"),
        SqlState::INSUFFICIENT_PRIVILEGE => {
            Wording("let a user who may read it build, or ask its owner for GRANT SELECT")
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => Wording("write a SELECT: nothing is changed"),
        SqlState::TOO_MANY_CONNECTIONS | SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN => AGAIN,
        SqlState::T_R_SERIALIZATION_FAILURE => AGAIN,
        _ => Wording("correct {sql} or {table}"),
    }
}

/// Formats an error and its causes.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
