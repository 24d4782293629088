//! The tables of a server, by name: loading, failed or resident, and for a while the epochs that were replaced.
//! `parts.rs` has the health of parts that are elsewhere.

pub(crate) mod parts;

use std::{collections::BTreeMap, convert::Infallible, mem, sync::Arc, time::Duration};

use hush_engine::{Blob, Engine, FILES_CHANGED, KeySpec};
use hush_protocol::Name;
use parking_lot::RwLock;
use tokio::{sync::Notify, task::spawn_blocking, time::Instant};

use crate::{error::ServerError, state::ResidentTable, tables::parts::Parts, upkeep::Upkeep};

/// The longest window for replaced epochs, so that its end can be computed.
const LONGEST_WINDOW: Duration = Duration::from_secs(365 * 24 * 3600);

/// The interval at which the files of tables are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

/// The tables of a server, by name. Clones share the same tables, so that one clone can go to
/// [`crate::run`] and another can load tables in the background.
#[derive(Clone, Default)]
pub struct Tables(Arc<SharedTables>);

#[derive(Default)]
struct SharedTables {
    content: RwLock<TableSlots>,
    /// Wakes the task that drops replaced epochs.
    replaced: Notify,
    upkeep: Upkeep,
    parts: Parts,
}

#[derive(Default)]
struct TableSlots {
    slots: BTreeMap<Name, TableSlot>,
    /// Replaced epochs that still answer, of all tables.
    replaced: Vec<Replaced>,
    /// The time for which replaced epochs answer; zero unless a server runs.
    window: Duration,
}

/// The state of the table of a name.
#[derive(Clone)]
pub(crate) enum TableSlot {
    /// The table is announced. Its queries are answered 503 until it is inserted.
    Loading,
    /// The table cannot be loaded. Holds the reason, for everybody to read.
    Failed(Arc<str>),
    /// The table answers queries.
    Resident(Arc<ResidentTable>),
}

struct Replaced {
    table: Arc<ResidentTable>,
    until: Instant,
}

impl Tables {
    /// Creates an empty set of tables.
    pub fn new() -> Tables {
        Tables::default()
    }

    /// Returns the background work of the server, and what is known of the places of the tables.
    pub fn upkeep(&self) -> &Upkeep {
        &self.0.upkeep
    }

    /// Returns the health of parts that are elsewhere.
    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Announces a table that is still loading: the server is not ready until the table is inserted. Removes a resident table of
    /// that name, with its replaced epochs.
    pub fn announce(&self, name: &Name) {
        self.put(name, TableSlot::Loading);
    }

    /// Marks a table as failed until it is inserted or removed: its queries are answered 503. The server is not ready if no other
    /// table is resident, or with [`ServerConfig::require_tables`](crate::ServerConfig::require_tables). `reason` goes to every
    /// client that asks: it should say what is wrong, and nothing about the machine. Removes a resident table of that name, with
    /// its replaced epochs.
    pub fn fail(&self, name: &Name, reason: &str) {
        self.put(name, TableSlot::Failed(reason.into()));
    }

    /// Makes a table resident, in place of an announced or failed one, or of its previous epoch. If the new table can answer
    /// queries of the previous epoch, it does. Otherwise, while a server runs, the previous epoch still answers queries that name
    /// it for [`ServerConfig::epoch_window`](crate::ServerConfig::epoch_window), and keeps its memory. Queries in flight are
    /// answered in any case.
    ///
    /// # Errors
    /// [`ServerError::Descriptor`] if the descriptor of the table is not a JSON object.
    pub fn insert(&self, name: &Name, engine: Arc<dyn Engine>) -> Result<(), ServerError> {
        let table = Arc::new(ResidentTable::new(name, engine)?);
        let asked = table.served().asked;
        let mut content = self.0.content.write();
        // An epoch that comes back answers its own queries again.
        let back = content.take_replaced(|old| old.name == *name && old.served().asked == asked);
        let previous = content.slots.insert(name.clone(), TableSlot::Resident(table));
        if let Some(TableSlot::Resident(old)) = &previous
            && old.served().asked != asked
            && !content.window.is_zero()
        {
            let until = Instant::now() + content.window;
            content.replaced.push(Replaced { table: old.clone(), until });
            self.0.replaced.notify_one();
        }
        // Dropped without the lock: freeing the memory of a table takes a while.
        drop(content);
        drop((back, previous));
        Ok(())
    }

