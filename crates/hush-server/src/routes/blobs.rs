//! `GET /v1/blobs/{hash}`: public files such as hints, whole or in part, named by their content.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Path, State, rejection::PathRejection},
    http::{
        HeaderMap, StatusCode,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
        },
    },
    response::{IntoResponse, Response},
};
use futures_util::stream;
use hush_engine::Blob;

use super::is_not_modified;
use crate::{
    problem::{Code, Problem},
    state::Server,
};

/// Bytes read from the file at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// One file, or one range of it.
pub(super) async fn download(
    State(server): State<Arc<Server>>,
    hash: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob = find(&server, hash)?;
    let etag = format!("\"{}\"", hex::encode(blob.hash));
    let whole = 0..blob.bytes;
    let caching = [
        (CACHE_CONTROL, "public, max-age=31536000, immutable".to_owned()),
        (ETAG, etag.clone()),
        (ACCEPT_RANGES, "bytes".to_owned()),
    ];
    if is_not_modified(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let (status, range) = match wanted_range(&headers, &etag, blob.bytes)? {
        None => (StatusCode::OK, whole),
        Some(range) => (StatusCode::PARTIAL_CONTENT, range),
    };
    let content_length = (range.end - range.start).to_string();
    let content = [(CONTENT_TYPE, "application/octet-stream".to_owned()), (CONTENT_LENGTH, content_length)];
    let content_range = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| [(CONTENT_RANGE, format!("bytes {}-{}/{}", range.start, range.end - 1, blob.bytes))]);
    Ok((status, caching, content, content_range, read_range(blob.file, range)).into_response())
}

fn find(server: &Server, hash: Result<Path<String>, PathRejection>) -> Result<Blob, Problem> {
    let not_found = || Problem::new(Code::NotFound, "no table here has a file of this hash");
    let Path(text) = hash.map_err(|_| not_found())?;
    let mut hash = [0; 32];
    hex::decode_to_slice(&text, &mut hash).map_err(|_| not_found())?;
    match server.tables.blob(&hash) {
        Some(blob) => Ok(blob),
        None if server.tables.any_loading() => {
            Err(Problem::warming("the file may belong to a table that is still loading"))
        }
        None => Err(not_found()),
    }
}

/// The part of a file that the headers ask for; `None` for all of it.
///
/// As RFC 9110 section 14.2 allows, units other than bytes and several ranges at once are ignored.
/// `If-Range` (section 13.1.5) with another entity tag asks for the whole file.
fn wanted_range(headers: &HeaderMap, etag: &str, bytes: u64) -> Result<Option<Range<u64>>, Problem> {
    let Some(range) = headers.get(RANGE) else { return Ok(None) };
    if headers.get(IF_RANGE).is_some_and(|value| value != etag) {
        return Ok(None);
    }
    let text = range.to_str().map_err(|_| Problem::range(bytes))?;
    let Some((unit, set)) = text.split_once('=') else { return Err(Problem::range(bytes)) };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Ok(None);
    }
    parse_range(set.trim(), bytes).ok_or_else(|| Problem::range(bytes)).map(Some)
}

/// `first-last`, `first-` or `-length` in a file of `bytes` bytes; `None` if nothing is left of it.
fn parse_range(text: &str, bytes: u64) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let range = match (first, last) {
        ("", length) => bytes.saturating_sub(number(length)?)..bytes,
        (first, "") => number(first)?..bytes,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..bytes.min(last.saturating_add(1))
        }
    };
    (range.start < range.end).then_some(range)
}

/// A decimal number; one that does not fit is as good as the largest that does.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Streams a range in chunks. An error midway breaks the connection off, so that a client never
/// takes a part for the whole.
fn read_range(file: Arc<File>, range: Range<u64>) -> Body {
    Body::from_stream(stream::try_unfold((file, range), async |(file, range)| {
        if range.is_empty() {
            return io::Result::Ok(None);
        }
        let length = CHUNK_BYTES.min(range.end - range.start);
        let (reader, start) = (file.clone(), range.start);
        let read = move || {
            let mut chunk = vec![0; length as usize];
            reader.read_exact_at(&mut chunk, start).map(|()| Bytes::from(chunk))
        };
        let chunk = tokio::task::spawn_blocking(read).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        let chunk =
            chunk.inspect_err(|error| tracing::error!(start, length, %error, "cannot read a file"))?;
        Ok(Some((chunk, (file, start + length..range.end))))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_rfc() {
        let parse = |text| parse_range(text, 10);
        assert_eq!(parse("0-0"), Some(0..1));
        assert_eq!(parse("2-5"), Some(2..6));
        assert_eq!(parse("9-9"), Some(9..10));
        assert_eq!(parse("5-100"), Some(5..10));
        assert_eq!(parse("5-99999999999999999999999"), Some(5..10));
        assert_eq!(parse("4-"), Some(4..10));
        assert_eq!(parse("-3"), Some(7..10));
        assert_eq!(parse("-100"), Some(0..10));
        for bad in ["10-", "10-12", "-0", "-", "", "5", "5-4", "a-b", "+1-2", "1-2-3", " 1-2", "-1-"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse_range("0-", 0), None);
    }
}
