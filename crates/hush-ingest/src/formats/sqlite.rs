//! SQLite: the rows of a table in the order of their row ids, or those of a query.

use std::{
    os::unix::ffi::OsStrExt,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use hush_protocol::wording::Wording;
use rusqlite::{
    Connection, ErrorCode, InterruptHandle, OpenFlags, Row, config::DbConfig, limits::Limit, types::ValueRef,
};

use crate::{
    IngestError, IngestOptions, MAX_ROW_SIZE, Place, Progress, ProgressUnit, Reader, Record,
    record::{cell::Cell, projection::Projection},
};

/// The most records that the reading thread is ahead.
const RECORDS_AHEAD: usize = 256;

/// A reader of the rows of a SQLite query. The rows borrow from the connection, so a separate thread runs the query.
pub(crate) struct SqliteReader {
    records: Option<Receiver<Result<Record, IngestError>>>,
    interrupt: InterruptHandle,
    thread: Option<JoinHandle<()>>,
    rows: u64,
    total: Option<u64>,
    /// The columns, which share the types seen so far with the thread.
    projection: Projection,
}

impl SqliteReader {
    /// Reads the file at `at`. Messages name `path`.
    pub(crate) fn open(at: &Path, path: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let refused = |error: rusqlite::Error| refused(path, error);
        let connection = connect(at, path)?;
        check_schema(&connection, path)?;
        let query = match &options.sql {
            Some(sql) => Query { sql: sql.clone(), rows: None },
            None => {
                Query::of_table(&connection, &choose_table(&connection, path, options)?).map_err(refused)?
            }
        };
        let names = query.column_names(&connection).map_err(refused)?;
        if names.is_empty() {
            let reason = Wording("{sql} returns no columns; write a SELECT");
            return Err(IngestError::Option { path: path.into(), reason });
        }
        let projection = Projection::new(path, &names, options)?.untyped();
        let scan = TableScan { projection: projection.clone(), path: path.into(), sql: query.sql };
        let interrupt = connection.get_interrupt_handle();
        let (sender, records) = sync_channel(RECORDS_AHEAD);
        let thread = thread::spawn(move || scan.run(&connection, &sender));
        Ok(Self {
            records: Some(records),
            interrupt,
            thread: Some(thread),
            rows: 0,
            total: query.rows,
            projection,
        })
    }
}

impl Iterator for SqliteReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.records.as_ref()?.recv() {
            Ok(record) => {
                self.rows += 1;
                Some(record)
            }
            Err(_) => {
                // A panic must not look like the end of the table.
                if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                    resume_unwind(panic);
                }
                None
            }
        }
    }
}

impl Reader for SqliteReader {
    fn progress(&self) -> Progress {
        Progress { read: self.rows, total: self.total, unit: ProgressUnit::Rows }
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.projection)
    }
}

