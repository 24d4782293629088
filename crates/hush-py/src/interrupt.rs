//! Work on a thread of its own, while Python goes on with others and takes a Ctrl-C.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};

/// How often it is looked whether somebody has pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Does `work` without the interpreter's lock. After a Ctrl-C `cancel` is called, and the work goes on for nobody.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    cancel: impl FnOnce(),
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
                return Err(PyRuntimeError::new_err("the program failed: what it printed says why"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    cancel();
                    return Err(interrupt);
                }
            }
        }
    }
}
