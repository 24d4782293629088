//! Work that blocks, for those who must not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use futures_channel::oneshot;
use hush_client::http::Cancel;
use hush_protocol::{Code, wording};

use crate::{HushError, error::named};

/// Does `work`, with messages in words of this library. A panic is an error here: none crosses into another language.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, HushError>) -> Result<T, HushError> {
    wording::speak(named);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed()))
}

/// Gives a call up when nobody awaits it any more.
struct Awaited(Cancel);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does `work` on a thread of its own. If nobody awaits it any more, it is given up.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> Result<T, HushError> + Send + 'static,
) -> Result<T, HushError> {
    let (sender, receiver) = oneshot::channel();
    let cancel = Cancel::default();
    let _awaited = Awaited(cancel.clone());
    let work = move || drop(sender.send(guarded(|| work(&cancel))));
    let started = thread::Builder::new().name("hushdb".into()).spawn(work);
    started.map_err(|error| {
        HushError::new(Code::ClientFailed, format!("cannot start a thread ({error}): try again later"))
    })?;
    receiver.await.unwrap_or_else(|_| Err(failed()))
}

fn failed() -> HushError {
    HushError::new(Code::ClientFailed, "the client failed: what it printed says why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let outcome = guarded::<()>(|| panic!("for a test"));
        assert!(matches!(outcome, Err(HushError::Other { .. })));
    }
}
