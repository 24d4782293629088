//! Leaks that both tools must find, and the same work without a leak, in which they must find nothing.

use std::hint::black_box;

use hush_math::constant_time::{equal_bytes, equal_mask};

use super::cases::{Case, Secret};

/// The entries of the table: more than caches that are near the core hold.
const ENTRIES: usize = 1 << 22;
const TEXT_BYTES: usize = 4096;

/// Returns the planted leaks and their controls.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("planted: a table is read at a secret index", |_| {
            let table: Vec<u64> = (0..ENTRIES as u64).collect();
            move |secret: &Secret| {
                let index = secret.below(ENTRIES as u64) as usize;
                let word = black_box(&table).as_ptr().wrapping_add(index);
                Box::new(move || {
                    // SAFETY: the index is below the number of entries, and the table lives as long as the case.
                    black_box(unsafe { word.read_volatile() });
                })
            }
        })
        .planted(),
        Case::new("planted: a comparison stops at a secret byte", |_| {
            move |secret: &Secret| {
                let (text, other) = texts(secret);
                Box::new(move || {
                    black_box(text.iter().zip(&other).position(|(a, b)| black_box(a != b)));
                })
            }
        })
        .planted(),
        Case::new("control: a table is read whole under a mask", |_| {
            let table: Vec<u32> = (0..TEXT_BYTES as u32).collect();
            move |secret: &Secret| {
                let index = secret.below(TEXT_BYTES as u64) as u32;
                let table = table.clone();
                Box::new(move || {
                    black_box(
                        (0..).zip(&table).fold(0, |sum, (at, word)| sum | word & equal_mask(at, index)),
                    );
                })
            }
        }),
        Case::new("control: a comparison reads every byte", |_| {
            move |secret: &Secret| {
                let (text, other) = texts(secret);
                Box::new(move || {
                    black_box(equal_bytes(&text, &other));
                })
            }
        }),
    ]
}

/// Returns two texts that differ in one byte, of which the secret chooses the place.
fn texts(secret: &Secret) -> (Vec<u8>, Vec<u8>) {
    let place = secret.below(TEXT_BYTES as u64) as u32;
    (vec![0; TEXT_BYTES], (0..TEXT_BYTES as u32).map(|at| 1 & equal_mask(at, place) as u8).collect())
}
