//! The steps of a path, each by itself on operands of its shapes: what is timed does not depend on values.

use std::{cell::RefCell, error::Error, sync::Arc};

use hush_cpu::{AlignedBuffer, Cpu};
use hush_he::{
    algorithms::{
        encrypt_ring_query, encrypt_tlwe_query, generate_keys, open_keys, open_ring_query, open_tlwe_query,
    },
    entities::{EvaluationKeys, MatrixShape, PublicMatrix, PublicSeed, RingSecrets},
    params::{RingContext, RingParams},
};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
};
use hush_ops::{
    OpsError,
    contract::{
        BatchWords, ChainPolys, EntryOrder, LweBatch, LweOps, LweQueries, PowerKeys, RLWE_POLYS, RingOps,
        RlweBatch, Rounding, SentPoly, SentRows, Steps, TfheOps, ciphertext_words, poly_words,
    },
    ntt_tiling::{NttTiledDb, NttTiling},
    pack_shape::PackShape,
    path::StepShape,
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{TiledDb, Tiling},
};

/// A step that can be done again and again.
pub type Run<'a> = Box<dyn FnMut() -> Result<(), OpsError> + 'a>;

/// Where the long operands of steps come from.
pub trait Operands<B: Steps> {
    /// A byte database.
    ///
    /// # Errors
    /// If the backend cannot hold it; so with those below.
    fn db(&self, backend: &B, tiling: Tiling) -> Result<B::Db, Box<dyn Error>>;

    /// A database in evaluation form.
    fn ntt_db(&self, backend: &B, ring: &B::Ring, tiling: NttTiling) -> Result<B::NttDb, Box<dyn Error>>;

    /// A database of symbols.
    fn symbols(
        &self,
        backend: &B,
        ring: &B::Ring,
        _set: RingParams,
        tiling: SymbolTiling,
    ) -> Result<B::Symbols, Box<dyn Error>> {
        Ok(backend.open_symbols(ring, random_symbols(tiling)?)?)
    }

    /// Words of so many polynomials modulo Q_1, below their primes.
    fn polys(&self, backend: &B, ring: &B::Ring, count: usize) -> Result<B::Words, Box<dyn Error>>;

    /// Makes the step of `shape` for `batch` queries.
    fn step<'b>(&self, backend: &'b B, shape: &StepShape, batch: usize) -> Result<Run<'b>, Box<dyn Error>> {
        let make = Maker { operands: self, backend, batch };
        match *shape {
            StepShape::LweFold { db } => make.lwe_fold(db, batch),
            StepShape::FoldOnline { db } => make.lwe_fold(db.times(batch), batch),
            StepShape::LweHint { db, matrix, .. } => make.lwe_hint(db, matrix),
            StepShape::ReinterpretLwe { words, db } => make.reinterpret_lwe(words, db),
            StepShape::Expand { ring, rows, folds } => make.expand(&ring, rows, folds),
            StepShape::LiftHint { ring, n, columns, parts } => make.lift_hint(&ring, n, columns, parts),
            StepShape::Pack { ring, hint, shape } => make.pack(&ring, hint, shape),
            StepShape::PackOnline { ring, hint, rows, parts } => make.pack_online(&ring, hint, rows, parts),
            StepShape::AddRlwe { ring, count } => make.add_rlwe(&ring, count),
            StepShape::ReinterpretRlwe { ring, count, db } => make.reinterpret_rlwe(&ring, count, db),
            StepShape::RlweFold { ring, db } => make.rlwe_fold(&ring, db),
            StepShape::SymbolFold { ring, db, .. } => make.symbol_fold(ring, db),
            StepShape::PrivateKeySwitch { ring, rows, folds } => make.private_key_switch(&ring, rows, folds),
            StepShape::Rotate { ring, count, bits } => make.rotate(&ring, count, bits),
            StepShape::RingSwitch { ring } => make.ring_switch(&ring),
            StepShape::RgswFold { ring, entries, planes, .. } => make.rgsw_fold(&ring, entries, planes),
            StepShape::PackColumns { ring, columns, shape } => make.pack_columns(&ring, columns, shape),
            StepShape::RgswPowerFold { ring, shape } => make.rgsw_power_fold(&ring, shape),
            StepShape::SendWords { rows, bytes } => make.send_words(rows, bytes),
            StepShape::Respond { ring, plaintexts } => make.respond(&ring, plaintexts),
        }
    }
}

/// Makes steps of a batch on a backend.
struct Maker<'o, 'b, O: ?Sized, B> {
    operands: &'o O,
    backend: &'b B,
    batch: usize,
}

