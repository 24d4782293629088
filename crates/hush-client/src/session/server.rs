//! A server: its tables, and opening one.

use std::{sync::Arc, time::Duration};

use hush_protocol::{
    Name, Remedy,
    descriptor::{Descriptor, MAX_DESCRIPTOR_BYTES},
    facts::Facts,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    Host, Need, ServerUrl, Session, SessionError, SessionOptions, Stats, Task, hint,
    relay::Relay,
    requests::link::{Context, Link},
};
use crate::{Acceptance, ClientError, Table, Trust};

/// The most epochs that are tried, if the files of each are gone before they were fetched.
const EPOCHS_PASSED: usize = 4;
/// The most bytes of all hints of a table together, if they are decompressed in memory.
const MAX_DECOMPRESSED_BYTES: u64 = 1 << 30;
/// The time for which a descriptor that came with the list of tables is taken for the newest one.
const LISTED_FRESH: Duration = Duration::from_secs(10);
/// The longest list of tables that is read, in bytes.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A server and its tables.
#[derive(Clone)]
pub struct Server {
    context: Arc<Context>,
    tables: Vec<TableInfo>,
    /// The descriptor of the only table, if it came with the list, and when.
    listed: Option<(Descriptor, Duration)>,
    /// The bytes and seconds of fetching the list of tables.
    stats: Stats,
}

/// A table in a server's list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableInfo {
    /// The table's name. It is a valid [`Name`], so URLs and terminals show the text unchanged.
    pub name: String,
    /// `resident`, or `loading` while look-ups in the table must wait.
    pub state: String,
    /// The name of the table's protocol, which this client may not know. Absent while the table is loading.
    pub protocol: Option<String>,
    /// The number of records. Absent while the table is loading.
    pub records: Option<u64>,
}

#[derive(Deserialize)]
struct TableList {
    tables: Vec<TableInfo>,
    descriptor: Option<Box<RawValue>>,
}

impl Server {
    /// Asks the server at `url` for its tables.
    ///
    /// # Errors
    /// The task returns [`SessionError`] if the server cannot be reached, or does not have this API.
    pub fn connect(
        url: ServerUrl,
        options: SessionOptions,
        host: Arc<dyn Host>,
    ) -> Task<'static, Result<Self, SessionError>> {
        Task::new(|port| async move {
            let relay = Relay::new(&url, &options)?.map(Arc::new);
            let context = Arc::new(Context { url, options, host, relay });
            Self::listed(&Link::new(&context, port)).await
        })
    }

    async fn listed(link: &Link) -> Result<Self, SessionError> {
        let mut stats = Stats::default();
        let start = link.host().now();
        let list = link.get("/v1/tables", "a list of tables", MAX_LIST_BYTES).await?;
        stats.seconds.descriptor += link.seconds_since(start);
        stats.setup_bytes_down += list.len() as u64;
        let TableList { tables, descriptor } =
            serde_json::from_slice(&list).map_err(|_| link.odd("its list of tables is none"))?;
        if !tables.iter().all(|table| table.name.parse::<Name>().is_ok()) {
            return Err(link.odd("a table in its list has a name that no table can have"));
        }
        // What cannot be read here is asked for when the table is opened, and refused then.
        let only = descriptor.filter(|_| tables.len() == 1);
        let only = only.and_then(|json| Descriptor::from_json(json.get().as_bytes()).ok());
        let listed = only.map(|descriptor| (descriptor, link.host().now()));
        Ok(Self { context: link.context().clone(), tables, listed, stats })
    }

    /// Returns the tables that the server had when it was asked.
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    /// Opens a table by its name, or the only table. Fetches its descriptor, and its hint unless the host has it.
    ///
    /// # Errors
    /// The task returns [`SessionError::UnknownTable`], [`SessionError::ChooseTable`] or [`SessionError::NoTables`] if
    /// there is no such table. It also returns the errors of requests and of [`Table::new`].
    pub fn open(&self, name: Option<&str>) -> Task<'static, Result<Session, SessionError>> {
        let context = self.trusting(name);
        let chosen = self.choose(name).map(str::to_owned);
        let stats = self.stats;
        let listed = self.listed.clone();
        Task::new(|port| async move {
            let name = chosen?;
            opened(Link::new(&context?, port), name, listed, stats).await
        })
    }

    /// Returns the context of a table that is opened by `name`. If a publisher is trusted without a name, the table must be
    /// signed under `name`. Otherwise the server could choose among all tables that the publisher ever signed.
    fn trusting(&self, name: Option<&str>) -> Result<Arc<Context>, ClientError> {
        let Context { url, options, host, relay } = &*self.context;
        let Some(Trust { publisher, name: None }) = options.acceptance.trust else {
            return Ok(self.context.clone());
        };
        // No server has a table with an invalid name.
        let name = name.and_then(|name| name.parse().ok()).ok_or(ClientError::NameNotGiven)?;
        let acceptance =
            Acceptance { trust: Some(Trust { publisher, name: Some(name) }), ..options.acceptance.clone() };
        let options = SessionOptions { acceptance, ..options.clone() };
        Ok(Arc::new(Context { url: url.clone(), options, host: host.clone(), relay: relay.clone() }))
    }

    fn choose<'a>(&'a self, name: Option<&'a str>) -> Result<&'a str, SessionError> {
        let names = || self.tables.iter().map(|table| table.name.clone()).collect();
        match (name, self.tables.as_slice()) {
            (Some(name), tables) if tables.iter().any(|table| table.name == name) => Ok(name),
            (Some(name), _) => Err(SessionError::UnknownTable { name: name.into(), tables: names() }),
            (None, [only]) => Ok(&only.name),
            (None, []) => Err(SessionError::NoTables),
            (None, _) => Err(SessionError::ChooseTable { tables: names() }),
        }
    }
}

