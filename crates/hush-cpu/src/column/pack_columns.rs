//! Step (3c), pack: the pack columns meet the rotation keys, and the digits of the chain meet the conjugation keys.
//!
//! ```text
//! folded += pack columns . key words                              (an lwe_fold)
//! for every plaintext: its words += round(digit z 2^32 / Q)       (z: the query's conjugation key)
//! ```

use hush_math::poly::{Coeff, Poly};
use hush_ops::{
    contract::{LweBatch, LweQueries},
    steps::poly_bytes,
    tiling::TiledDb,
};
use rayon::prelude::*;

use super::CpuChain;
use crate::{
    Cpu, CpuRing, lwe_fold,
    ring::{self, ModRing, PowerSwitch},
    workspace::Workspace,
};

/// Computes [`hush_ops::contract::ColumnOps::pack_columns`] for operands that fit together. `folded` becomes the result.
pub(super) fn pack_columns(
    cpu: &Cpu,
    ring: &CpuRing,
    columns: &TiledDb,
    chain: &CpuChain,
    folded: &mut LweBatch,
    keys: &LweQueries,
    conjugations: &[&Poly<Coeff>],
) {
    lwe_fold::add_fold(cpu, columns, keys, &mut folded.words);
    let conjugations = transformed(cpu, &ring.kept, conjugations);
    let shape = chain.shape();
    let mut products = Vec::with_capacity(keys.batch() * shape.plaintexts());
    for (mut rest, z) in
        folded.words.chunks_exact_mut(shape.rows()).zip(conjugations.chunks_exact(ring.kept.words()))
    {
        for plaintext in 0..shape.plaintexts() {
            let (words, tail) = rest.split_at_mut(shape.plaintext_rows(plaintext).len());
            products.push(Product { digit: chain.digit(&ring.kept, plaintext), z, words });
            rest = tail;
        }
    }
    let switch = PowerSwitch::new(&ring.kept, ring.context().kept().rns(), u32::BITS);
    cpu.install(|| {
        products.into_par_iter().for_each(|product| {
            cpu.with_workspace(|workspace| product.add(&ring.kept, &switch, workspace));
        });
    });
}

/// Returns the polynomials in evaluation form, one after another.
pub(super) fn transformed(cpu: &Cpu, ring: &ModRing, polys: &[&Poly<Coeff>]) -> Vec<u32> {
    let mut words = vec![0; polys.len() * ring.words()];
    cpu.install(|| {
        words.par_chunks_exact_mut(ring.words()).zip(polys).for_each(|(words, poly)| {
            words.copy_from_slice(poly.words());
            cpu.with_workspace(|workspace| {
                let (_, transform) = workspace.ring_buffers(0, ring.transform_words());
                ring.forward(words, transform);
            });
        });
    });
    words
}

/// The product of a query's conjugation key and the digit of one plaintext, to be added to the plaintext's words.
struct Product<'a> {
    /// The digit of the plaintext, its words in Montgomery form.
    digit: &'a [u32],
    z: &'a [u32],
    /// The rows of the plaintext, at most N.
    words: &'a mut [u32],
}

impl Product<'_> {
    /// Computes `words += round(digit z 2^32 / Q)`.
    fn add(self, ring: &ModRing, switch: &PowerSwitch<'_>, workspace: &mut Workspace) {
        if self.words.is_empty() {
            return;
        }
        let (product, transform) = workspace.ring_buffers(ring.words(), ring.transform_words());
        ring::multiply(ring, self.z, self.digit, product);
        ring.inverse(product, transform);
        switch.add_to(ring, product, self.words);
    }
}

hush_ops::footprint!(Cpu: PackColumns, |step, batch| {
    let columns = step.columns;
    // Keys: words and polynomials, as received and as read. Results: a word a row.
    batch * (size_of::<u32>() * (columns.cols() + columns.rows()) + 8 * poly_bytes(&step.ring))
});
