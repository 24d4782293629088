//! Folds of as many entries as there are powers of X: exact bytes, and noise as `ColumnNoise` predicts it. The steps
//! before are left out: masks are the chain's polynomials, and a client that knows them makes the words that are
//! folded.

#![allow(clippy::print_stdout)]

use hush_cpu::Cpu;
use hush_he::{
    algorithms::{encrypt_column_query, open_column_keys},
    entities::{MatrixDomain, OneTimeRingSecret, PublicMatrix},
    params::{COLPACK_N2048_Q52, ColumnNoise, ColumnParams, INSECURE_COLPACK_N256},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::{
    contract::{ChainPolys, ColumnOps, LweBatch, PowerKeys, RingOps, lift_words},
    pack_shape::PackShape,
};
use hush_protocol::column_page::ColumnRing;
use rayon::prelude::*;

use super::{centred, std};
use crate::support::PUBLIC_SEED;

/// How far a standard deviation may be off its formula.
const OFF: f64 = 1.15;

/// The masks and bytes of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entries {
    Random,
    /// Every 101st random, the others zero: what a table with a few hints holds.
    Sparse,
    /// All the same: of the spectrum there is the constant term alone.
    Equal,
}

impl Entries {
    /// Returns whether there is anything in an entry.
    fn holds(self, entry: usize) -> bool {
        self != Self::Sparse || entry.is_multiple_of(101)
    }
}

/// The entries of a table, packed: each has all of a mask and `rows` bytes.
struct Packed {
    params: ColumnParams,
    kind: Entries,
    public: ColumnRing,
    shape: PackShape,
    /// A polynomial an entry.
    masks: Vec<u32>,
    bytes: Vec<u8>,
}

impl Packed {
    /// 2N entries of a few rows.
    fn new(params: ColumnParams, kind: Entries, rows: usize) -> Self {
        let public = ColumnRing::new(&params, PUBLIC_SEED);
        let (ring, count) = (public.context().kept(), 2 * params.ring().degree());
        let shape = PackShape::new(ring.degree(), count * rows, rows).unwrap();
        let words = ring.limbs() * ring.degree();
        let mut masks = vec![0; count * words];
        let mut bytes = vec![0; count * rows];
        let entries = masks.par_chunks_exact_mut(words).zip(bytes.par_chunks_exact_mut(rows));
        entries.enumerate().for_each(|(entry, (mask, bytes))| {
            let seed = if kind == Entries::Equal { 0 } else { entry };
            let rng = &mut Csprng::insecure_from_seed(seed as u64);
            if kind.holds(entry) {
                mask.copy_from_slice(ring.expand_uniform::<Eval>(rng).words());
                rng.fill_bytes(bytes);
            }
        });
        Self { params, kind, public, shape, masks, bytes }
    }

    fn mask(&self, entry: usize) -> Poly<Eval> {
        let ring = self.public.context().kept();
        let words = ring.limbs() * ring.degree();
        Poly::from_words(self.masks[entry * words..][..words].to_vec(), ring.degree())
    }

    /// Returns the words of all entries, of which those of `wanted` have its bytes as phases under `secret`: `byte - mask
    /// secret`. Others are random where an entry is: what they hold must not matter.
    fn words(&self, wanted: usize, secret: &Poly<Eval>, rng: &mut Csprng) -> Vec<u32> {
        let (ring, rows) = (self.public.context().kept(), self.shape.plaintext_rows(wanted));
        let q = ring.rns().product();
        let mut product = self.mask(wanted);
        ring.mul(&mut product, secret);
        let product = ring.inverse(product);
        let mut own: Vec<u32> = Vec::with_capacity(rows.len());
        for (row, &byte) in self.bytes[rows.clone()].iter().enumerate() {
            let lifted = ring.rns().lift(|limb| product.limb(limb)[row]);
            own.push((u32::from(byte) << 24).wrapping_sub((((lifted << 32) + q / 2) / q) as u32));
        }
        if self.kind == Entries::Equal {
            return own.repeat(self.shape.entries());
        }
        let mut words = vec![0; self.shape.rows()];
        let entries = words.chunks_exact_mut(rows.len()).enumerate();
        entries.filter(|&(entry, _)| self.kind.holds(entry)).for_each(|(_, words)| rng.fill_u32(words));
        words[rows].copy_from_slice(&own);
        words
    }

    /// Returns the coefficients of the phase in LSB.
    fn phases(&self, mut a: Poly<Eval>, b: &Poly<Eval>, secret: &Poly<Eval>) -> Vec<f64> {
        let ring = self.public.context().kept();
        ring.mul(&mut a, secret);
        ring.add(&mut a, b);
        let phase = ring.inverse(a);
        let lsb = ring.rns().product() as f64 / 256.0;
        (0..ring.degree()).map(|i| ring.rns().lift(|limb| phase.limb(limb)[i]) as f64 / lsb).collect()
    }