type Made<'b> = Result<Run<'b>, Box<dyn Error>>;

impl<'b, O: Operands<B> + ?Sized, B: Steps> Maker<'_, 'b, O, B> {
    fn open(&self, ring: &RingParams) -> Result<Ring<'b, B>, OpsError> {
        Ring::open(self.backend, ring)
    }

    fn ciphertexts(&self, on: &Ring<'b, B>, count: usize) -> Result<RlweBatch<B::Words>, Box<dyn Error>> {
        let words = self.operands.polys(self.backend, &on.ring, RLWE_POLYS * count)?;
        Ok(RlweBatch { ciphertext_words: ciphertext_words(&on.context), words })
    }

    /// Makes `count` ciphertexts for each query.
    fn of_each(&self, on: &Ring<'b, B>, count: usize) -> Result<Vec<RlweBatch<B::Words>>, Box<dyn Error>> {
        (0..self.batch).map(|_| self.ciphertexts(on, count)).collect()
    }

    /// Makes a step of one query a step of the batch.
    fn one_by_one(&self, mut run: impl FnMut() -> Result<(), OpsError> + 'b) -> Run<'b> {
        let batch = self.batch;
        Box::new(move || (0..batch).try_for_each(|_| run()))
    }

    fn lwe_fold(&self, db: Tiling, batch: usize) -> Made<'b> {
        let backend = self.backend;
        let (db, queries) = (self.operands.db(backend, db)?, random_queries(db.cols(), batch));
        Ok(Box::new(move || backend.lwe_fold(&db, &queries).map(drop)))
    }

    fn lwe_hint(&self, db: Tiling, matrix: MatrixShape) -> Made<'b> {
        let Self { operands, backend, batch } = *self;
        let (rows, db) = (0..batch * db.rows(), operands.db(backend, db.times(batch))?);
        let matrix = PublicMatrix::new(PublicSeed([1; 32]), matrix);
        Ok(Box::new(move || backend.lwe_hint(&db, &matrix, rows.clone()).map(drop)))
    }

    fn reinterpret_lwe(&self, words: usize, db: Tiling) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let items = words / db.cols();
        let (digits, words) = (db.rows() / items, backend.keep(random_words(batch * words))?);
        Ok(Box::new(move || backend.reinterpret_lwe(&words, batch, items, digits).map(drop)))
    }

    fn expand(&self, ring: &RingParams, rows: usize, folds: usize) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let on = self.open(ring)?;
        let (keys, queries) = on.packed_queries(rows, folds, batch)?;
        Ok(Box::new(move || {
            let keys = vec![&keys; batch];
            backend.expand(&on.ring, &keys, &queries, rows, folds).map(drop)
        }))
    }

    fn lift_hint(&self, ring: &RingParams, n: usize, columns: usize, parts: usize) -> Made<'b> {
        let backend = self.backend;
        let (on, rows) = (self.open(ring)?, columns * ring.degree());
        let shape = PackShape::new(ring.degree(), rows, rows)?;
        let hint = backend.keep(random_words(rows * n))?;
        let lift = move || backend.lift_hint(&on.ring, &hint, n, &shape, 0..columns).map(drop);
        Ok(self.one_by_one(move || (0..parts).try_for_each(|_| lift())))
    }

    fn pack(&self, ring: &RingParams, hint: NttTiling, shape: PackShape) -> Made<'b> {
        let Self { operands, backend, batch } = *self;
        let on = self.open(ring)?;
        let db = operands.ntt_db(backend, &on.ring, hint)?;
        let folded = words_of(backend, shape.rows(), batch)?;
        let selectors = self.of_each(&on, hint.rows())?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            let plaintexts = 0..shape.plaintexts();
            backend.pack(&on.ring, &db, &folded, &shape, plaintexts, &selectors).map(drop)
        }))
    }

    fn pack_online(&self, ring: &RingParams, hint: NttTiling, rows: usize, parts: usize) -> Made<'b> {
        let Self { operands, backend, .. } = *self;
        let (on, rows) = (self.open(ring)?, rows.min(hint.columns() * ring.degree()));
        let db = operands.ntt_db(backend, &on.ring, hint)?;
        let folded = words_of(backend, rows, 1)?;
        let shape = PackShape::new(ring.degree(), rows, rows)?;
        let selectors = self.ciphertexts(&on, hint.rows())?;
        let columns = 0..shape.plaintexts();
        let pack =
            move || backend.pack(&on.ring, &db, &folded, &shape, columns.clone(), &[&selectors]).map(drop);
        Ok(self.one_by_one(move || (0..parts).try_for_each(|_| pack())))
    }

    fn add_rlwe(&self, ring: &RingParams, count: usize) -> Made<'b> {
        let (backend, on) = (self.backend, self.open(ring)?);
        let (mut sum, part) = (self.ciphertexts(&on, count)?, self.ciphertexts(&on, count)?);
        Ok(self.one_by_one(move || backend.add_rlwe(&on.ring, &mut sum, 0, &part)))
    }

    fn reinterpret_rlwe(&self, ring: &RingParams, count: usize, db: Tiling) -> Made<'b> {
        let (backend, on) = (self.backend, self.open(ring)?);
        let planes = count / db.cols();
        let packed = self.ciphertexts(&on, count)?;
        Ok(self.one_by_one(move || backend.reinterpret_rlwe(&on.ring, &packed, planes).map(drop)))
    }

    fn rlwe_fold(&self, ring: &RingParams, db: NttTiling) -> Made<'b> {
        let (backend, on) = (self.backend, self.open(ring)?);
        let selectors = self.of_each(&on, db.rows())?;
        let db = self.operands.ntt_db(backend, &on.ring, db)?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            backend.rlwe_fold(&on.ring, &db, &selectors).map(drop)
        }))
    }

    fn symbol_fold(&self, ring: RingParams, db: SymbolTiling) -> Made<'b> {
        let (backend, on) = (self.backend, self.open(&ring)?);
        let selectors = self.of_each(&on, db.rows())?;
        let db = self.operands.symbols(backend, &on.ring, ring, db)?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            backend.symbol_fold(&on.ring, &db, &selectors).map(drop)
        }))
    }

    fn private_key_switch(&self, ring: &RingParams, rows: usize, folds: usize) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let on = self.open(ring)?;
        let (secrets, keys) = on.key_material()?;
        let keys = backend.open_evaluation_keys(&on.ring, keys)?;
        let rng = &mut Csprng::insecure_from_seed(3);
        let query = encrypt_tlwe_query(&on.context, &secrets, &vec![1; rows], &vec![1; folds], rng);
        let queries = vec![open_tlwe_query(&on.context, rows, folds, &query)?; batch];
        Ok(Box::new(move || {
            backend.private_key_switch(&on.ring, &vec![&keys; batch], &queries, rows, folds).map(drop)
        }))
    }

    fn rotate(&self, ring: &RingParams, count: usize, bits: usize) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let (on, rows) = (self.open(ring)?, 2 * ring.fold_gadget().digits);
        let bits = (0..bits).map(|_| self.ciphertexts(&on, rows)).collect::<Result<Vec<_>, _>>()?;
        let ciphertexts = self.of_each(&on, count)?;
        Ok(Box::new(move || {
            let ciphertexts: Vec<_> = ciphertexts.iter().collect();
            backend.rotate(&on.ring, &ciphertexts, &vec![&bits[..]; batch]).map(drop)
        }))
    }

    fn ring_switch(&self, ring: &RingParams) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let on = self.open(ring)?;
        let (keys, ciphertexts) = (on.keys()?, self.of_each(&on, 1)?);
        Ok(Box::new(move || {
            let ciphertexts: Vec<_> = ciphertexts.iter().collect();
            backend.ring_switch(&on.ring, &vec![&keys; batch], &ciphertexts).map(drop)
        }))
    }

    fn rgsw_fold(&self, ring: &RingParams, entries: usize, planes: usize) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let on = self.open(ring)?;
        let (folds, rows) = (entries.next_power_of_two().ilog2(), 2 * ring.fold_gadget().digits);
        let bits = (0..folds).map(|_| self.ciphertexts(&on, rows)).collect::<Result<Vec<_>, _>>()?;
        let ciphertexts = self.of_each(&on, entries * planes)?;
        Ok(Box::new(move || {
            let (entries, bits): (Vec<_>, _) = (ciphertexts.iter().collect(), vec![&bits[..]; batch]);
            backend.rgsw_fold(&on.ring, &entries, planes, EntryOrder::EntryMajor, &bits).map(drop)
        }))
    }

    fn pack_columns(&self, ring: &RingParams, columns: Tiling, shape: PackShape) -> Made<'b> {
        let Self { operands, backend, batch } = *self;
        let on = self.open(ring)?;
        let db = operands.db(backend, columns)?;
        let chain = ChainPolys { digits: residues(&on.context, shape.plaintexts()), masks: Vec::new() };
        let chain = backend.open_chain(&on.ring, &shape, chain)?;
        let keys = LweQueries { cols: columns.cols(), words: random_words(batch * columns.cols()) };
        let conjugation: Poly<Coeff> = on.context.kept().expand_uniform(&mut Csprng::insecure_from_seed(2));
        let mut folded = Some(words_of(backend, shape.rows(), batch)?);
        Ok(Box::new(move || {
            let words = folded.take().expect("the run before has put them back");
            let conjugations = vec![&conjugation; batch];
            folded = Some(backend.pack_columns(&on.ring, &db, &chain, words, &keys, &conjugations)?);
            Ok(())
        }))
    }

    fn rgsw_power_fold(&self, ring: &RingParams, shape: PackShape) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let (on, mut rng) = (self.open(ring)?, Csprng::insecure_from_seed(2));
        let polys = || residues(&on.context, shape.plaintexts());
        let chain = backend.open_chain(&on.ring, &shape, ChainPolys { digits: polys(), masks: polys() })?;
        let packed = words_of(backend, shape.rows(), batch)?;
        let masks: [Poly<Eval>; 2] = [(); 2].map(|()| on.context.kept().expand_uniform(&mut rng));
        let body: [Poly<Coeff>; 2] = [(); 2].map(|()| on.context.kept().expand_uniform(&mut rng));
        Ok(Box::new(move || {
            let bodies = vec![(shape.entries() > 1).then_some(&body); batch];
            let powers = PowerKeys { masks: &masks, bodies: &bodies };
            backend.rgsw_power_fold(&on.ring, &chain, &packed, powers).map(drop)
        }))
    }

    fn send_words(&self, rows: usize, bytes: usize) -> Made<'b> {
        let backend = self.backend;
        let words = words_of(backend, rows, self.batch)?;
        // Where pieces have other widths, all have their mean.
        let bits = (8 * bytes).checked_div(rows).unwrap_or(1).clamp(1, 32) as u32;
        let sent = [SentRows { rows: 0..rows, bits }];
        Ok(Box::new(move || backend.send_words(&words, &sent, Rounding::HalfEven).map(drop)))
    }

    fn respond(&self, ring: &RingParams, plaintexts: usize) -> Made<'b> {
        let Self { backend, batch, .. } = *self;
        let on = self.open(ring)?;
        let (ciphertexts, [a, b]) = (self.of_each(&on, plaintexts)?, SentPoly::halves(ring));
        let keys = if ring.packs_pairs() { Some(on.keys()?) } else { None };
        // Pairs become three polynomials each; what is left is switched as it is.
        let pairs = keys.as_ref().map_or(0, |_| plaintexts / 2);
        let of_pairs = [a, b, b].repeat(pairs);
        let of_others = [a, b].repeat(plaintexts - 2 * pairs);
        Ok(Box::new(move || {
            let batches: Vec<_> = ciphertexts.iter().collect();
            if let Some(keys) = &keys {
                let packed = backend.pack_pairs(&on.ring, &vec![keys; batch], &batches)?;
                let packed: Vec<_> = packed.iter().collect();
                backend.mod_switch(&on.ring, &packed, 0, &of_pairs)?;
            }
            let words: Vec<_> = batches.iter().map(|batch| &batch.words).collect();
            backend.mod_switch(&on.ring, &words, 4 * pairs, &of_others).map(drop)
        }))
    }
}

