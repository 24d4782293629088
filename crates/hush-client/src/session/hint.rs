//! The hint: downloaded, resumed, verified.

use std::time::Duration;

use hush_protocol::{Code, descriptor::BlobRef};

use super::{
    CachedHint, CheckedHint, Event, Head, Hint, Need, PartialHint, SessionError,
    requests::link::{Link, Retries},
};

const PARTIAL_CONTENT: u16 = 206;
/// How long a download that breaks off goes on, beside the time that its bytes take at [`LEAST_RATE`].
const PATIENCE: Duration = Duration::from_secs(3600);
/// Bytes a second.
const LEAST_RATE: u64 = 4 << 10;

/// Returns the hint `blob`, from the cache or from the server; what comes over the network is added to `received`.
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

/// A download under way.
struct HintDownload<'a> {
    link: &'a Link,
    blob: &'a BlobRef,
    /// The part of the hint that is there.
    part: &'a mut dyn PartialHint,
    received: &'a mut u64,
}

impl HintDownload<'_> {
    /// Completes the hint and checks it. What an earlier download left behind is used if it is good.
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

    /// Downloads what is missing. Attempts are counted anew when there are more bytes than ever before, so that a server that sends
    /// the same bytes again and again is not asked for ever; nor is one that sends a few bytes each time, see [`PATIENCE`].
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

    /// Downloads what is missing, in one request.
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

    /// Returns whether the response is the rest of the hint from `present` on.
    fn is_rest(&self, head: &Head, present: u64) -> bool {
        let expected = format!("bytes {present}-{}/{}", self.blob.bytes - 1, self.blob.bytes);
        head.status == PARTIAL_CONTENT && head.header("content-range") == Some(&expected)
    }

    /// Adds a body that must end where the hint ends.
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
