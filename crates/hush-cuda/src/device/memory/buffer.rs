//! Owned device memory.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
    sync::Arc,
};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::pool::Pool;
use crate::device::{
    id::DeviceId,
    launch::{Arg, Memory},
};

/// A type for values in device memory: any bits are a value, and there is no padding.
pub trait Word: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Word for T {}

/// Device memory for `len` values. Dropping it returns the memory to the device's pool. Work that was queued before may still use
/// it, since all work of a device runs in order.
pub struct Buffer<T: Word> {
    pool: Arc<Pool>,
    address: u64,
    bytes: usize,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Word> Buffer<T> {
    /// Creates a buffer from `bytes` bytes of memory at `address`, of which `len` values are used.
    pub(in crate::device) fn new(pool: Arc<Pool>, address: u64, bytes: usize, len: usize) -> Self {
        Self { pool, address, bytes, len, kind: PhantomData }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a part of the buffer.
    ///
    /// # Panics
    /// If the range is not within the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Slice<'_, T> {
        let device = self.pool.device();
        Slice { device, address: self.address, len: self.len, memory: PhantomData }.slice(range)
    }
}

impl<T: Word> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.pool.give_back(self.address, self.bytes);
    }
}

impl<T: Word> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} values)", self.len)
    }
}

/// A part of a [`Buffer`]. Kernels may read and write it, in the order of their launches.
pub struct Slice<'a, T: Word> {
    device: DeviceId,
    address: u64,
    len: usize,
    memory: PhantomData<&'a T>,
}

impl<T: Word> Slice<'_, T> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the slice has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device of the memory.
    pub(in crate::device) fn device(&self) -> DeviceId {
        self.device
    }

    /// Returns the address of the slice on the device. Code that passes the address to a kernel other than as an argument uses
    /// [`Device::address`] instead, which checks the device.
    ///
    /// [`Device::address`]: crate::device::Device::address
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns a part of the slice.
    ///
    /// # Panics
    /// If the range is not within the slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end + 1,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        assert!(start <= end && end <= self.len, "{start}..{end} of {}", self.len);
        Self {
            device: self.device,
            address: self.address + (start * size_of::<T>()) as u64,
            len: end - start,
            memory: PhantomData,
        }
    }

    /// Returns the number of bytes.
    pub(in crate::device) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<'a> Slice<'a, u8> {
    /// Returns the bytes as words.
    ///
    /// # Panics
    /// If the bytes are not whole, aligned words.
    pub fn words(&self) -> Slice<'a, u32> {
        assert!(self.len.is_multiple_of(4) && self.address.is_multiple_of(4));
        Slice { device: self.device, address: self.address, len: self.len / 4, memory: PhantomData }
    }
}

impl<T: Word> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Word> Copy for Slice<'_, T> {}

impl Arg<'_> {
    /// Records that a structure points into `memory`, so that a launch on another device is refused.
    pub fn pointing_into<T: Word>(self, memory: &Slice<'_, T>) -> Self {
        match self {
            Self::Bytes(bytes) => Self::View(bytes, Memory(memory.device())),
            other => other,
        }
    }
}

impl<T: Word> From<&Buffer<T>> for Arg<'_> {
    fn from(buffer: &Buffer<T>) -> Self {
        buffer.slice(..).into()
    }
}

impl<T: Word> From<&Slice<'_, T>> for Arg<'_> {
    fn from(slice: &Slice<'_, T>) -> Self {
        Self::Pointer(slice.address(), Memory(slice.device()))
    }
}

impl<T: Word> From<Slice<'_, T>> for Arg<'_> {
    fn from(slice: Slice<'_, T>) -> Self {
        (&slice).into()
    }
}
