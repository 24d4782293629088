//! Rounds the words of an answer and packs them.

use std::slice;

use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{LweBatch, LweOps, Rounding, SentRows},
    reference::Reference,
};

use super::Kept;

/// Queries and rows: a row, less than a byte, more than parts of threads and blocks.
const SENT_SHAPES: [(usize, usize); 4] = [(1, 1), (3, 7), (2, 300), (2, 40_000)];

/// Checks `backend.send_words` against the reference: every width, halves and extremes, pieces that begin anywhere in a word.
pub fn send_words<B: LweOps>(backend: &B) {
    for (queries, rows) in SENT_SHAPES {
        // All widths take long where there are many rows.
        let widths: &[u32] = if rows < 1000 { &EVERY_WIDTH } else { &[1, 11, 32] };
        for &bits in widths {
            for rounding in [Rounding::HalfEven, Rounding::HalfUp] {
                let sent = pieces(rows, bits);
                let words = LweBatch { rows, words: words(queries * rows, bits).into() };
                let expected = Reference.send_words(&words, &sent, rounding).expect("the shapes fit");
                let actual = backend.send_words(&backend.kept_lwe(&words), &sent, rounding);
                assert!(
                    actual.expect("the shapes fit") == expected,
                    "send_words {queries} x {rows}, {bits} bits, {rounding:?}"
                );
            }
        }
    }
    refuses_wrong_shapes(backend);
}

const EVERY_WIDTH: [u32; 32] = {
    let mut widths = [0; 32];
    let mut bits = 0;
    while bits < 32 {
        widths[bits] = bits as u32 + 1;
        bits += 1;
    }
    widths
};

/// Returns all rows, none, those from the middle on at another width, and the first one, which is sent again.
fn pieces(rows: usize, bits: u32) -> [SentRows; 4] {
    let piece = |rows, bits| SentRows { rows, bits };
    [piece(0..rows, bits), piece(0..0, bits), piece(rows / 2..rows, 33 - bits), piece(0..1, bits)]
}

/// Random words; every third one is half way between two results, or one beside it, or an extreme.
fn words(count: usize, bits: u32) -> Vec<u32> {
    let mut words = vec![0; count];
    Csprng::insecure_from_seed(u64::from(bits)).fill_u32(&mut words);
    let half = (1u64 << (32 - bits) >> 1) as u32;
    for (index, word) in words.iter_mut().enumerate().step_by(3) {
        let kept = *word & !(2 * half).wrapping_sub(1);
        let edges = [0, u32::MAX, kept | half, (kept | half).wrapping_sub(1), (kept | half).wrapping_add(1)];
        *word = edges[index / 3 % edges.len()];
    }
    words
}

fn refuses_wrong_shapes<B: LweOps>(backend: &B) {
    let piece = |start, end, bits| SentRows { rows: start..end, bits };
    for (words, sent) in [
        (7, piece(0, 4, 8)),
        (8, piece(0, 5, 8)),
        (8, piece(3, 2, 8)),
        (8, piece(0, 4, 0)),
        (8, piece(0, 4, 33)),
    ] {
        let batch = LweBatch { rows: 4, words: backend.kept(&vec![0; words]) };
        let refused = backend.send_words(&batch, slice::from_ref(&sent), Rounding::HalfUp);
        assert!(matches!(refused, Err(OpsError::Shape { .. })), "{words} words, {sent:?}");
    }
}
