//! The step `send_words`: the words of an answer are rounded and packed.

use hush_ops::contract::{self, LweBatch, Rounding};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    Cuda,
    device::{Arg, Buffer, CudaError, Device, Launch, MAX_GRID},
};

/// The threads of a block.
const THREADS: u32 = 256;

/// The struct `SentRows` of `kernels/send_words.cu`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
struct SentRows {
    first: u64,
    count: u64,
    offset: u64,
    bits: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<SentRows>() == 32);

/// Runs [`hush_ops::contract::LweOps::send_words`] for checked rows: one launch, and one download.
pub(super) fn send_words(
    device: &Device,
    words: &LweBatch<Buffer<u32>>,
    sent: &[contract::SentRows],
    rounding: Rounding,
) -> Result<Vec<Vec<u8>>, CudaError> {
    let queries = words.batch();
    let mut answer_bytes = 0;
    let pieces = sent.iter().map(|sent| {
        let offset = answer_bytes as u64;
        answer_bytes += sent.bytes();
        let first = sent.rows.start as u64;
        let count = sent.rows.len() as u64;
        SentRows { first, count, offset, bits: sent.bits, reserved: 0 }
    });
    let pieces = device.upload(&pieces.collect::<Vec<_>>())?;
    let out = device.alloc::<u8>(queries * answer_bytes)?;
    // A thread writes a word of the longest piece, which may begin and end within a word.
    let longest = sent.iter().map(contract::SentRows::bytes).max().unwrap_or(0);
    let blocks = Launch::cover(longest.div_ceil(size_of::<u32>()) + 1, THREADS).grid[0];
    let [_, most_pieces, most_queries] = MAX_GRID;
    let grid = [blocks, sent.len().min(most_pieces) as u32, queries.min(most_queries) as u32];
    let args: [Arg<'_>; 8] = [
        (&out).into(),
        (&words.words).into(),
        (&pieces).into(),
        (words.rows as u64).into(),
        (answer_bytes as u64).into(),
        (sent.len() as u32).into(),
        (queries as u32).into(),
        u32::from(rounding == Rounding::HalfUp).into(),
    ];
    device.launch("send_words", Launch::grid(grid, THREADS), &args)?;
    device.download_rows(&out.slice(..), queries)
}

hush_ops::footprint!(Cuda: SendWords, |step, batch| {
    // The input words are in memory anyway.
    batch * step.bytes
});
