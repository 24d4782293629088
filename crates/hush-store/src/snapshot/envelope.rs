//! JSON files with a checksum: `{"blake3": HEX, "body": {...}}`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The content of the file: the body's exact text, and its checksum.
#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    /// BLAKE3 of the text of `body`.
    blake3: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// Returns the text of a file that holds `body`, which must be plain data.
pub(super) fn close(body: &impl Serialize) -> String {
    let body = serde_json::value::to_raw_value(body).expect("plain data");
    let blake3 = blake3::hash(body.get().as_bytes()).to_hex().to_string();
    serde_json::to_string(&Envelope { blake3, body: &body }).expect("an envelope is plain data")
}

/// Returns the text of the body, after checking its checksum.
pub(super) fn open(text: &str) -> Result<&str, String> {
    let envelope: Envelope = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if blake3::hash(envelope.body.get().as_bytes()).to_hex().as_str() != envelope.blake3 {
        return Err("its checksum differs".into());
    }
    Ok(envelope.body.get())
}
