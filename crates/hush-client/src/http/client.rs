//! A server: which tables it has, opening one.

use std::time::Instant;

use hush_protocol::descriptor::{Descriptor, MAX_DESCRIPTOR_BYTES};
use serde::Deserialize;

use super::{
    HttpError, HttpOptions, HttpTable, Stats, hint::HintStore, secrets::SecretStore, stats::timed,
    transport::Transport,
};
use crate::{Table, table::check_security};

/// Longest list of tables that is read.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A server and its tables.
pub struct HttpClient {
    connection: Connection,
    tables: Vec<TableInfo>,
    /// What it took to learn of the tables.
    stats: Stats,
}

/// What opening a table, and opening it again, needs.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) hints: HintStore,
    pub(super) secrets: SecretStore,
    pub(super) allow_weak: bool,
    pub(super) max_hint_bytes: u64,
    pub(super) max_queries: usize,
}

/// A table in a server's list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TableInfo {
    /// Its name, of letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// `resident`, or `loading` for a table whose look-ups have to wait.
    pub state: String,
    /// Name of its protocol, maybe one that this client does not know; absent while it is loading.
    pub protocol: Option<String>,
    /// Its number of records; absent while it is loading.
    pub records: Option<u64>,
}

#[derive(Deserialize)]
struct TableList {
    tables: Vec<TableInfo>,
}

impl HttpClient {
    /// Asks the server at `url` (`http://host:port` or `https://host`, a path is kept) for its tables.
    ///
    /// # Errors
    /// [`HttpError`] if the URL is none, the server is not reached, or it is no server of this API.
    pub fn connect(url: &str, options: HttpOptions) -> Result<Self, HttpError> {
        let connection = Connection {
            transport: Transport::new(url, &options)?,
            hints: HintStore::new(&options.cache)?,
            secrets: SecretStore::new(&options.cache)?,
            allow_weak: options.allow_weak,
            max_hint_bytes: options.max_hint_bytes,
            max_queries: options.max_queries.max(1),
        };
        let transport = &connection.transport;
        let mut stats = Stats::default();
        let list = timed(&mut stats.seconds.descriptor, || {
            transport.retrying(|| transport.get("/v1/tables", "a list of tables", MAX_LIST_BYTES))
        })?;
        stats.setup_bytes_down += list.len() as u64;
        let TableList { tables } =
            serde_json::from_slice(&list).map_err(|_| transport.odd("its list of tables is none"))?;
        if !tables.iter().all(|table| is_name(&table.name)) {
            return Err(transport.odd("a table's name has characters that no name has"));
        }
        Ok(Self { connection, tables, stats })
    }

    /// The tables, as they were when the server was asked.
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    /// Opens a table: by name, or the only one. Fetches its descriptor, and its hint unless that is in the cache.
    ///
    /// # Errors
    /// [`HttpError::UnknownTable`], [`HttpError::ChooseTable`] and [`HttpError::NoTables`] if there is no such
    /// table; else what can go wrong on the way, and what [`Table::new`] refuses.
    pub fn open(&self, name: Option<&str>) -> Result<HttpTable, HttpError> {
        let names = || self.tables.iter().map(|table| table.name.clone()).collect();
        let name = match (name, self.tables.as_slice()) {
            (Some(name), tables) if tables.iter().any(|table| table.name == name) => name,
            (Some(name), _) => return Err(HttpError::UnknownTable { name: name.into(), tables: names() }),
            (None, [only]) => &only.name,
            (None, []) => return Err(HttpError::NoTables),
            (None, _) => return Err(HttpError::ChooseTable { tables: names() }),
        };
        let mut stats = self.stats;
        let descriptor = self.connection.descriptor(name, &mut stats)?;
        let epoch = descriptor.epoch;
        let table = match self.connection.load(descriptor, &mut stats) {
            Err(error) if is_missing(&error) => {
                // The table may have changed between descriptor and hint, and its old hint be gone.
                let descriptor = self.connection.descriptor(name, &mut stats)?;
                if descriptor.epoch == epoch {
                    return Err(error);
                }
                self.connection.load(descriptor, &mut stats)?
            }
            outcome => outcome?,
        };
        Ok(HttpTable::new(self.connection.clone(), name.into(), table, stats))
    }
}

impl Connection {
    /// Fetches the descriptor of the table `name`.
    fn descriptor(&self, name: &str, stats: &mut Stats) -> Result<Descriptor, HttpError> {
        let path = format!("/v1/tables/{name}");
        let fetch = || self.transport.get(&path, "a descriptor", MAX_DESCRIPTOR_BYTES);
        let json = timed(&mut stats.seconds.descriptor, || self.transport.retrying(fetch))?;
        stats.setup_bytes_down += json.len() as u64;
        Ok(Descriptor::from_json(&json)?)
    }

    /// Makes a table of `descriptor` with the hint that it names, which is fetched unless the table is refused without it,
    /// or with the client's keys.
    pub(super) fn load(&self, descriptor: Descriptor, stats: &mut Stats) -> Result<Table, HttpError> {
        let params = descriptor.params()?;
        check_security(&params, self.allow_weak)?;
        let (bytes, limit) = (params.hint_bytes() as u64, self.max_hint_bytes);
        if bytes > limit {
            return Err(HttpError::HintTooLong { bytes, limit });
        }
        let hint = match &descriptor.hint {
            None => None,
            Some(hint) => {
                let start = Instant::now();
                let hint = self.hints.obtain(&self.transport, hint, &mut stats.setup_bytes_down);
                stats.seconds.hint += start.elapsed().as_secs_f64();
                Some(hint?)
            }
        };
        let mut table = Table::new(descriptor, hint, self.allow_weak)?;
        timed(&mut stats.seconds.keys, || self.give_keys(&mut table))?;
        Ok(table)
    }

    /// Gives `table` the keys that this client has for such tables of the server, if it needs any.
    pub(super) fn give_keys(&self, table: &mut Table) -> Result<(), HttpError> {
        let Some(preset) = table.key_preset() else { return Ok(()) };
        let seed = self.secrets.obtain(&self.transport.origin(), preset)?;
        table.use_keys(&seed);
        Ok(())
    }
}

/// Whether the server has no file of the hash that was asked for.
fn is_missing(error: &HttpError) -> bool {
    matches!(error, HttpError::Refused { status: 404, .. })
}

/// The names that a server can have: they stand in URLs and on terminals as they are.
fn is_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}
