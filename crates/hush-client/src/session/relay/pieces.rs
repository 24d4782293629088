//! A file through a relay. It is requested in pieces, because a sealed response is whole in memory on both sides.

use hush_protocol::ohttp::PIECE_BYTES;

use crate::session::{Head, Method, Request};

/// The progress of a file that is requested piece by piece.
pub(super) struct Pieces {
    /// The start of the next piece, in bytes.
    from: u64,
    /// The end of the file, in bytes. `None` before the first response.
    end: Option<u64>,
    /// Whether only the rest of the file was requested.
    is_rest: bool,
}

impl Pieces {
    /// Returns the pieces of a request for a file, or `None` if the request is not for a file.
    pub(super) fn of(request: &Request) -> Option<Pieces> {
        let is_file = request.method == Method::Get && request.path.starts_with("/v1/blobs/");
        let range = request.headers.iter().find(|(name, _)| *name == "range");
        let from = range.and_then(|(_, range)| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
        is_file.then_some(Pieces { from: from.unwrap_or(0), end: None, is_rest: range.is_some() })
    }

    /// Changes a request to one for the next piece.
    pub(super) fn ask(&self, request: &mut Request) {
        let range = format!("bytes={}-{}", self.from, self.from + (PIECE_BYTES - 1));
        request.headers.retain(|(name, _)| *name != "range");
        request.headers.push(("range", range));
    }

    /// Takes a response with `bytes` bytes. If it is the next piece, returns the head that a response with all remaining
    /// bytes would have. Otherwise returns `None`.
    pub(super) fn received(&mut self, head: &Head, bytes: usize) -> Option<Head> {
        let text = head.header("content-range")?;
        let (range, end) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, end): (u64, u64, u64) =
            (first.parse().ok()?, last.parse().ok()?, end.parse().ok()?);
        let is_next = head.status == 206
            && first == self.from
            && bytes > 0
            && last.checked_sub(first)? == bytes as u64 - 1
            && last < end
            && self.end.is_none_or(|known| known == end);
        if !is_next {
            return None;
        }
        let mut whole = Head { status: 200, headers: Vec::new(), body_bytes: Some(end - first) };
        if self.is_rest {
            whole.status = 206;
            whole.headers = vec![("content-range".into(), format!("bytes {first}-{}/{end}", end - 1))];
        }
        (self.from, self.end) = (last + 1, Some(end));
        Some(whole)
    }

    /// Returns whether all pieces were received.
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.from >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: Vec<(&'static str, String)>) -> Request {
        let path = "/v1/blobs/00".to_owned();
        let body = Vec::new();
        let is_last = false;
        Request { method: Method::Get, path, headers, body, max_response_bytes: 1, is_last, time_left: None }
    }

    fn part(range: &str) -> Head {
        Head { status: 206, headers: vec![("Content-Range".into(), range.into())], body_bytes: None }
    }

    #[test]
    fn a_file_is_asked_for_in_pieces() {
        let mut asked = request(Vec::new());
        let mut pieces = Pieces::of(&asked).unwrap();
        pieces.ask(&mut asked);
        assert_eq!(asked.headers, [("range", "bytes=0-4194303".into())]);
        let whole = pieces.received(&part("bytes 0-4194303/4194305"), 4_194_304).unwrap();
        assert_eq!((whole.status, whole.body_bytes, pieces.is_done()), (200, Some(4_194_305), false));
        pieces.ask(&mut asked);
        assert_eq!(asked.headers, [("range", "bytes=4194304-8388607".into())]);
        assert!(pieces.received(&part("bytes 4194304-4194304/4194305"), 1).is_some() && pieces.is_done());
    }

    #[test]
    fn the_rest_of_a_file_is_a_rest() {
        let headers = vec![("range", "bytes=7-".to_owned()), ("if-range", "\"00\"".to_owned())];
        let mut asked = request(headers);
        let mut pieces = Pieces::of(&asked).unwrap();
        pieces.ask(&mut asked);
        assert_eq!(asked.headers, [("if-range", "\"00\"".into()), ("range", "bytes=7-4194310".into())]);
        let rest = pieces.received(&part("bytes 7-9/10"), 3).unwrap();
        assert_eq!((rest.status, rest.header("content-range")), (206, Some("bytes 7-9/10")));
        assert!(pieces.is_done());
        let mut pieces = Pieces::of(&request(vec![("range", "bytes=7-".to_owned())])).unwrap();
        let rest = pieces.received(&part("bytes 7-9/20"), 3).unwrap();
        assert_eq!((rest.header("content-range"), rest.body_bytes), (Some("bytes 7-19/20"), Some(13)));
    }

    #[test]
    fn what_is_not_the_next_piece_is_none() {
        for (range, bytes) in [
            ("bytes 1-3/10", 3),
            ("bytes 0-3/10", 3),
            ("bytes 0-9/9", 10),
            ("bytes 3-0/10", 0),
            ("bytes 0-0/10", 0),
            ("bytes 0-/10", 1),
            ("0-3/10", 4),
            ("bytes 0-18446744073709551615/0", 1),
        ] {
            let mut pieces = Pieces::of(&request(Vec::new())).unwrap();
            assert!(pieces.received(&part(range), bytes).is_none(), "{range}");
        }
        let mut pieces = Pieces::of(&request(Vec::new())).unwrap();
        assert!(pieces.received(&Head { status: 200, ..Head::default() }, 3).is_none());
        assert!(pieces.received(&part("bytes 0-0/10"), 1).is_some());
        assert!(pieces.received(&part("bytes 1-1/11"), 1).is_none(), "another file");
    }
}
