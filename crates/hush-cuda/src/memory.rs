//! Words in device memory.

use std::borrow::Cow;

use hush_ops::{
    OpsError,
    contract::{Memory, WordRange, WordStore},
};

use crate::{
    Cuda,
    device::{Buffer, CudaError},
};

impl WordStore for Buffer<u32> {
    fn len(&self) -> usize {
        Buffer::len(self)
    }
}

impl Memory for Cuda {
    type Words = Buffer<u32>;

    fn keep(&self, words: Vec<u32>) -> Result<Buffer<u32>, OpsError> {
        Ok(self.device().upload(&words)?)
    }

    fn read<'a>(&self, words: &'a Buffer<u32>) -> Result<Cow<'a, [u32]>, OpsError> {
        Ok(Cow::Owned(self.device().download(&words.slice(..))?))
    }

    fn copy_from(&self, peer: &Self, words: &Buffer<u32>) -> Result<Buffer<u32>, OpsError> {
        let copy = self.device().alloc(words.len())?;
        self.device().copy_from(peer.device(), &words.slice(..), &copy.slice(..))?;
        Ok(copy)
    }

    fn run_join(&self, parts: &[WordRange<'_, Buffer<u32>>]) -> Result<Buffer<u32>, OpsError> {
        let joined = self.device().alloc(parts.iter().map(|(_, range)| range.len()).sum())?;
        let mut at = 0;
        for (words, range) in parts {
            self.device().copy(&words.slice(range.clone()), &joined.slice(at..at + range.len()))?;
            at += range.len();
        }
        Ok(joined)
    }
}

impl From<CudaError> for OpsError {
    fn from(error: CudaError) -> Self {
        OpsError::Backend { reason: error.to_string() }
    }
}
