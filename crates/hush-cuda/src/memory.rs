//! Words in device memory.

use std::borrow::Cow;

use hush_ops::{
    OpsError,
    contract::{Memory, WordCopy, WordRange, WordStore},
};

use crate::{
    Cuda,
    device::{Buffer, CudaError, Device, PeerCopy},
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

    fn zeros(&self, len: usize) -> Result<Buffer<u32>, OpsError> {
        Ok(self.device().zeroed(len)?)
    }

    fn read<'a>(&self, words: &'a Buffer<u32>) -> Result<Cow<'a, [u32]>, OpsError> {
        Ok(Cow::Owned(self.device().download(&words.slice(..))?))
    }

    fn are_linked(memories: &[&Self]) -> bool {
        Device::are_linked(&memories.iter().map(|cuda| cuda.device()).collect::<Vec<_>>())
    }

    fn run_exchange(
        memories: &[&Self],
        copies: &[WordCopy<'_, Buffer<u32>>],
    ) -> Result<Vec<Buffer<u32>>, OpsError> {
        let devices: Vec<_> = memories.iter().map(|cuda| cuda.device()).collect();
        let copied = copies
            .iter()
            .map(|copy: &WordCopy<'_, _>| devices[copy.to].alloc(copy.range.len()))
            .collect::<Result<Vec<_>, _>>()?;
        let copies = copies.iter().zip(&copied).map(|(copy, copied)| PeerCopy {
            from: (devices[copy.from], copy.words.slice(copy.range.clone())),
            to: (devices[copy.to], copied.slice(..)),
        });
        Device::exchange(&copies.collect::<Vec<_>>())?;
        Ok(copied)
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