/// Random operands that are made on the host. It keeps the last database, of which several batches are timed.
#[derive(Default)]
pub struct Random {
    bytes: RefCell<Option<TiledDb>>,
    evaluated: RefCell<Option<(String, NttTiledDb)>>,
    symbols: RefCell<Option<SymbolDb>>,
}

impl Operands<Cpu> for Random {
    fn db(&self, cpu: &Cpu, tiling: Tiling) -> Result<<Cpu as LweOps>::Db, Box<dyn Error>> {
        let mut kept = self.bytes.borrow_mut();
        let db = match kept.take().filter(|db| db.tiling() == tiling) {
            Some(db) => db,
            None => random_db(tiling)?,
        };
        *kept = Some(db.clone());
        Ok(cpu.open_db(db)?)
    }

    fn ntt_db(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        tiling: NttTiling,
    ) -> Result<<Cpu as RingOps>::NttDb, Box<dyn Error>> {
        let context = cpu.context(ring);
        let mut kept = self.evaluated.borrow_mut();
        let known = kept.take().filter(|(set, db)| set == context.params().name() && db.tiling() == tiling);
        let db = match known {
            Some((_, db)) => db,
            None => {
                let polys = residues(context, tiling.rows() * tiling.columns());
                NttTiledDb::from_polys(tiling, &polys)
            }
        };
        *kept = Some((context.params().name().to_owned(), db.clone()));
        Ok(cpu.open_ntt_db(ring, db)?)
    }

