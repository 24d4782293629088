//! The steps of column packing.

use std::{error::Error, sync::Arc};

use hush_cuda::{CudaChain, ring::CudaRing};
use hush_he::{entities::ColumnMasks, params::RingContext};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
};
use hush_ops::contract::{ChainPolys, ColumnOps, LweBatch, Memory, PowerKeys, RingOps};
use hush_protocol::{
    Protocol, colpack::Colpack, column_page::ColumnPage, column_table::ColumnTable, table::TableShape,
};

use super::{device_residues, residues};
use crate::{
    gpu::{
        Bench, Work,
        work::{Counts, WORD, fold, products, transforms},
    },
    row::Row,
    scan::{random_queries, random_words},
};

pub(super) fn run(bench: &mut Bench<'_>, shape: TableShape) -> Result<(), Box<dyn Error>> {
    let table = ColumnTable::new(Colpack::SPEC, bench.scale.column, shape)?;
    let context = Arc::new(RingContext::new(*table.params().ring()));
    let ring = bench.cuda.open_ring(context.clone())?;
    let [digits, masks] = [3, 4].map(|seed| residues(context.kept(), table.pack_shape().plaintexts(), seed));
    let chain = bench.cuda.open_chain(&ring, &table.pack_shape(), ChainPolys { digits, masks })?;
    let of = ColumnBench { counts: Counts::new(&ring), ring, table, chain };
    let what = |name: &str| Row::named(name).of(Protocol::Colpack);
    bench.attempt(what("pack_columns"), |bench| of.pack_columns(bench));
    bench.attempt(what("rgsw_power_fold"), |bench| of.rgsw_power_fold(bench));
    bench.attempt(what("mod_switch"), |bench| of.mod_switch(bench));
    bench.attempt(what("chain_hint"), |bench| chain_hint(bench, &of.ring, &context));
    Ok(())
}

/// A table of `colpack` without its database.
struct ColumnBench {
    ring: CudaRing,
    counts: Counts,
    table: ColumnTable,
    chain: CudaChain,
}

impl ColumnBench {
    /// A polynomial of a query's keys.
    fn key(&self, rng: &mut Csprng) -> Poly<Coeff> {
        self.ring.context().kept().expand_uniform(rng)
    }

    /// (3c): the fold of the pack columns, and a product a plaintext.
    fn pack_columns(&self, bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
        let (cuda, counts, tiling) = (bench.cuda, &self.counts, self.table.columns_tiling());
        let (rows, cols, plaintexts) = (tiling.rows(), tiling.cols(), self.table.pack_shape().plaintexts());
        let columns = cuda.random_db(rows, cols, 1)?;
        let mut rng = Csprng::insecure_from_seed(2);
        for &batch in bench.scale.batches {
            let keys = random_queries(cols, batch);
            let conjugations: Vec<_> = (0..batch).map(|_| self.key(&mut rng)).collect();
            let conjugations: Vec<_> = conjugations.iter().collect();
            // A transform of each limb of a query's key, then a product of polynomials a plaintext: a product modulo a prime a
            // slot, a transform back of each limb. Beside the columns, digits are read once; words are read and written; keys
            // come up.
            let limb_products = (batch * plaintexts * counts.limbs) as f64;
            let keys_of = (batch * counts.limbs) as f64;
            let operands = Work {
                bytes: counts.polys(plaintexts as f64) + 2.0 * WORD * (batch * rows) as f64,
                up: WORD * keys.words.len() as f64 + counts.polys(batch as f64),
                ..Work::default()
            };
            let work = operands
                + fold(columns.bytes_on_device() as f64, batch)
                + transforms(keys_of + limb_products, counts.degree)
                + products(limb_products * counts.degree as f64);
            let mut folded = Some(LweBatch { rows, words: cuda.device().zeroed(batch * rows)? });
            let pack = || {
                let words = folded.take().expect("the run before has put them back");
                let packed =
                    cuda.pack_columns(&self.ring, &columns, &self.chain, words, &keys, &conjugations);
                packed.map(|packed| folded = Some(packed))
            };
            let row = Row::named("pack_columns").batch(batch).of(Protocol::Colpack);
            bench.row(row.table(tiling.bytes()), &work, pack);
        }
        Ok(())
    }

