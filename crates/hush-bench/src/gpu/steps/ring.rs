//! The steps over rings, by one parameter set.

use std::{error::Error, sync::Arc};

use hush_cuda::ring::{self, CudaKeys, CudaRing};
use hush_he::{
    entities::RlweCiphertext,
    params::{RingContext, RingParams},
};
use hush_math::{csprng::Csprng, poly::Eval};
use hush_ops::contract::{EntryOrder, RingOps, RlweBatch};
use hush_protocol::{
    Protocol,
    ring_keys::{RingKeys, open_upload},
};

use super::device_residues;
use crate::{
    gpu::{
        Bench, Work,
        work::{Counts, WORD, sums, transforms},
    },
    row::Row,
};

/// A parameter set on the device with the keys of a client, and the protocol whose shapes are measured.
pub(super) struct RingBench {
    pub(super) protocol: Protocol,
    pub(super) ring: CudaRing,
    pub(super) counts: Counts,
    keys: CudaKeys,
}

type Batch = RlweBatch<hush_cuda::device::Buffer<u32>>;

impl RingBench {
    pub(super) fn new(
        bench: &Bench<'_>,
        protocol: Protocol,
        params: &RingParams,
    ) -> Result<Self, Box<dyn Error>> {
        let context = Arc::new(RingContext::new(*params));
        let ring = bench.cuda.open_ring(context.clone())?;
        let client = RingKeys::from_seed(params, &[5; 32]);
        let keys = bench.cuda.open_evaluation_keys(&ring, open_upload(&context, client.upload())?)?;
        Ok(Self { protocol, counts: Counts::new(&ring), ring, keys })
    }

    fn params(&self) -> &RingParams {
        self.ring.context().params()
    }

    /// `count` random ciphertexts.
    fn ciphertexts(&self, bench: &Bench<'_>, count: usize, seed: u64) -> Result<Batch, Box<dyn Error>> {
        let ciphertext_words = 2 * self.counts.poly_words();
        let words = device_residues(bench.cuda.device(), &self.ring, count * ciphertext_words, seed)?;
        Ok(RlweBatch { ciphertext_words, words })
    }

    /// Transforms of N words modulo all limbs of Q_e.
    pub(super) fn transforms(&self, bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
        let (device, tables, polys) = (bench.cuda.device(), self.ring.full(), bench.scale.polys);
        let words = polys * tables.poly_words();
        let from = device_residues(device, &self.ring, words, 1)?;
        let to = device.alloc::<u32>(words)?;
        let count = (polys * tables.limbs()) as f64;
        // Words are read and written.
        let work = Work { bytes: 2.0 * WORD * words as f64, ..transforms(count, tables.degree().words()) };
        let (limbs, degree) = (tables.limbs(), tables.degree().words());
        let forward = || ring::forward(device, tables, &from.slice(..), &to.slice(..));
        let what = |name: &str| Row::named(format!("{name}, {polys} x {limbs} of {degree}")).batch(1);
        bench.row(what("NTT"), &work, forward);
        let inverse = || ring::inverse(device, tables, &from.slice(..), &to.slice(..));
        bench.row(what("inverse NTT"), &work, inverse);
        Ok(())
    }

    /// The expansion of queries into `rows` selectors and the bits of `folds` folds.
    pub(super) fn expand(
        &self,
        bench: &mut Bench<'_>,
        rows: usize,
        folds: usize,
    ) -> Result<(), Box<dyn Error>> {
        let (cuda, params, full) = (bench.cuda, self.params(), self.ring.context().full());
        let mut rng = Csprng::insecure_from_seed(1);
        let mut poly = || full.expand_uniform::<Eval>(&mut rng);
        let query = RlweCiphertext { a: poly(), b: poly() };
        let (leaves, levels) = (params.leaves(rows, folds), params.levels());
        // A Subs a leaf, and one more a level: by a gadget of l digits, a transform back of each of L limbs and l of it each.
        let digits = levels.last().map_or(1, |gadget| gadget.digits);
        let subs = ((leaves + levels.len()) * full.limbs() * (1 + digits)) as f64;
        for &batch in bench.scale.batches {
            let (keys, queries) = (vec![&self.keys; batch], vec![query.clone(); batch]);
            // Queries come up, selectors are written.
            let work = Work {
                bytes: batch as f64 * self.counts.polys(2.0 * rows as f64),
                up: 2.0 * WORD * (batch * full.limbs() * full.degree()) as f64,
                ..transforms(batch as f64 * subs, full.degree())
            };
            let expand = || cuda.expand(&self.ring, &keys, &queries, rows, folds).map(drop);
            let row = Row::named(format!("expand to {leaves} leaves")).batch(batch);
            bench.row(row.of(self.protocol), &work, expand);
        }
        Ok(())
    }

