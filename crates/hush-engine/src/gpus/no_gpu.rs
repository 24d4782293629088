//! In place of `gpu.rs` in programs without GPU support: there is no [`Gpu`].

use std::sync::Arc;

use hush_protocol::{any_page::TableParams, share::Share};

use crate::{
    BackendError, Engine, OpenError, Progress,
    hosted::Stored,
    memory::plan::MemoryPlan,
    parts::{PartEngine, PartToOpen},
};
/// No GPU.
pub enum Gpu {}

impl Gpu {
    pub(crate) fn open_all() -> Result<Vec<Self>, BackendError> {
        Err(BackendError::NotBuilt)
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

    pub(crate) fn serving_plan(&self, _: &TableParams, _: usize) -> MemoryPlan {
        match *self {}
    }

    pub(crate) fn streaming_plan(&self, _: &TableParams, _: usize) -> MemoryPlan {
        match *self {}
    }

    pub(crate) fn serving_part_plan(&self, _: &TableParams, _: &Share, _: usize) -> MemoryPlan {
        match *self {}
    }

    pub(crate) fn scanning_plan(&self, _: &TableParams, _: &Share, _: usize) -> MemoryPlan {
        match *self {}
    }

    pub(crate) fn open_part(
        &self,
        _: PartToOpen<'_>,
        _: &MemoryPlan,
        _: usize,
    ) -> Result<Arc<dyn PartEngine>, OpenError> {
        match *self {}
    }

    /// Returns the plan as the device rounds it up.
    pub fn in_blocks(&self, _: MemoryPlan) -> MemoryPlan {
        match *self {}
    }

    pub(crate) fn host(
        &self,
        _: Stored,
        _: &MemoryPlan,
        _: usize,
        _: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        match *self {}
    }

    pub(crate) fn host_streaming(
        &self,
        _: Stored,
        _: &MemoryPlan,
        _: usize,
        _: &dyn Progress,
    ) -> Result<Arc<dyn Engine>, OpenError> {
        match *self {}
    }
}
