//! A share of a table on the backend of its device.

use std::{any::Any, sync::Arc};

use hush_cpu::Cpu;
use hush_ops::{contract::Steps, path::Footprint};
use hush_protocol::share::Share;

use crate::OpenError;

/// A share that is to be opened on a backend.
pub(crate) struct ShareToOpen<B> {
    pub(crate) share: Share,
    pub(crate) backend: Arc<B>,
    /// The memory that the device keeps for the table, held as long as it.
    pub(crate) kept: Option<KeptForTable>,
}

impl<B> ShareToOpen<B> {
    /// Creates a share on a backend that keeps no memory for it.
    pub(crate) fn new(share: Share, backend: Arc<B>) -> Self {
        Self { share, backend, kept: None }
    }
}

/// The memory that a device keeps for a table until this is dropped.
pub(crate) type KeptForTable = Box<dyn Any + Send + Sync>;

/// The opening of a table, or of a part of it, on the devices of its placement, whatever their backend.
pub(crate) trait OpenOn {
    /// Whether answers are finished here, too.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "emulator")),
        expect(dead_code, reason = "only the memory of GPUs is planned")
    )]
    const FINISHES: bool;
    /// The opened table or part.
    type Output;

    /// Opens the shares of a placement, at least one. A scan answers at most `max_batch` queries.
    fn on<B: Hosting>(self, shares: Vec<ShareToOpen<B>>, max_batch: usize)
    -> Result<Self::Output, OpenError>;
}

/// A backend that tables are hosted on.
pub(crate) trait Hosting: Steps<Keys: 'static> + Footprint + 'static {
    /// Returns the reason why the backend does nothing any more; `None` as long as all is well.
    fn lost(&self) -> Option<String>;
}

impl Hosting for Cpu {
    fn lost(&self) -> Option<String> {
        None
    }
}