    /// (7h): T terms of each plane to one ciphertext.
    fn rgsw_power_fold(&self, bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
        let (cuda, counts, shape) = (bench.cuda, &self.counts, self.table.pack_shape());
        let (gadget, terms) = (self.table.params().ring().fold_gadget(), shape.entries().next_power_of_two());
        let (kept, mut rng) = (self.ring.context().kept(), Csprng::insecure_from_seed(1));
        let masks = [(); 2].map(|()| kept.expand_uniform::<Eval>(&mut rng));
        let body = [(); 2].map(|()| self.key(&mut rng));
        for &batch in bench.scale.batches {
            let packed =
                LweBatch { rows: shape.rows(), words: cuda.keep(random_words(batch * shape.rows()))? };
            // Two rows of a query's RGSW ciphertext come up and are transformed; then T - 1 external products a plane. Their
            // operands are the terms: the halves b are rotated words, which are added up without products; the halves a are the
            // same for all queries.
            let units = (batch * shape.planes()) as f64;
            let operands = Work {
                bytes: WORD * packed.words.len() as f64
                    + counts.polys((shape.planes() * terms) as f64 + 2.0 * units),
                up: counts.polys(2.0 * batch as f64),
                ..Work::default()
            };
            let work = operands
                + counts.external_products(units * (terms - 1) as f64, &gadget)
                + transforms((2 * batch * counts.limbs) as f64, counts.degree);
            let bodies = vec![Some(&body); batch];
            let powers = PowerKeys { masks: &masks, bodies: &bodies };
            let run = || cuda.rgsw_power_fold(&self.ring, &self.chain, &packed, powers).map(drop);
            let name = format!("rgsw_power_fold, {terms} x {}", shape.planes());
            bench.row(Row::named(name).batch(batch).of(Protocol::Colpack), &work, run);
        }
        Ok(())
    }

    /// The polynomials of an answer.
    fn mod_switch(&self, bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
        let (cuda, bits) = (bench.cuda, self.table.params().ring().response_bits());
        let polys = 2 * self.table.answer_plaintexts();
        let widths = [bits.a, bits.b].repeat(polys / 2);
        for &batch in bench.scale.batches {
            let answer = |query: usize| {
                device_residues(cuda.device(), &self.ring, polys * self.counts.poly_words(), query as u64)
            };
            let answers = (0..batch).map(answer).collect::<Result<Vec<_>, _>>()?;
            let answers: Vec<_> = answers.iter().collect();
            let work = self.counts.switches((batch * polys) as f64);
            let switch = || cuda.mod_switch(&self.ring, &answers, 0..polys, &widths).map(drop);
            let row = Row::named(format!("mod_switch, {polys}")).batch(batch);
            bench.row(row.of(Protocol::Colpack), &work, switch);
        }
        Ok(())
    }
}

/// Offline: hints of plaintexts to pack columns.
fn chain_hint(bench: &mut Bench<'_>, ring: &CudaRing, context: &RingContext) -> Result<(), Box<dyn Error>> {
    let (cuda, counts) = (bench.cuda, Counts::new(ring));
    let plan = cuda.open_masks(ring, &ColumnMasks::new(context))?;
    let (degree, limbs) = (counts.degree, counts.limbs);
    let hint = cuda.keep(random_words(degree * degree))?;
    for count in [1, cuda.chain_batch()] {
        let hints = vec![&hint; count];
        // Four passes of 2 N transforms, and 8 for each of the N/2 steps.
        let transformed = (count * (4 * limbs * degree + 8 * degree / 2)) as f64;
        // The hint is read, and 4 N columns of as many rows are written, and go to the host.
        let words = (count * degree * degree) as f64;
        let work = Work { bytes: 2.0 * WORD * words, down: WORD * words, ..transforms(transformed, degree) };
        let run = || cuda.chain_hint(ring, &plan, &hints).map(drop);
        let row = Row::named(format!("chain_hint, {count} plaintexts")).batch(count);
        bench.row(row.of(Protocol::Colpack), &work, run);
    }
    Ok(())
}
