//! The tables, each asked by a thread of its own. What waits meanwhile is looked up together.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use hush_client::{
    Wanted,
    http::{Answers, CallOptions, HttpClient, HttpError, HttpOptions, HttpTable},
};
use hush_protocol::{
    Code,
    keyword::MAX_KEY_BYTES,
    sorted::found::{RowMatch, UnknownRowMatch},
};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::config::{ConfigError, TableSettings, wrong};

/// A record: its value, or `None` if the table does not have the key.
pub(crate) type FoundRecord = Option<Zeroizing<Vec<u8>>>;

/// The look-ups that wait for a table at most.
const MOST_WAITING: usize = 256;
/// The look-ups of one call at most.
const MOST_AT_ONCE: usize = 32;

/// The time for which a table is taken to be the one that it was: a server answers those who ask an epoch that was replaced, for a
/// while.
const LOOK: Duration = Duration::from_secs(5);

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoAnswer {
    /// The key is none of the table's.
    Key(String),
    /// The server, or the way to it, does not work.
    Server(String),
    /// Too many look-ups wait.
    Busy,
}

impl NoAnswer {
    fn of(error: &HttpError) -> Self {
        match error.code() {
            Code::BadKey | Code::KeyTooLong | Code::IndexOutOfRange | Code::WrongLookup => {
                Self::Key(error.to_string())
            }
            _ => Self::Server(error.to_string()),
        }
    }
}

/// A look-up that waits.
struct WaitingLookup {
    wanted: Wanted,
    reply: oneshot::Sender<Result<FoundRecord, NoAnswer>>,
}

/// A table that can be asked. Clones ask the same table.
#[derive(Clone)]
pub(crate) struct PrivateTable {
    queue: SyncSender<WaitingLookup>,
    is_index: bool,
    by: RowMatch,
}

impl PrivateTable {
    /// Starts the thread of a table, which opens it at once. A server that does not answer yet is asked again with each look-up.
    pub(crate) fn start(name: &str, settings: &TableSettings) -> Result<Self, ConfigError> {
        let options = settings.options(name)?;
        let by = settings.rows.as_deref().unwrap_or("exact").parse();
        let by =
            by.map_err(|error: UnknownRowMatch| wrong(format!("tables.{name}.rows"), error.to_string()))?;
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let asker = Asker {
            name: name.to_owned(),
            shown: settings.shown(),
            url: settings.url.clone(),
            table: settings.table.clone(),
            options,
            open: None,
        };
        thread::spawn(move || asker.run(&waiting));
        Ok(Self { queue, is_index: settings.index, by })
    }

    /// Looks a key up.
    pub(crate) async fn look_up(&self, key: &[u8]) -> Result<FoundRecord, NoAnswer> {
        // A client refuses it as well, but with all look-ups of the call.
        if key.len() > MAX_KEY_BYTES {
            return Err(NoAnswer::Key(format!("the key has more than {MAX_KEY_BYTES} bytes")));
        }
        let wanted = match self.is_index {
            false => Wanted::Key(key.to_vec()),
            true => {
                let number = str::from_utf8(key).ok().and_then(|text| text.parse().ok());
                Wanted::Index(number.ok_or_else(|| NoAnswer::Key("the key is no position".into()))?)
            }
        };
        let wanted = wanted.matching(self.by);
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(WaitingLookup { wanted, reply }).map_err(|error| match error {
            TrySendError::Full(_) => NoAnswer::Busy,
            TrySendError::Disconnected(_) => NoAnswer::Server("the table is asked no more".into()),
        })?;
        answer.await.unwrap_or_else(|_| Err(NoAnswer::Server("the look-up ended without an answer".into())))
    }
}

/// The thread that asks a table.
struct Asker {
    name: String,
    shown: String,
    url: String,
    table: Option<String>,
    options: HttpOptions,
    open: Option<(HttpTable, Instant)>,
}

impl Asker {
    fn run(mut self, waiting: &Receiver<WaitingLookup>) {
        match self.opened() {
            Ok(_) => tracing::info!("{}: {} is open", self.name, self.shown),
            Err(error) => tracing::warn!("{}: {} cannot be asked yet: {error}", self.name, self.shown),
        }
        while let Ok(first) = waiting.recv() {
            let mut lookups = vec![first];
            lookups.extend(waiting.try_iter().take(MOST_AT_ONCE - 1));
            let wanted: Vec<_> = lookups.iter().map(|lookup| lookup.wanted.clone()).collect();
            let answers = self.ask(&wanted);
            if let Err(error) = &answers {
                tracing::warn!("{}: {error}", self.name);
            }
            let records: Vec<Result<FoundRecord, NoAnswer>> = match answers {
                Ok(answers) => answers.iter().flat_map(Answers::found).map(record).collect(),
                Err(error) => lookups.iter().map(|_| Err(NoAnswer::of(&error))).collect(),
            };
            for (lookup, record) in lookups.into_iter().zip(records) {
                // Whoever asked may have gone.
                let _ = lookup.reply.send(record);
            }
        }
    }

    fn opened(&mut self) -> Result<&mut HttpTable, HttpError> {
        let is_new = self.open.as_ref().is_some_and(|(_, since)| since.elapsed() < LOOK);
        if !is_new {
            let client = HttpClient::connect(&self.url, self.options.clone())?;
            let table = client.open(self.table.as_deref())?;
            let epoch = |table: &HttpTable| table.table().descriptor().epoch;
            // Only a table that was replaced needs new keys.
            let kept = self.open.take().map(|(kept, _)| kept).filter(|kept| epoch(kept) == epoch(&table));
            self.open = Some((kept.unwrap_or(table), Instant::now()));
        }
        Ok(&mut self.open.as_mut().expect("it is open now").0)
    }

    /// Looks records up. Answers are decoded after all of them have arrived.
    fn ask(&mut self, wanted: &[Wanted]) -> Result<Vec<Answers>, HttpError> {
        let mut all = Vec::new();
        self.opened()?.lookup_each(wanted, &CallOptions::default(), |answers| all.push(answers))?;
        Ok(all)
    }
}

fn record(found: Result<&hush_client::Found, HttpError>) -> Result<FoundRecord, NoAnswer> {
    match found {
        Ok(record) => Ok(record.as_ref().map(|value| Zeroizing::new(value.to_vec()))),
        Err(error) => Err(NoAnswer::of(&error)),
    }
}