/// Opens the table `name`. A descriptor that was `listed` just now is not asked for again.
async fn opened(
    link: Link,
    name: String,
    listed: Option<(Descriptor, Duration)>,
    mut stats: Stats,
) -> Result<Session, SessionError> {
    let now = link.host().now();
    let table = match listed.filter(|(_, listed)| now.saturating_sub(*listed) < LISTED_FRESH) {
        Some((descriptor, _)) => load_newest(&link, &name, descriptor, &mut stats).await?,
        None => current(&link, &name, &mut stats).await?,
    };
    Ok(Session::new(&link, name, table, stats))
}

/// Returns the current state of the table `name`.
pub(super) async fn current(link: &Link, name: &str, stats: &mut Stats) -> Result<Table, SessionError> {
    let descriptor = self::descriptor(link, name, stats).await?;
    load_newest(link, name, descriptor, stats).await
}

/// Loads the table of `descriptor`. If its files are gone, loads the current state of the table `name` instead.
async fn load_newest(
    link: &Link,
    name: &str,
    mut descriptor: Descriptor,
    stats: &mut Stats,
) -> Result<Table, SessionError> {
    for _ in 1..EPOCHS_PASSED {
        let epoch = descriptor.epoch;
        match load(link, descriptor, stats).await {
            Err(error) if error.code().remedy() == Remedy::FetchDescriptor => {
                // The table may have changed between descriptor and hint, and its old hint may be gone.
                descriptor = self::descriptor(link, name, stats).await?;
                if descriptor.epoch == epoch {
                    return Err(error);
                }
            }
            outcome => return outcome,
        }
    }
    load(link, descriptor, stats).await
}

/// Returns the current state of the table `name`, or `None` if it has the epoch of `known`.
pub(super) async fn newer(
    link: &Link,
    name: &str,
    known: &Table,
    stats: &mut Stats,
) -> Result<Option<Table>, SessionError> {
    let descriptor = self::descriptor(link, name, stats).await?;
    if descriptor.epoch == known.descriptor().epoch {
        return Ok(None);
    }
    load_newest(link, name, descriptor, stats).await.map(Some)
}

/// Fetches the descriptor of the table `name`.
async fn descriptor(link: &Link, name: &str, stats: &mut Stats) -> Result<Descriptor, SessionError> {
    let start = link.host().now();
    let json = link.get(&format!("/v1/tables/{name}"), "a descriptor", MAX_DESCRIPTOR_BYTES).await?;
    stats.seconds.descriptor += link.seconds_since(start);
    stats.setup_bytes_down += json.len() as u64;
    Ok(Descriptor::from_json(&json)?)
}

/// Loads the table of `descriptor`. Fetches its hint only if the table is not refused before.
pub(super) async fn load(
    link: &Link,
    descriptor: Descriptor,
    stats: &mut Stats,
) -> Result<Table, SessionError> {
    let params = descriptor.params()?;
    let options = link.options();
    options.acceptance.check(&descriptor, params.facts())?;
    check_serial(link, &descriptor).await?;
    let downloaded = descriptor.blobs().map(|blob| blob.bytes).sum();
    check_length(params.facts(), downloaded, options.max_hint_bytes)?;
    let mut hints = Vec::new();
    for blob in descriptor.blobs() {
        let start = link.host().now();
        let hint = hint::obtain(link, blob, &mut stats.setup_bytes_down).await;
        stats.seconds.hint += link.seconds_since(start);
        hints.push(hint?);
    }
    let mut table = Table::new(descriptor, hints, &options.acceptance)?;
    table.use_stored_form(options.stored_form);
    Ok(table)
}

/// Refuses hints that are longer than `limit` when downloaded or decompressed. A few bytes could become many in memory, so
/// compressed hints also have a limit of their own.
fn check_length(facts: &Facts, downloaded: u64, limit: u64) -> Result<(), SessionError> {
    let limit = if facts.is_hint_compressed { limit.min(MAX_DECOMPRESSED_BYTES) } else { limit };
    let bytes = facts.hint_bytes.max(downloaded);
    if bytes > limit { Err(SessionError::HintTooLong { bytes, limit }) } else { Ok(()) }
}

/// Refuses a table of a trusted publisher if a newer one was seen under its name. Otherwise stores its serial.
async fn check_serial(link: &Link, descriptor: &Descriptor) -> Result<(), SessionError> {
    let (Some(_), Some(signature)) = (&link.options().acceptance.trust, &descriptor.signature) else {
        return Ok(());
    };
    let publication = signature.publication();
    let serial = signature.serial;
    link.ready(Need::Serial { publication: &publication, serial }).await;
    let newest = link.host().newest_serial(&publication, serial).map_err(SessionError::Cache)?;
    if newest > serial {
        return Err(ClientError::OlderSerial { name: signature.name.clone(), serial, newest }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hush_protocol::{
        Protocol,
        table::{SegmentShape, TableShape},
    };

    use super::*;

    #[test]
    fn segments_together_do_not_fill_the_memory() {
        let shape = TableShape { columns: 256, blocks: 1024, slot_bytes: 1024 };
        let mut table = Protocol::Download.page().table("DOWNLOAD", shape).unwrap();
        for segments in 1..=5 {
            let checked = check_length(table.facts(), 100, 8 << 30);
            assert_eq!(checked.is_ok(), segments <= 4, "{segments} of 256 MiB");
            table = table.with_segment(SegmentShape { shape, entries: 1 }).unwrap();
        }
        assert!(
            check_length(Protocol::Download.page().table("DOWNLOAD", shape).unwrap().facts(), 1, 1 << 20)
                .is_err()
        );
    }
}
