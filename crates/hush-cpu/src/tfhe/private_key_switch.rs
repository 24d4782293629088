//! Private key switching of TLWE words to RLWE ciphertexts.
//!
//! ```text
//! row = sum_k digit_k key_k + constant(body) mod Q_e, then dropped to Q_1       (digits of the masks of one TLWE word)
//! ```

use hush_he::entities::TlweWords;
use hush_ops::{
    contract::{Expanded, RLWE_POLYS, RlweBatch},
    steps::poly_bytes,
};
use rayon::prelude::*;

use super::row_sums::{ROWS, most_rows, multiply_rows_by_words, reduce};
use crate::{
    Cpu, buffer,
    ring::{CpuKeys, CpuRing},
    workspace::Workspace,
};

/// Computes [`hush_ops::contract::TfheOps::private_key_switch`] for one query and operands that fit together. Runs in parallel over
/// rows.
pub(super) fn private_key_switch(
    cpu: &Cpu,
    ring: &CpuRing,
    keys: &CpuKeys,
    query: &TlweWords,
    rows: usize,
) -> Expanded {
    let digits = ring.context().params().fold_gadget().digits;
    let ciphertext_words = RLWE_POLYS * ring.kept.words();
    let leaves = query.bodies.len();
    // The rows are selectors, then of every fold bottom rows and top rows.
    let places: Vec<(usize, bool)> = (0..rows)
        .map(|leaf| (leaf, false))
        .chain((rows..leaves).step_by(digits).flat_map(|first| {
            [true, false]
                .into_iter()
                .flat_map(move |is_bottom| (first..first + digits).map(move |leaf| (leaf, is_bottom)))
        }))
        .collect();
    let mut words = buffer::zeroed_vec(places.len() * ciphertext_words);
    cpu.install(|| {
        let out = words.par_chunks_exact_mut(ciphertext_words).zip(&places).with_max_len(1);
        out.for_each(|(out, &(leaf, is_bottom))| {
            cpu.with_workspace(|workspace| row(ring, keys, query, leaf, is_bottom, out, workspace));
        });
    });
    let batch = |words: &[u32]| RlweBatch { ciphertext_words, words: words.to_vec().into() };
    let (selectors, bits) = words.split_at(rows * ciphertext_words);
    Expanded {
        selectors: batch(selectors),
        bits: bits.chunks_exact(2 * digits * ciphertext_words).map(batch).collect(),
    }
}

/// Computes a row modulo Q_e and drops it to modulo Q_1.
fn row(
    ring: &CpuRing,
    keys: &CpuKeys,
    query: &TlweWords,
    leaf: usize,
    is_bottom: bool,
    out: &mut [u32],
    workspace: &mut Workspace,
) {
    let full = &ring.full;
    let tlwe = ring.context().params().tlwe().expect("a set of TLWE words");
    let [bottom, top] = keys.private().expect("keys of the set");
    let key = if is_bottom { bottom } else { top };
    let degree = full.degree();
    let masks = &query.masks[leaf * tlwe.n()..][..tlwe.n()];
    let (buffer, transform) =
        workspace.ring_buffers(2 * degree + RLWE_POLYS * full.words() + 2 * degree, full.transform_words());
    let (sums, buffer) = buffer.split_at_mut(2 * degree);
    let (switched, scratch) = buffer.split_at_mut(RLWE_POLYS * full.words());
    switched.fill(0);
    for (l, limb) in full.limbs().iter().enumerate() {
        let p = limb.ntt.plan().modulus();
        let digits: Vec<u32> =
            masks.iter().flat_map(|&word| tlwe.digits(word)).map(|digit| p.reduce_signed(digit)).collect();
        let at_once = most_rows(p.bits()).min(tlwe.key_rows().next_multiple_of(ROWS));
        for poly in 0..RLWE_POLYS {
            let out = &mut switched[poly * full.words() + l * degree..][..degree];
            sums.fill(0);
            for (keys, digits) in key.chunks(at_once).zip(digits.chunks(at_once)) {
                for (keys, digits) in keys.chunks(ROWS).zip(digits.chunks(ROWS)) {
                    let mut of_rows = [&[][..]; ROWS];
                    for (slot, key) in of_rows.iter_mut().zip(keys) {
                        *slot = &[&key.a, &key.b][poly].words()[l * degree..][..degree];
                    }
                    multiply_rows_by_words(full.level(), &of_rows[..keys.len()], digits, sums);
                }
                reduce(full.level(), limb.montgomery, sums, out);
            }
        }
        let constant = tlwe.constant(ring.context().full(), query.bodies[leaf], l);
        let body = usize::from(!is_bottom);
        let body = &mut switched[body * full.words() + l * degree..][..degree];
        body.iter_mut().for_each(|word| *word = p.add(*word, constant));
    }
    let halves = switched.chunks_exact(full.words()).zip(out.chunks_exact_mut(ring.kept.words()));
    for (from, to) in halves {
        ring.drop_to_kept(from, to, scratch, transform);
    }
}

hush_ops::footprint!(Cpu: PrivateKeySwitch, |step, batch| {
    // Counted twice: as they are made, and as copies. Selectors are counted with the database that they meet.
    2 * batch * step.folds * 4 * step.ring.fold_gadget().digits * poly_bytes(&step.ring)
});
