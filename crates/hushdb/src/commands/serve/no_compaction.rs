//! In programs that do not build tables.

use std::path::Path;

use hush_server::Upkeep;

/// There is none.
pub(super) struct Compaction;

impl Compaction {
    pub(super) fn new(_: Option<u64>, _: usize, _: &Upkeep) -> Self {
        Self
    }

    pub(super) fn look(&self, _: &Path, _: &str, _: [u8; 32]) {}

    pub(super) fn begin(&self, _: &Path, _: &str) -> Result<(), String> {
        Err("this program makes no tables".into())
    }

    pub(super) async fn done(&self) {
        std::future::pending().await
    }
}
