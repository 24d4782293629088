//! The hint: download, resumption, check.

use std::time::Duration;

use hush_protocol::{Code, descriptor::BlobRef};

use super::{
    CachedHint, CheckedHint, Event, Head, Hint, Need, PartialHint, SessionError,
    requests::link::{Link, Retries},
};

const PARTIAL_CONTENT: u16 = 206;
/// The time for which an interrupted download is continued, in addition to the time of its bytes at [`LEAST_RATE`].
const PATIENCE: Duration = Duration::from_secs(3600);
/// A rate in bytes per second.
const LEAST_RATE: u64 = 4 << 10;

/// Returns the hint `blob`, from the cache or from the server. Adds the bytes from the network to `received`.
pub(super) async fn obtain(link: &Link, blob: &BlobRef, received: &mut u64) -> Result<Hint, SessionError> {
    link.ready(Need::Hint(blob)).await;
    let mut part = match link.host().hint(blob).map_err(SessionError::Cache)? {
        CachedHint::Whole(hint) => return Ok(hint.into_hint()),
        CachedHint::Part(part) => part,
    };
    match (HintDownload { link, blob, part: &mut *part, received }).verified().await {
        Ok(hint) => {
            part.keep().map_err(SessionError::Cache)?;
            Ok(hint.into_hint())
        }
        Err(SessionError::HintMismatch) => {
            part.discard().map_err(SessionError::Cache)?;
            Err(SessionError::HintMismatch)
        }
        Err(error) => Err(error),
    }
}

/// A download in progress.
struct HintDownload<'a> {
    link: &'a Link,
    blob: &'a BlobRef,
    /// The part of the hint that is present.
    part: &'a mut dyn PartialHint,
    received: &'a mut u64,
}

impl HintDownload<'_> {
    /// Completes the hint and checks it. If the bytes of an earlier download turn out to be wrong, downloads the whole hint.
    async fn verified(&mut self) -> Result<CheckedHint, SessionError> {
        let resumed = self.present()? > 0;
        self.complete().await?;
        if let Some(hint) = self.check()? {
            return Ok(hint);
        }
        if resumed {
            self.clear()?;
            self.complete().await?;
            if let Some(hint) = self.check()? {
                return Ok(hint);
            }
        }
        Err(SessionError::HintMismatch)
    }

    fn check(&self) -> Result<Option<CheckedHint>, SessionError> {
        let hint = CheckedHint::new(self.part.read().map_err(SessionError::Cache)?, self.blob);
        if hint.is_some() {
            self.link.report(&Event::HintEnd);
        }
        Ok(hint)
    }

    /// Downloads the missing bytes. The attempts are counted from 0 again whenever there are more bytes than ever before.
    /// So a server that sends the same bytes again and again is not asked forever. [`PATIENCE`] limits a server that sends
    /// a few bytes each time.
    async fn complete(&mut self) -> Result<(), SessionError> {
        if self.present()? > self.blob.bytes {
            self.clear()?;
        }
        let begun = self.link.host().now();
        let mut furthest = self.present()?;
        let mut retries = Retries::default();
        loop {
            let error = match self.attempt().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let present = self.present()?;
            if present > furthest {
                furthest = present;
                retries = Retries::default();
            }
            let longest = PATIENCE + Duration::from_secs(furthest / LEAST_RATE);
            if self.link.host().now().saturating_sub(begun) > longest {
                return Err(error);
            }
            retries.after(self.link, error).await?;
        }
    }

    /// Downloads the missing bytes, in one request.
    async fn attempt(&mut self) -> Result<(), SessionError> {
        let present = self.present()?;
        if present == self.blob.bytes {
            return Ok(());
        }
        self.link.report(&Event::HintStart { bytes: self.blob.bytes, present });
        let hash = hex::encode(self.blob.blake3);
        let path = format!("/v1/blobs/{hash}");
        let etag = format!("\"{hash}\"");
        let head = match self.link.get_file(&path, &etag, present, self.blob.bytes).await {
            Err(SessionError::Refused(refusal)) if refusal.code == Code::RangeNotSatisfiable => {
                self.clear()?;
                return Err(self.interrupted(0, refusal.detail));
            }
            outcome => outcome?,
        };
        if !self.is_rest(&head, present) {
            self.clear()?; // The server sends all of it.
        }
        self.receive(&head).await
    }

    /// Returns whether the response has the bytes of the hint from `present` to its end.
    fn is_rest(&self, head: &Head, present: u64) -> bool {
        let expected = format!("bytes {present}-{}/{}", self.blob.bytes - 1, self.blob.bytes);
        head.status == PARTIAL_CONTENT && head.header("content-range") == Some(&expected)
    }

    /// Appends a body, which must end where the hint ends.
    async fn receive(&mut self, head: &Head) -> Result<(), SessionError> {
        let mut present = self.present()?;
        if head.body_bytes.is_some_and(|bytes| bytes != self.blob.bytes - present) {
            return Err(SessionError::HintMismatch);
        }
        loop {
            let bytes = match self.link.body_part().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) if present == self.blob.bytes => return Ok(()),
                Ok(None) => return Err(self.interrupted(present, "the server closed the connection".into())),
                Err(failure) => return Err(self.interrupted(present, failure.to_string())),
            };
            if bytes.len() as u64 > self.blob.bytes - present {
                return Err(SessionError::HintMismatch);
            }
            self.part.append(&bytes).map_err(SessionError::Cache)?;
            present += bytes.len() as u64;
            *self.received += bytes.len() as u64;
            self.link.report(&Event::HintProgress { present });
        }
    }

    fn present(&self) -> Result<u64, SessionError> {
        self.part.present().map_err(SessionError::Cache)
    }

    fn clear(&mut self) -> Result<(), SessionError> {
        self.link.report(&Event::HintProgress { present: 0 });
        self.part.clear().map_err(SessionError::Cache)
    }

    fn interrupted(&self, present: u64, reason: String) -> SessionError {
        SessionError::Interrupted { present, bytes: self.blob.bytes, reason }
    }
}
