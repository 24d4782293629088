//! Headers of requests, as a server reads them.

#[path = "../../crates/hush-server/src/routes/blobs/range.rs"]
mod blob_range;

use crate::input::Input;

/// `Range` and `If-Range`.
pub fn range(bytes: &[u8]) {
    const ETAG: &str = "\"0123\"";
    let mut input = Input::new(bytes);
    let kind = input.byte();
    let length = match kind >> 4 {
        0 => 0,
        1 => 1,
        15 => u64::MAX,
        bits => 1000 << bits,
    };
    let if_range = match kind & 3 {
        0 => None,
        1 => Some(ETAG.as_bytes()),
        _ => Some(input.piece()),
    };
    let range = input.rest();
    if let Ok(Some(part)) = blob_range::wanted(Some(range), if_range, ETAG, length) {
        assert!(part.start < part.end && part.end <= length);
        assert!(if_range.is_none_or(|tag| tag == ETAG.as_bytes()));
        // The same part, as a client would ask for it.
        let again = format!("bytes={}-{}", part.start, part.end - 1);
        assert_eq!(blob_range::wanted(Some(again.as_bytes()), None, ETAG, length), Ok(Some(part)));
    }
}