impl Drop for SqliteReader {
    fn drop(&mut self) {
        // The thread ends when its receiver is gone, or by an interrupt in the middle of a long query. An interrupt reaches only a
        // query that runs already, so one may not be enough.
        self.records = None;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            self.interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens a database for reading.
///
/// A database with a write-ahead log (WAL) needs a file beside it even to be read. If its folder may not be written and the log is
/// empty, the database is read as immutable.
fn connect(at: &Path, path: &Path) -> Result<Connection, IngestError> {
    let open = |name: &Path, flags: OpenFlags| -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(name, flags)?;
        harden(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let error = match open(at, OpenFlags::empty()) {
        Err(error) if needs_writing(&error) => error,
        outcome => return outcome.map_err(|error| refused(path, error)),
    };
    let beside = |end: &str| {
        let mut name = at.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let has_log = beside("-wal").metadata().is_ok_and(|log| log.len() > 0);
    // Another process may write to the log.
    if has_log || beside("-shm").exists() {
        return Err(IngestError::WriteAheadLog { path: path.into() });
    }
    let Ok(absolute) = at.canonicalize() else { return Err(refused(path, error)) };
    open(&immutable(&absolute), OpenFlags::SQLITE_OPEN_URI).map_err(|_| refused(path, error))
}

/// Returns whether a database cannot be opened, or only with the right to write beside it.
fn needs_writing(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// Returns the URI that opens a file as immutable: no process may change the file while it is read.
fn immutable(file: &Path) -> PathBuf {
    let mut uri = String::from("file:");
    for &byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri += "?immutable=1";
    uri.into()
}

/// Restricts a connection to a file from an untrusted source: views call no functions with side effects, and no value they compute
/// is longer than a row may be.
fn harden(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_SIZE as i32)?;
    Ok(())
}

/// Refuses a schema that is not UTF-8: the names of its columns could not be used, and reading them would panic.
fn check_schema(connection: &Connection, path: &Path) -> Result<(), IngestError> {
    let refused = |error| refused(path, error);
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema").map_err(refused)?;
    let mut rows = statement.query([]).map_err(refused)?;
    while let Some(row) = rows.next().map_err(refused)? {
        let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(0).map_err(refused)? else {
            continue;
        };
        if str::from_utf8(bytes).is_err() {
            let message = "the names of its tables and columns are not UTF-8".into();
            return Err(IngestError::Sqlite { path: path.into(), message });
        }
    }
    Ok(())
}

/// A query, and about how many rows it has, if known.
struct Query {
    sql: String,
    rows: Option<u64>,
}

impl Query {
    /// Selects the rows of a table by row id. Views and tables without row ids keep the order that SQLite gives them.
    fn of_table(connection: &Connection, table: &str) -> rusqlite::Result<Self> {
        let table = format!("\"{}\"", table.replace('"', "\"\""));
        let by_row_id = format!("SELECT * FROM {table} ORDER BY _rowid_");
        if connection.prepare(&by_row_id).is_err() {
            return Ok(Self { sql: format!("SELECT * FROM {table}"), rows: None });
        }
        // Counting would read the table. The last row id costs nothing, and is the count unless rows were deleted.
        let last = connection.query_row(&format!("SELECT max(_rowid_) FROM {table}"), [], |row| row.get(0));
        let last: Option<i64> = last.unwrap_or(None);
        Ok(Self { sql: by_row_id, rows: last.and_then(|last| u64::try_from(last).ok()) })
    }

    fn column_names(&self, connection: &Connection) -> rusqlite::Result<Vec<String>> {
        let statement = connection.prepare(&self.sql)?;
        Ok(statement.column_names().map(String::from).collect())
    }
}

/// Returns the table of the options, or the only table.
fn choose_table(
    connection: &Connection,
    path: &Path,
    options: &IngestOptions,
) -> Result<String, IngestError> {
    let refused = |error| refused(path, error);
    let tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') \
                  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    let mut statement = connection.prepare(tables).map_err(refused)?;
    let names = statement.query_map([], |row| row.get(0)).map_err(refused)?;
    let tables = names.collect::<rusqlite::Result<Vec<String>>>().map_err(refused)?;
    match &options.table {
        // SQLite compares names without regard to ASCII case.
        Some(table) if tables.iter().any(|name| name.eq_ignore_ascii_case(table)) => Ok(table.clone()),
        None if tables.len() == 1 => Ok(tables[0].clone()),
        _ => Err(IngestError::NoTable { path: path.into(), tables }),
    }
}

fn refused(path: &Path, error: rusqlite::Error) -> IngestError {
    IngestError::Sqlite { path: path.into(), message: error.to_string() }
}

/// The work of the reading thread.
struct TableScan {
    path: PathBuf,
    sql: String,
    projection: Projection,
}

impl TableScan {
    /// Sends all records, or an error last, until the receiver is gone.
    fn run(&self, connection: &Connection, sender: &SyncSender<Result<Record, IngestError>>) {
        if let Err(error) = self.send_rows(connection, sender) {
            // Without a receiver nobody waits for the error.
            let _ = sender.send(Err(refused(&self.path, error)));
        }
    }

    fn send_rows(
        &self,
        connection: &Connection,
        sender: &SyncSender<Result<Record, IngestError>>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&self.sql)?;
        let mut rows = statement.query([])?;
        let mut row_number = 0;
        while let Some(row) = rows.next()? {
            row_number += 1;
            if sender.send(self.record(row, row_number)).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn record(&self, row: &Row, row_number: u64) -> Result<Record, IngestError> {
        let place = || Place { path: self.path.clone(), row: row_number, line: None };
        self.projection.record(place, |column| {
            Ok(match row.get_ref(column.index).map_err(|error| refused(&self.path, error))? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Real(value) => Cell::Float(value),
                ValueRef::Blob(bytes) => Cell::Binary(bytes.into()),
                ValueRef::Text(bytes) => {
                    let text = std::str::from_utf8(bytes).map_err(|_| IngestError::BadUtf8 {
                        place: place(),
                        column: Some(column.name.clone()),
                    })?;
                    Cell::Text(text.into())
                }
            })
        })
    }
}
