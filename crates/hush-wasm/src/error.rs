//! Errors: a code for programs, and a message in words of JavaScript.

use hush_client::{
    ClientError,
    session::{ServerRefusal, SessionError, TransportFailure},
};
use hush_protocol::{
    Code, ProtocolError,
    wording::{Slot, camel_case},
};
use wasm_bindgen::JsValue;

use crate::object::{milliseconds, object, set};

/// Returns the error that the driver throws: the driver makes a `HushError` of it.
pub(crate) fn refused(code: Code, message: &str) -> JsValue {
    object([("code", code.word().into()), ("message", message.into())])
}

/// Returns the error that the driver throws for an error of the session.
pub(crate) fn thrown(error: &SessionError) -> JsValue {
    let thrown = refused(error.code(), &message(error));
    if let SessionError::Refused(ServerRefusal { status, .. }) | SessionError::Intermediary { status, .. } =
        error
    {
        set(&thrown, "status", &f64::from(*status).into());
    }
    if let SessionError::Refused(ServerRefusal { retry_after: Some(wait), .. }) = error {
        set(&thrown, "retryAfterMs", &milliseconds(*wait).into());
    }
    thrown
}

/// Refuses to begin without randomness: what encrypts cannot do without, and there is no other source.
pub(crate) fn randomness() -> Result<(), JsValue> {
    getrandom::fill(&mut [0]).map_err(|_| {
        let message = "crypto.getRandomValues gives no randomness, so nothing can be encrypted and nothing was asked: look \
                       records up where it is there, which is every browser and every Node from 18 on";
        refused(Code::NoRandomness, message)
    })
}

/// Returns a failure that the driver reports.
pub(crate) fn failure(kind: &str, reason: String, transient: bool) -> TransportFailure {
    match kind {
        "timeout" => TransportFailure::Timeout { phase: reason },
        "odd" => TransportFailure::Odd { reason },
        _ => TransportFailure::Unreachable { reason, transient },
    }
}

/// Returns the words what texts of libraries name, as the package has it.
pub(crate) fn named(slot: &Slot<'_>) -> String {
    match slot {
        Slot::Option("table") => "open(name)".into(),
        Slot::Setting(name, value) => format!("connect(url, {{ {}: {value} }})", camel_case(name)),
        Slot::Switch(name) => format!("connect(url, {{ {}: true }})", camel_case(name)),
        Slot::Option(name) | Slot::Command(name, _) => format!("connect(url, {{ {} }})", camel_case(name)),
    }
}

/// Returns the message in JavaScript's words: of keys of other types, and of a server that is asked without a
/// terminal.
fn message(error: &SessionError) -> String {
    match error {
        SessionError::Client(ClientError::Protocol(ProtocolError::WrongLookup { actual: "key", .. })) => {
            "the table is looked up by key, not by position: give a string or bytes".into()
        }
        SessionError::Client(ClientError::Protocol(ProtocolError::WrongLookup { .. })) => {
            "the table is looked up by position, not by key: give a number or a bigint".into()
        }
        SessionError::TokenToRelay => {
            "a token goes through a relay only if it is sealed for keys that are surely the server's: fetch them from the server, at \
             /.well-known/ohttp-gateway, and give them with connect(url, { ohttpKeys })"
                .into()
        }
        SessionError::Interrupted { present, bytes, reason } => format!(
            "the download broke off after {present} of {bytes} bytes ({reason}): open the table again to go on from there"
        ),
        error => error.to_string(),
    }
}