    fn symbols(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        _: RingParams,
        tiling: SymbolTiling,
    ) -> Result<<Cpu as TfheOps>::Symbols, Box<dyn Error>> {
        let mut kept = self.symbols.borrow_mut();
        let db = match kept.take().filter(|db| db.tiling() == tiling) {
            Some(db) => db,
            None => random_symbols(tiling)?,
        };
        *kept = Some(db.clone());
        Ok(cpu.open_symbols(ring, db)?)
    }

    fn polys(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        count: usize,
    ) -> Result<BatchWords, Box<dyn Error>> {
        Ok(residues(cpu.context(ring), count).into())
    }
}

/// An RLWE set on a backend.
struct Ring<'a, B: Steps> {
    backend: &'a B,
    context: Arc<RingContext>,
    ring: B::Ring,
}

impl<'a, B: Steps> Ring<'a, B> {
    fn open(backend: &'a B, params: &RingParams) -> Result<Self, OpsError> {
        let context = Arc::new(RingContext::new(*params));
        let ring = backend.open_ring(context.clone())?;
        Ok(Self { backend, context, ring })
    }

    fn key_material(&self) -> Result<(RingSecrets, EvaluationKeys), Box<dyn Error>> {
        let (seed, context) = ([1; 32], &*self.context);
        let secrets = RingSecrets::from_seed(context.params(), &seed);
        let keys = generate_keys(context, &secrets, &seed);
        let keys = open_keys(context, &keys.seed, &keys.words)?;
        Ok((secrets, keys))
    }

