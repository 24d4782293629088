//! `GET /v1/blobs/{hash}`: public files such as hints, whole or in part, named by their content.

mod range;

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Path, State, rejection::PathRejection},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
        },
    },
    response::{IntoResponse, Response},
};
use futures_util::stream;
use hush_engine::Blob;

use self::range::Outside;
use super::is_not_modified;
use crate::{
    problem::{Code, Problem},
    state::Server,
};

/// The bytes that are read from the file at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// Returns a public file that a descriptor names, or one range of it.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/blobs/{hash}", operation_id = "getBlob",
    responses((status = 200, description = "The file.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The range that was asked for.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "It is still the same."))))]
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

/// Returns the file whose hash a path names. Fails with `not_found`, or with `warming` while a table is loading.
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

/// Returns the part of a file that the headers ask for; `None` for all of it. Fails with `range_not_satisfiable` if nothing of
/// the range is inside the file.
fn wanted_range(headers: &HeaderMap, etag: &str, bytes: u64) -> Result<Option<Range<u64>>, Problem> {
    let value = |name| headers.get(name).map(HeaderValue::as_bytes);
    range::wanted(value(RANGE), value(IF_RANGE), etag, bytes).map_err(|Outside| Problem::range(bytes))
}

/// Streams a range in chunks. An error midway breaks the connection off, so that no client takes a part for the whole.
fn read_range(file: Arc<File>, range: Range<u64>) -> Body {
    Body::from_stream(stream::try_unfold((file, range), async |(file, range)| {
        if range.is_empty() {
            return io::Result::Ok(None);
        }
        let length = CHUNK_BYTES.min(range.end - range.start);
        let reader = file.clone();
        let start = range.start;
        let read = move || {
            let mut chunk = vec![0; length as usize];
            reader.read_exact_at(&mut chunk, start).map(|()| Bytes::from(chunk))
        };
        let chunk = tokio::task::spawn_blocking(read).await.unwrap_or_else(|e| Err(io::Error::other(e)));
        let chunk = chunk.inspect_err(
            |error| tracing::error!(start, length, %error, "cannot read a public file of a table"),
        )?;
        Ok(Some((chunk, (file, start + length..range.end))))
    }))
}
