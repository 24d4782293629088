//! The substitute for `gpu.rs` in programs without GPU support: there is no [`Gpu`].

use hush_protocol::any_page::TableParams;

use crate::{
    BackendError, OpenError, Progress,
    memory::plan::MemoryPlan,
    opening::OpenOn,
    placement::{Device, PlacedShare, Placement},
};

/// A type without values, as there is no GPU.
pub enum Gpu {}

impl Gpu {
    pub(crate) fn open_all() -> Result<Vec<Self>, BackendError> {
        Err(BackendError::NotBuilt)
    }

    pub(crate) fn device(&self) -> Device {
        match *self {}
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn is_lost(&self) -> bool {
        match *self {}
    }

    pub(crate) fn free_bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn plan(&self, _: &TableParams, _: &PlacedShare, _: bool, _: usize) -> MemoryPlan {
        match *self {}
    }

    /// Returns the plan as the device rounds it up.
    pub fn in_blocks(&self, _: MemoryPlan) -> MemoryPlan {
        match *self {}
    }
}

pub(crate) fn open_on<O: OpenOn>(
    _: &[&Gpu],
    _: &Placement,
    _: &TableParams,
    _: usize,
    _: O,
    _: &dyn Progress,
) -> Result<O::Output, OpenError> {
    Err(hush_ops::OpsError::Backend { reason: BackendError::NotBuilt.to_string() }.into())
}