    /// Fails the tables whose files were changed after they were opened, and drops replaced epochs with such files. Returns the
    /// name of each, with the reason for the operator.
    pub fn fail_damaged(&self) -> Vec<(Name, String)> {
        let tables: Vec<_> = {
            let content = self.0.content.read();
            content.resident().chain(content.replaced.iter().map(|old| &old.table)).cloned().collect()
        };
        // Checked without the lock: this asks the file system.
        let damaged: Vec<_> =
            tables.into_iter().filter_map(|table| Some((table.engine.damaged()?, table))).collect();
        if damaged.is_empty() {
            return Vec::new();
        }
        let mut content = self.0.content.write();
        for (_, table) in &damaged {
            // Another epoch may have replaced the table meanwhile.
            if let Some(slot) = content.slots.get_mut(&table.name)
                && matches!(slot, TableSlot::Resident(now) if Arc::ptr_eq(now, table))
            {
                *slot = TableSlot::Failed(FILES_CHANGED.into());
            }
            drop(content.take_replaced(|old| std::ptr::eq(old, &**table)));
        }
        drop(content);
        damaged.into_iter().map(|(reason, table)| (table.name.clone(), reason)).collect()
    }

    /// Returns whether a table is resident, so that it answers.
    pub fn is_resident(&self, name: &Name) -> bool {
        self.0.content.read().resident().any(|table| table.name == *name)
    }

    /// Removes a table in any state, with its replaced epochs. Returns whether there was one. Queries in flight are still
    /// answered.
    pub fn remove(&self, name: &Name) -> bool {
        let mut content = self.0.content.write();
        let gone = (content.slots.remove(name), content.take_replaced(|old| old.name == *name));
        drop(content);
        self.0.upkeep.forget(name);
        self.0.parts.forget(name);
        gone.0.is_some()
    }

    /// Sets the state of a name, and drops its previous table with its replaced epochs.
    fn put(&self, name: &Name, slot: TableSlot) {
        let mut content = self.0.content.write();
        let gone = (content.slots.insert(name.clone(), slot), content.take_replaced(|old| old.name == *name));
        drop(content);
        drop(gone);
    }

    /// Returns the table under a name, and its replaced epochs that still answer.
    pub(crate) fn slot(&self, name: &str) -> Option<(TableSlot, Vec<Arc<ResidentTable>>)> {
        let content = self.0.content.read();
        let replaced = content.answering().filter(|table| table.name == *name).cloned().collect();
        Some((content.slots.get(name)?.clone(), replaced))
    }

