//! What can be chosen: a JSON document that the driver makes.

use hush_client::{Choices, session::SessionOptions};
use hush_protocol::Code;
use wasm_bindgen::JsValue;

use crate::error::refused;

/// The longest hint that is accepted unless the caller says otherwise, in bytes: a page has 4 GiB for everything.
const MAX_HINT_BYTES: u64 = 1 << 30;

/// Reads choices.
pub(crate) fn parse(json: &str) -> Result<Choices, JsValue> {
    let mut choices: Choices = serde_json::from_str(json)
        .map_err(|error| refused(Code::Options, &format!("an option is of no use: {error}")))?;
    choices.max_hint.get_or_insert(MAX_HINT_BYTES);
    Ok(choices)
}

/// Returns the options of a session with these choices.
pub(crate) fn session(choices: &Choices) -> Result<SessionOptions, JsValue> {
    choices.session().map_err(|reason| refused(Code::Options, reason))
}
