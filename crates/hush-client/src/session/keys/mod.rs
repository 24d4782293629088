//! The evaluation keys of a session. They are drawn before look-ups are sent, and never depend on the content of an answer.
//! `kept_keys.rs` has the records of keys that hosts store.

pub mod kept_keys;

use std::{collections::HashMap, sync::Arc};

use self::kept_keys::record_name;
use super::{
    KeptKeys, KeyNote, KeyRequest, Need, SessionError,
    options::{MAX_LOOKUPS_PER_KEY, RelayOptions},
    requests::link::Link,
};
use crate::Table;

/// The keys that a session used, by the names of their records.
#[derive(Default)]
pub(super) struct SessionKeys(HashMap<String, KeptKeys>);

impl SessionKeys {
    /// Returns the keys of `table` in this session. Returns `None` before the first look-up, and for protocols without keys.
    pub(super) fn held(&self, link: &Link, table: &Table) -> Option<KeptKeys> {
        self.0.get(&name_of(link, table)?).cloned()
    }

    /// Gives a new state of a table the keys that this session used for the table before.
    pub(super) fn give(&self, link: &Link, table: &mut Table) -> Result<(), SessionError> {
        match self.held(link, table) {
            Some(keys) => Ok(table.use_keys(keys.seed())?),
            None => Ok(()),
        }
    }

    /// Gives `table` keys for `lookups` more look-ups. Returns whether the keys must be uploaded first.
    pub(super) async fn draw(
        &mut self,
        link: &Link,
        table: &mut Arc<Table>,
        lookups: usize,
    ) -> Result<bool, SessionError> {
        let Some(name) = name_of(link, table) else { return Ok(false) };
        let limit = limit(link);
        let lookups = u32::try_from(lookups).unwrap_or(u32::MAX);
        let request = KeyRequest { held: self.0.get(&name).cloned(), name, lookups, limit };
        link.ready(Need::Keys(&request)).await;
        let keys = link.host().keys(&request).map_err(SessionError::Cache)?;
        if !request.held.is_some_and(|held| held.is_same(&keys)) {
            Arc::make_mut(table).use_keys(keys.seed())?;
        }
        let is_new = !keys.is_uploaded();
        self.0.insert(request.name, keys);
        Ok(is_new)
    }

    /// Records an event of `keys`, which `table` used.
    pub(super) fn note(
        &mut self,
        link: &Link,
        table: &Table,
        keys: &KeptKeys,
        note: KeyNote,
    ) -> Result<(), SessionError> {
        let Some(name) = name_of(link, table) else { return Ok(()) };
        if let Some(held) = self.0.get_mut(&name) {
            held.note(keys, note);
        }
        link.host().note(&name, keys, note).map_err(SessionError::Cache)
    }
}

/// Returns the most look-ups with the same keys.
pub(super) fn limit(link: &Link) -> u32 {
    link.options().lookups_per_key.clamp(1, MAX_LOOKUPS_PER_KEY)
}

fn name_of(link: &Link, table: &Table) -> Option<String> {
    let preset = table.key_preset()?;
    let route = link.options().relay.as_ref().map(RelayOptions::route).unwrap_or_default();
    Some(record_name(&link.context().url.origin(), &route, preset))
}
