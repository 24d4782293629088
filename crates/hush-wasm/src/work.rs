//! The work under way, in the steps that a driver takes.

use std::{sync::Arc, time::Duration};

use hush_client::session::{Action, Head, Request, Task, TransportFailure};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    error::failure,
    host::{MemoryHost, Needed},
    object::{json, milliseconds, object},
};

/// A connection, an opening or look-ups under way. The driver calls `advance`, does what it says, and tells what came of it, until
/// it says `done`.
#[wasm_bindgen]
pub struct Work {
    steps: Box<dyn Steps>,
    host: Arc<MemoryHost>,
    /// A request is out whose response has not ended.
    awaits_response: bool,
}

/// A task of a session, whatever its result is.
trait Steps {
    fn advance(&mut self) -> Action<Result<JsValue, JsValue>>;
    fn begin(&mut self, head: Head) -> bool;
    fn body(&mut self, bytes: &[u8]) -> bool;
    fn end(&mut self);
    fn fail(&mut self, failure: TransportFailure);
}

struct Running<T, F> {
    task: Task<'static, T>,
    /// Makes the result; taken when the task is done.
    finish: Option<F>,
}

impl<T, F: FnOnce(T) -> Result<JsValue, JsValue>> Steps for Running<T, F> {
    fn advance(&mut self) -> Action<Result<JsValue, JsValue>> {
        match self.task.advance() {
            Action::Send(request) => Action::Send(request),
            Action::Wait(wait) => Action::Wait(wait),
            Action::Done(result) => Action::Done(self.finish.take().expect("a task is done once")(result)),
        }
    }

    fn begin(&mut self, head: Head) -> bool {
        self.task.begin(head)
    }

    fn body(&mut self, bytes: &[u8]) -> bool {
        self.task.body(bytes)
    }

    fn end(&mut self) {
        self.task.end();
    }

    fn fail(&mut self, failure: TransportFailure) {
        self.task.fail(failure);
    }
}

impl Work {
    pub(crate) fn new<T: 'static>(
        host: &Arc<MemoryHost>,
        task: Task<'static, T>,
        finish: impl FnOnce(T) -> Result<JsValue, JsValue> + 'static,
    ) -> Self {
        let steps = Box::new(Running { task, finish: Some(finish) });
        Self { steps, host: host.clone(), awaits_response: false }
    }
}

#[wasm_bindgen]
impl Work {
    /// Returns the next step: `{kind: "send", ..}`, `{kind: "wait", ms, hints, keys, serials}` or `{kind: "done",
    /// result}`. Before a wait is over, the driver looks for the hints, keys and serials that it names. Throws the
    /// error of work that failed.
    pub fn advance(&mut self) -> Result<JsValue, JsValue> {
        match self.steps.advance() {
            Action::Send(request) => {
                self.awaits_response = true;
                Ok(sent(request))
            }
            Action::Wait(wait) => Ok(waited(wait, &self.host.take_needed())),
            Action::Done(result) => Ok(object([("kind", "done".into()), ("result", result?)])),
        }
    }

    /// Takes the status and the headers of the response, names and values by turns, and the length of its body if that is known.
    /// Returns whether the body is to be read.
    pub fn begin(&mut self, status: u16, headers: Vec<String>, body_bytes: Option<f64>) -> bool {
        let headers = headers.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let body_bytes = body_bytes.filter(|bytes| *bytes >= 0.0).map(|bytes| bytes as u64);
        self.awaits_response = self.steps.begin(Head { status, headers, body_bytes });
        self.awaits_response
    }

    /// Takes the next bytes of the body. Returns whether there is more to read.
    pub fn body(&mut self, bytes: &[u8]) -> bool {
        self.awaits_response = self.steps.body(bytes);
        self.awaits_response
    }

    /// Notes that the body is complete.
    pub fn end(&mut self) {
        self.awaits_response = false;
        self.steps.end();
    }

    /// Notes that there is no response, or that its body broke off: `kind` is `timeout`, `odd` or `unreachable`.
    pub fn fail(&mut self, kind: &str, reason: String, transient: bool) {
        self.awaits_response = false;
        self.steps.fail(failure(kind, reason, transient));
    }

    /// Gives the work up, so that what it works with is left as it is after an error: an open table stays open.
    pub fn abandon(&mut self) {
        self.host.set_abandoned(true);
        loop {
            if self.awaits_response {
                self.fail("unreachable", "given up".into(), false);
            }
            match self.steps.advance() {
                Action::Send(_) => self.awaits_response = true,
                Action::Wait(_) => {}
                Action::Done(_) => break,
            }
        }
        self.host.set_abandoned(false);
    }

    /// Returns what happened since the last call, for the user: an array in JSON, of objects with a `kind`.
    pub fn events(&self) -> String {
        json(&self.host.take_events())
    }
}

fn sent(request: Request) -> JsValue {
    let headers = request.headers.into_iter().flat_map(|(name, value)| [JsValue::from(name), value.into()]);
    object([
        ("kind", "send".into()),
        ("method", request.method.name().into()),
        ("path", request.path.into()),
        ("headers", headers.collect::<Array>().into()),
        ("body", Uint8Array::from(&request.body[..]).into()),
        ("msLeft", request.time_left.map(milliseconds).into()),
    ])
}

fn waited(wait: Duration, needed: &[Needed]) -> JsValue {
    let hints = Array::new();
    let keys = Array::new();
    let serials = Array::new();
    for needed in needed {
        match needed {
            Needed::Hint(hash) => hints.push(&hex::encode(hash).into()),
            Needed::Keys(name) => keys.push(&name.into()),
            Needed::Serial(name) => serials.push(&name.into()),
        };
    }
    let ms = milliseconds(wait).into();
    object([
        ("kind", "wait".into()),
        ("ms", ms),
        ("hints", hints.into()),
        ("keys", keys.into()),
        ("serials", serials.into()),
    ])
}
