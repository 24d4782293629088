//! Work on a thread of its own, while Python goes on with others, takes a Ctrl-C, and may give the work up.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use hush_client::http;
use pyo3::prelude::*;

use crate::error::{Code, raised};

/// How often it is looked whether somebody has pressed Ctrl-C, or given the work up.
const LOOK: Duration = Duration::from_millis(100);

/// Gives work up: look-ups make no query more, and builds end.
#[pyclass(frozen)]
#[derive(Clone, Default)]
pub(crate) struct Cancel {
    pub(crate) calls: http::Cancel,
    pub(crate) work: hush_engine::Cancel,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.calls.cancel();
        self.work.cancel();
    }
}

impl Cancel {
    /// Creates the one that Python gave, or one of the call's own.
    pub(crate) fn of(given: Option<&Bound<'_, Self>>) -> Self {
        given.map(|given| given.get().clone()).unwrap_or_default()
    }
}

/// Does `work` without the interpreter's lock. After a Ctrl-C, and once `cancel` says so, it ends as soon as it can, for nobody.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    // Nobody waits for it after an interrupt.
    thread::spawn(move || drop(sender.send(catch_unwind(AssertUnwindSafe(work)))));
    loop {
        let received = py.detach(move || {
            let received = receiver.recv_timeout(LOOK);
            (receiver, received)
        });
        receiver = received.0;
        match received.1 {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(raised(py, Code::ClientFailed, "the program failed: what it printed says why"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancel.cancel();
                    return Err(interrupt);
                }
                if cancel.calls.is_cancelled() {
                    return Err(raised(py, Code::Aborted, "the call was given up"));
                }
            }
        }
    }
}
