//! The events of a call that takes long.

use std::{sync::Arc, time::Duration};

use hush_client::http;
use uniffi::UnexpectedUniFFICallbackError;

/// An event of a call that takes long.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Event {
    /// A hint, or what is missing of it, is about to be downloaded; again after a `Retry`.
    HintStart {
        /// The length of the hint in bytes.
        bytes: u64,
        /// Bytes of it that an earlier attempt left behind.
        present: u64,
    },
    /// So many bytes of the hint are there now. Falls when a damaged part is thrown away.
    HintProgress {
        /// Bytes from the start.
        present: u64,
    },
    /// The hint is complete and has its hash.
    HintEnd,
    /// Another process is downloading the same hint; this one waits for it.
    HintLocked,
    /// This client's evaluation keys are new, or the server has lost them: they are uploaded now.
    KeysUpload {
        /// The length of the keys in bytes.
        bytes: u64,
    },
    /// A request failed and is made again.
    Retry {
        /// Why it failed.
        reason: String,
        /// How long is waited before.
        wait: Duration,
    },
}

impl Event {
    fn of(event: &http::Event<'_>) -> Self {
        match *event {
            http::Event::HintStart { bytes, present } => Self::HintStart { bytes, present },
            http::Event::HintProgress { present } => Self::HintProgress { present },
            http::Event::HintEnd => Self::HintEnd,
            http::Event::HintLocked => Self::HintLocked,
            http::Event::KeysUpload { bytes } => Self::KeysUpload { bytes },
            http::Event::Retry { error, wait } => Self::Retry { reason: error.to_string(), wait },
        }
    }
}

/// Is told what happens while a call takes long.
#[uniffi::export(with_foreign)]
pub trait Observer: Send + Sync {
    /// Takes note of an event, on the thread that does the work, which waits for it. What this throws is dropped.
    fn report(&self, event: Event) -> Result<(), ObserverError>;
}

/// An exception of an observer, whatever it is: without this type it would be a panic.
#[derive(Clone, Copy, Debug, thiserror::Error, uniffi::Error)]
pub enum ObserverError {
    /// The observer failed.
    #[error("the observer failed")]
    Failed,
}

impl From<UnexpectedUniFFICallbackError> for ObserverError {
    fn from(_: UnexpectedUniFFICallbackError) -> Self {
        Self::Failed
    }
}

/// Returns the observer of a session. No look-up fails because the one who looks on does.
pub(crate) fn telling(observer: Arc<dyn Observer>) -> http::Observer {
    Arc::new(move |event| {
        let _ = observer.report(Event::of(event));
    })
}