    pub(crate) fn all(&self) -> Vec<(Name, TableSlot)> {
        self.0.content.read().slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    /// Returns whether a table is still to come.
    pub(crate) fn any_loading(&self) -> bool {
        self.0.content.read().slots.values().any(|slot| matches!(slot, TableSlot::Loading))
    }

    /// Returns whether a table answers.
    pub(crate) fn any_resident(&self) -> bool {
        self.0.content.read().resident().next().is_some()
    }

    /// Returns the tables that failed, each with the reason.
    pub(crate) fn failed(&self) -> Vec<(Name, Arc<str>)> {
        let content = self.0.content.read();
        let failed = content.slots.iter().filter_map(|(name, slot)| match slot {
            TableSlot::Failed(reason) => Some((name.clone(), reason.clone())),
            TableSlot::Loading | TableSlot::Resident(_) => None,
        });
        failed.collect()
    }

    /// Returns a resident table whose GPU has failed for good, and how.
    pub(crate) fn lost(&self) -> Option<(Name, String)> {
        self.0.content.read().resident().find_map(|table| Some((table.name.clone(), table.engine.lost()?)))
    }

    /// Returns the tables some of whose copies do not answer, each with the reason.
    pub(crate) fn degraded(&self) -> Vec<(Name, String)> {
        let content = self.0.content.read();
        let resident = content.resident();
        resident.filter_map(|table| Some((table.name.clone(), table.engine.degraded()?))).collect()
    }

    /// Returns the tables that need keys, replaced epochs included, and the engines that can open them.
    pub(crate) fn with_keys(&self) -> Vec<(KeySpec, Arc<dyn Engine>)> {
        let content = self.0.content.read();
        let tables = content.resident().chain(content.answering());
        tables.filter_map(|table| Some((table.served().keys.clone()?, table.engine.clone()))).collect()
    }

    /// Returns a file of a table, or of a replaced epoch.
    pub(crate) fn blob(&self, hash: &[u8; 32]) -> Option<Blob> {
        let content = self.0.content.read();
        content.resident().chain(content.answering()).find_map(|table| table.blob(hash)).cloned()
    }

    /// Sets how long epochs answer that are replaced from now on. Zero also drops the epochs that were replaced before.
    pub(crate) fn keep_replaced(&self, window: Duration) {
        let mut content = self.0.content.write();
        content.window = window.min(LONGEST_WINDOW);
        let gone = if window.is_zero() { mem::take(&mut content.replaced) } else { Vec::new() };
        drop(content);
        drop(gone);
    }
}

impl TableSlots {
    fn resident(&self) -> impl Iterator<Item = &Arc<ResidentTable>> {
        self.slots.values().filter_map(|slot| match slot {
            TableSlot::Resident(table) => Some(table),
            TableSlot::Loading | TableSlot::Failed(_) => None,
        })
    }

    /// Returns the replaced epochs whose time is not over.
    fn answering(&self) -> impl Iterator<Item = &Arc<ResidentTable>> {
        let now = Instant::now();
        self.replaced.iter().filter(move |old| now < old.until).map(|old| &old.table)
    }

    fn take_replaced(&mut self, is_taken: impl Fn(&ResidentTable) -> bool) -> Vec<Replaced> {
        self.replaced.extract_if(.., |old| is_taken(&old.table)).collect()
    }

    fn take_expired(&mut self) -> Vec<Replaced> {
        let now = Instant::now();
        self.replaced.extract_if(.., |old| old.until <= now).collect()
    }
}

/// Drops replaced epochs when their time is over, whether or not a client asks.
pub(crate) async fn drop_replaced(tables: Tables) -> Infallible {
    loop {
        let next = tables.0.content.read().replaced.iter().map(|old| old.until).min();
        let over = async {
            match next {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            () = tables.0.replaced.notified() => {}
        }
        let expired = tables.0.content.write().take_expired();
        for Replaced { table, .. } in expired {
            tracing::info!(
                table = &*table.name,
                epoch = hex::encode(table.served().epoch),
                "dropped a replaced epoch"
            );
            // Freeing the memory of a table takes a while.
            drop(spawn_blocking(move || drop(table)));
        }
    }
}

/// Fails tables whose files change while they are served, whether or not a client asks.
pub(crate) async fn watch_files(tables: Tables) -> Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        let looking = tables.clone();
        let failed = spawn_blocking(move || looking.fail_damaged()).await;
        failed.unwrap_or_default().iter().for_each(|(table, reason)| tell_damaged(table, reason));
    }
}

/// Logs that a table has failed because its files were changed.
pub(crate) fn tell_damaged(table: &str, reason: &str) {
    tracing::error!(
        table,
        reason,
        "the table answers no more: its files were changed while they were served. Build it anew, or restore its files, and reload it"
    );
}