    fn keys(&self) -> Result<B::Keys, Box<dyn Error>> {
        Ok(self.backend.open_evaluation_keys(&self.ring, self.key_material()?.1)?)
    }

    /// A client's keys, and queries of it.
    fn packed_queries(
        &self,
        rows: usize,
        folds: usize,
        batch: usize,
    ) -> Result<(B::Keys, Vec<hush_he::entities::RlweCiphertext>), Box<dyn Error>> {
        let (context, rng) = (&*self.context, &mut Csprng::insecure_from_seed(3));
        let (secrets, keys) = self.key_material()?;
        let query = encrypt_ring_query(context, &secrets, &vec![1; rows], &vec![1; folds], rng);
        let open = |_| open_ring_query(context, rows, folds, &query);
        let queries = (0..batch).map(open).collect::<Result<_, _>>()?;
        Ok((self.backend.open_evaluation_keys(&self.ring, keys)?, queries))
    }
}

/// Words of the fold of `rows` rows for each of a batch.
fn words_of<B: Steps>(backend: &B, rows: usize, batch: usize) -> Result<LweBatch<B::Words>, OpsError> {
    Ok(LweBatch { rows, words: backend.keep(random_words(rows * batch))? })
}

/// Words of so many polynomials modulo Q_1, below their primes.
fn residues(context: &RingContext, polys: usize) -> Vec<u32> {
    let kept = context.kept();
    let mut words = random_words(polys * poly_words(context));
    for (limb, words) in words.chunks_mut(kept.degree()).enumerate() {
        let p = kept.moduli()[limb % kept.limbs()];
        words.iter_mut().for_each(|word| *word = p.reduce(u64::from(*word)));
    }
    words
}

/// Bytes that are random; all others repeat them, which no step notices.
const STRETCH: usize = 4 << 20;

/// Fills `out` with bytes that are the same each time.
fn fill(out: &mut [u8]) {
    let (first, rest) = out.split_at_mut(STRETCH.min(out.len()));
    Csprng::insecure_from_seed(1).fill_bytes(first);
    rest.chunks_mut(STRETCH).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
}

/// A random database.
///
/// # Errors
/// [`OpsError`] if there is none of this tiling.
pub fn random_db(tiling: Tiling) -> Result<TiledDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    TiledDb::new(tiling, Arc::new(bytes))
}

fn random_symbols(tiling: SymbolTiling) -> Result<SymbolDb, OpsError> {
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut bytes);
    SymbolDb::new(tiling, Arc::new(bytes))
}

/// Words of random queries.
pub fn random_queries(cols: usize, batch: usize) -> LweQueries {
    LweQueries { cols, words: random_words(batch * cols) }
}

/// Random words.
pub fn random_words(count: usize) -> Vec<u32> {
    let (first, mut words) = (STRETCH / size_of::<u32>(), vec![0; count]);
    let (random, rest) = words.split_at_mut(first.min(count));
    Csprng::insecure_from_seed(1).fill_u32(random);
    rest.chunks_mut(first).for_each(|chunk| chunk.copy_from_slice(&random[..chunk.len()]));
    words
}