    /// (7): `entries` entries of `planes` planes to one.
    pub(super) fn rgsw_fold(
        &self,
        bench: &mut Bench<'_>,
        entries: usize,
        planes: usize,
        order: EntryOrder,
    ) -> Result<(), Box<dyn Error>> {
        let (cuda, gadget) = (bench.cuda, self.params().fold_gadget());
        let folds = entries.next_power_of_two().ilog2();
        // Every second entry of each round, and an odd one at its end.
        let products = planes * (1..=folds).map(|round| entries.div_ceil(1 << round)).sum::<usize>();
        let rgsw = |fold: u32| self.ciphertexts(bench, 2 * gadget.digits, u64::from(fold));
        let bits = (0..folds).map(rgsw).collect::<Result<Vec<_>, _>>()?;
        for &batch in bench.scale.batches {
            let items = |query: usize| self.ciphertexts(bench, entries * planes, query as u64);
            let items = (0..batch).map(items).collect::<Result<Vec<_>, _>>()?;
            let items: Vec<_> = items.iter().collect();
            let bits = vec![&bits[..]; batch];
            // A product takes two ciphertexts and leaves one.
            let count = (batch * products) as f64;
            let work = Work {
                bytes: self.counts.polys(2.0 * 3.0 * count),
                ..self.counts.external_products(count, &gadget)
            };
            let fold = || cuda.rgsw_fold(&self.ring, &items, planes, order, &bits).map(drop);
            let row = Row::named(format!("rgsw_fold, {entries} x {planes}")).batch(batch);
            bench.row(row.of(self.protocol), &work, fold);
        }
        Ok(())
    }

    /// An answer of `count` ciphertexts, an even number: pairs, and these at the widths of an answer.
    pub(super) fn respond(&self, bench: &mut Bench<'_>, count: usize) -> Result<(), Box<dyn Error>> {
        let (cuda, counts, gadget) = (bench.cuda, &self.counts, self.params().pack_gadget());
        let (pairs, bits) = (count / 2, self.params().response_bits());
        let widths = [bits.a, bits.b, bits.b].repeat(pairs);
        for &batch in bench.scale.batches {
            let items = (0..batch).map(|query| self.ciphertexts(bench, count, query as u64));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            let items: Vec<_> = items.iter().collect();
            let keys = vec![&self.keys; batch];
            let all = (batch * pairs) as f64;
            // The halves a of both are decomposed; each of three polynomials is a sum of 2 l products a slot. Four polynomials
            // are read, three written.
            let slots = 3.0 * all * counts.poly_words() as f64;
            let work = Work {
                bytes: counts.polys(7.0 * all),
                ..counts.decompositions(2.0 * all, &gadget) + sums(slots, 2 * gadget.digits)
            };
            let pack = || cuda.pack_pairs(&self.ring, &keys, &items).map(drop);
            let what = |name: String| Row::named(name).batch(batch).of(self.protocol);
            bench.row(what(format!("pack_pairs, {pairs}")), &work, pack);
            let packed = cuda.pack_pairs(&self.ring, &keys, &items)?;
            let packed: Vec<_> = packed.iter().collect();
            let switch = || cuda.mod_switch(&self.ring, &packed, 0..3 * pairs, &widths).map(drop);
            bench.row(what(format!("mod_switch, {}", 3 * pairs)), &counts.switches(3.0 * all), switch);
        }
        Ok(())
    }
}