    /// Folds to each of `wanted` under secrets of their own, decodes the bytes, and returns what the folds added, in LSB.
    fn errors(&self, cpu: &Cpu, wanted: &[usize]) -> Vec<f64> {
        let (params, ring) = (&self.params, self.public.context().kept());
        let cpu_ring = cpu.open_ring(self.public.context().clone()).unwrap();
        let polys = ChainPolys { digits: vec![0; self.masks.len()], masks: self.masks.clone() };
        let chain = cpu.open_chain(&cpu_ring, &self.shape, polys).unwrap();
        let matrix = PublicMatrix::new(PUBLIC_SEED, params.lwe().matrix_shape(MatrixDomain::First, 1));
        let (mut words, mut powers, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
        for (seed, &entry) in (700..).zip(wanted) {
            let rng = &mut Csprng::insecure_from_seed(seed);
            let (context, masks) = (self.public.context(), self.public.masks());
            let secret = OneTimeRingSecret::sample(params, rng);
            // There are as many powers of X as entries.
            let exponent = Some(entry);
            let (_, keys, key) =
                encrypt_column_query(params, context, masks, secret, (&matrix, &[]), exponent, rng);
            let keys = open_column_keys(params, context, true, &keys).unwrap();
            let secret = Poly::clone(&key.secret().eval(ring));
            words.extend(self.words(entry, &secret, rng));
            powers.push(keys.power);
            secrets.push(secret);
        }
        let packed = LweBatch { rows: self.shape.rows(), words: words.into() };
        let bodies: Vec<_> = powers.iter().map(Option::as_ref).collect();
        let powers = PowerKeys { masks: self.public.masks().power(), bodies: &bodies };
        let folded = cpu.rgsw_power_fold(&cpu_ring, &chain, &packed, powers).unwrap();
        let ciphertexts = folded.words.chunks_exact(folded.ciphertext_words);
        let queries = packed.words.chunks_exact(packed.rows).zip(ciphertexts).zip(&secrets);
        let errors = queries.zip(wanted).flat_map(|(((words, folded), secret), &entry)| {
            let rows = self.shape.plaintext_rows(entry);
            let b = ring.forward(lift_words(ring, &words[rows.clone()]));
            let exact = self.phases(self.mask(entry), &b, secret);
            let (a, b) = folded.split_at(folded.len() / 2);
            let poly = |words: &[u32]| Poly::from_words(words.to_vec(), ring.degree());
            let phases = self.phases(poly(a), &poly(b), secret);
            for (phase, row) in phases.iter().zip(rows) {
                assert_eq!(phase.round() as u32 as u8, self.bytes[row], "entry {entry}, row {row}");
            }
            phases.into_iter().zip(exact).map(|(phase, exact)| centred(phase - exact)).collect::<Vec<_>>()
        });
        errors.collect()
    }
}

fn check(params: ColumnParams, kind: Entries, rows: usize, wanted: &[usize]) {
    let packed = Packed::new(params, kind, rows);
    let entries = packed.shape.entries();
    let errors = packed.errors(&Cpu::new(2).unwrap(), wanted);
    assert_eq!(errors.len(), wanted.len() * packed.shape.degree());
    let std = std(&errors);
    let predicted = ColumnNoise::new(&params, 1, 32, entries - 1, params.ring().response_bits()).folds;
    let text = format!("{}, {kind:?}: {entries} entries add {std:.5} LSB ({predicted:.5})", params.name());
    println!("{text}");
    match kind {
        Entries::Random | Entries::Sparse => {
            assert!((1.0 / OFF..OFF).contains(&(std / predicted)), "{text}");
        }
        // Horner's rule begins with N - 1 zeros, whose digits are zeros.
        Entries::Equal => assert_eq!(std, 0.0, "{text}"),
    }
}

/// Every 37th entry of 512, the first and the last.
#[test]
fn all_powers_of_x_of_a_small_set() {
    let wanted: Vec<usize> = (0..512).step_by(37).chain([1, 101, 256, 511]).collect();
    for (kind, rows) in
        [(Entries::Random, 3), (Entries::Random, 256), (Entries::Sparse, 5), (Entries::Equal, 2)]
    {
        check(INSECURE_COLPACK_N256, kind, rows, &wanted);
    }
}

#[test]
fn all_powers_of_x_of_the_default_set() {
    check(COLPACK_N2048_Q52, Entries::Random, 2, &[1, 2048, 4095]);
}
