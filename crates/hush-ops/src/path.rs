//! The path of a protocol as data: its steps with their shapes, and the files that they read.
//!
//! What a step costs, and what memory it takes, is worked out from its shape: [`StepShape::work`] for everybody, [`Footprint`] by
//! each backend. The largest batch, the memory plan, `inspect`, the benchmarks and the planner add up one list.

use std::ops::Add;

use hush_he::{entities::MatrixShape, params::RingParams};

use crate::{
    contract::PACK_BYTES, ntt_tiling::NttTiling, pack_shape::PackShape, symbol_tiling::SymbolTiling,
    tiling::Tiling,
};

/// A step of the contract with the shapes of its operands, for one query; a batch has as many of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepShape {
    /// (1) `lwe_fold` of a byte database.
    LweFold {
        /// Rows x D0.
        db: Tiling,
    },
    /// (1) `lwe_fold` of a database with rows of every query, of which each reads its own.
    FoldOnline {
        /// A query's rows x D0.
        db: Tiling,
    },
    /// `lwe_hint` of a database that is the query's own.
    LweHint {
        /// Rows x columns.
        db: Tiling,
        /// Columns x n.
        matrix: MatrixShape,
        /// Parts of the rows, done one after another.
        parts: usize,
    },
    /// (2) `reinterpret_lwe`: words become a database.
    ReinterpretLwe {
        /// Words that are taken apart.
        words: usize,
        /// The database that they become.
        db: Tiling,
    },
    /// `expand`: a packed query becomes selectors and RGSW ciphertexts.
    Expand {
        /// The RLWE set.
        ring: RingParams,
        /// Selectors.
        rows: usize,
        /// RGSW ciphertexts.
        folds: usize,
    },
    /// `lift_hint` of a hint that is the query's own.
    LiftHint {
        /// The RLWE set.
        ring: RingParams,
        /// The LWE dimension.
        n: usize,
        /// Plaintexts that are lifted at once.
        columns: usize,
        /// How often.
        parts: usize,
    },
    /// (3) `pack` with a hint in evaluation form.
    Pack {
        /// The RLWE set.
        ring: RingParams,
        /// n rows, a column a plaintext.
        hint: NttTiling,
        /// Which rows are packed together.
        shape: PackShape,
    },
    /// (3) `pack` with a hint that is the query's own.
    PackOnline {
        /// The RLWE set.
        ring: RingParams,
        /// n rows, a column for each plaintext that is packed at once.
        hint: NttTiling,
        /// Words that are packed.
        rows: usize,
        /// How often.
        parts: usize,
    },
    /// `add_rlwe`.
    AddRlwe {
        /// The RLWE set.
        ring: RingParams,
        /// Ciphertexts that are added.
        count: usize,
    },
    /// (4) `reinterpret_rlwe`: ciphertexts become a database.
    ReinterpretRlwe {
        /// The RLWE set.
        ring: RingParams,
        /// Ciphertexts that are taken apart.
        count: usize,
        /// The database that they become.
        db: Tiling,
    },
    /// (6) `rlwe_fold` of a database in evaluation form.
    RlweFold {
        /// The RLWE set.
        ring: RingParams,
        /// D0 rows, a column a plane and entry.
        db: NttTiling,
    },
    /// (5)(6) `symbol_fold` of a database of symbols.
    SymbolFold {
        /// The RLWE set.
        ring: RingParams,
        /// D0 rows, a column a plane and entry.
        db: SymbolTiling,
        /// Parts of the columns, done one after another.
        parts: usize,
    },
    /// (7) `rgsw_fold` of entries to one.
    RgswFold {
        /// The RLWE set.
        ring: RingParams,
        /// Entries.
        entries: usize,
        /// Planes of each.
        planes: usize,
        /// Parts of the entries, done one after another.
        parts: usize,
    },
    /// `private_key_switch`: TLWE words become selectors and RGSW ciphertexts.
    PrivateKeySwitch {
        /// The RLWE set.
        ring: RingParams,
        /// Selectors.
        rows: usize,
        /// RGSW ciphertexts.
        folds: usize,
    },
    /// `rotate` by encrypted bits.
    Rotate {
        /// The RLWE set.
        ring: RingParams,
        /// Ciphertexts.
        count: usize,
        /// Bits.
        bits: usize,
    },
    /// `ring_switch` of a ciphertext.
    RingSwitch {
        /// The RLWE set.
        ring: RingParams,
    },
    /// (3c) `pack_columns`.
    PackColumns {
        /// The RLWE set.
        ring: RingParams,
        /// Rows x 4N.
        columns: Tiling,
        /// Which rows are packed together.
        shape: PackShape,
    },
    /// (7h) `rgsw_power_fold` of entries to one.
    RgswPowerFold {
        /// The RLWE set.
        ring: RingParams,
        /// The entries and their planes.
        shape: PackShape,
    },
    /// `send_words`: what is left becomes an answer.
    SendWords {
        /// Words that are rounded.
        rows: usize,
        /// Bytes that they become.
        bytes: usize,
    },
    /// `pack_pairs` and `mod_switch`: what is left becomes an answer.
    Respond {
        /// The RLWE set.
        ring: RingParams,
        /// Plaintexts of an answer.
        plaintexts: usize,
    },
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub shape: StepShape,
    /// Whether it is done for one query after another, and not for a batch at once.
    pub one_by_one: bool,
}

impl Step {
    /// A step that is done for a batch at once.
    pub fn of_batch(shape: StepShape) -> Self {
        Self { shape, one_by_one: false }
    }

    /// A step that is done for one query after another.
    pub fn of_query(shape: StepShape) -> Self {
        Self { shape, one_by_one: true }
    }
}

/// Counts of what a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Bytes that are read of databases and hints, once a batch.
    pub bytes: f64,
    /// Bytes of words and polynomials that are read or written beside these, each once.
    pub operand_bytes: f64,
    /// Multiply-adds of an s8 and a word modulo 2^32.
    pub multiply_adds: f64,
    /// Products of words modulo a prime, beside those of transforms.
    pub products: f64,
    /// Sums of such products, each of which is reduced once.
    pub sums: f64,
    /// Transforms (NTT) of a polynomial modulo one prime.
    pub transforms: f64,
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            operand_bytes: self.operand_bytes + other.operand_bytes,
            multiply_adds: self.multiply_adds + other.multiply_adds,
            products: self.products + other.products,
            sums: self.sums + other.sums,
            transforms: self.transforms + other.transforms,
        }
    }
}

impl StepShape {
    /// The step's name in the contract.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LweFold { .. } | Self::FoldOnline { .. } => "lwe_fold",
            Self::LweHint { .. } => "lwe_hint",
            Self::ReinterpretLwe { .. } => "reinterpret_lwe",
            Self::Expand { .. } => "expand",
            Self::LiftHint { .. } => "lift_hint",
            Self::Pack { .. } | Self::PackOnline { .. } => "pack",
            Self::AddRlwe { .. } => "add_rlwe",
            Self::ReinterpretRlwe { .. } => "reinterpret_rlwe",
            Self::RlweFold { .. } => "rlwe_fold",
            Self::SymbolFold { .. } => "symbol_fold",
            Self::PrivateKeySwitch { .. } => "private_key_switch",
            Self::Rotate { .. } => "rotate",
            Self::RingSwitch { .. } => "ring_switch",
            Self::RgswFold { .. } => "rgsw_fold",
            Self::PackColumns { .. } => "pack_columns",
            Self::RgswPowerFold { .. } => "rgsw_power_fold",
            Self::SendWords { .. } => "send_words",
            Self::Respond { .. } => "respond",
        }
    }

    /// Whether it is done when a query is opened: once, however many segments are asked with it.
    pub fn opens_queries(&self) -> bool {
        matches!(self, Self::Expand { .. } | Self::PrivateKeySwitch { .. })
    }

    /// The RLWE set; `None` for steps over LWE.
    pub fn ring(&self) -> Option<&RingParams> {
        match self {
            Self::LweFold { .. }
            | Self::FoldOnline { .. }
            | Self::LweHint { .. }
            | Self::ReinterpretLwe { .. }
            | Self::SendWords { .. } => None,
            Self::Expand { ring, .. }
            | Self::LiftHint { ring, .. }
            | Self::Pack { ring, .. }
            | Self::PackOnline { ring, .. }
            | Self::AddRlwe { ring, .. }
            | Self::ReinterpretRlwe { ring, .. }
            | Self::RlweFold { ring, .. }
            | Self::SymbolFold { ring, .. }
            | Self::PrivateKeySwitch { ring, .. }
            | Self::Rotate { ring, .. }
            | Self::RingSwitch { ring }
            | Self::RgswFold { ring, .. }
            | Self::PackColumns { ring, .. }
            | Self::RgswPowerFold { ring, .. }
            | Self::Respond { ring, .. } => Some(ring),
        }
    }

    /// What the step does for `batch` queries.
    pub fn work(&self, batch: usize) -> Work {
        let queries = batch as f64;
        match *self {
            Self::LweFold { db } => fold(db, queries),
            Self::FoldOnline { db } => fold(db.times(batch), queries),
            // The matrix is expanded from its seed: its columns are the vectors.
            Self::LweHint { db, matrix, .. } => fold(db, queries * matrix.n() as f64),
            Self::ReinterpretLwe { words, db } => {
                Work { bytes: queries * (size_of::<u32>() * words + db.bytes()) as f64, ..Work::default() }
            }
            Self::Expand { ring, rows, folds } => expansion(&ring, rows, folds, queries),
            Self::LiftHint { ring, n, columns, parts } => lift(&ring, queries * (n * columns * parts) as f64),
            Self::Pack { hint: db, .. } | Self::RlweFold { db, .. } => {
                Work { bytes: db.bytes() as f64, ..selected(db, queries) }
            }
            Self::PackOnline { hint, parts, .. } => {
                let hints = queries * parts as f64;
                Work { bytes: hints * hint.bytes() as f64, ..selected(hint, hints) }
            }
            Self::AddRlwe { ring, count } => {
                Work { bytes: ciphertext_bytes(&ring, queries * count as f64), ..Work::default() }
            }
            Self::ReinterpretRlwe { ring, count, db } => {
                let switched = switches(&ring, queries * 2.0 * count as f64);
                switched + Work { bytes: queries * db.bytes() as f64, ..Work::default() }
            }
            Self::RgswFold { ring, entries, planes, .. } => {
                external_products(&ring, queries * (planes * entries.saturating_sub(1)) as f64)
            }
            Self::SymbolFold { ring, db, .. } => symbol_fold(&ring, db, queries),
            Self::PrivateKeySwitch { ring, rows, folds } => private_key_switch(&ring, rows, folds, queries),
            Self::Rotate { ring, count, bits } => external_products(&ring, queries * (count * bits) as f64),
            Self::RingSwitch { ring } => ring_switch(&ring, queries),
            Self::PackColumns { ring, columns, shape } => {
                fold(columns, queries) + column_packing(&ring, &shape, queries)
            }
            Self::RgswPowerFold { ring, shape } => power_fold(&ring, &shape, queries),
            Self::SendWords { rows, bytes } => {
                let operand_bytes = queries * (size_of::<u32>() * rows + bytes) as f64;
                Work { operand_bytes, ..Work::default() }
            }
            Self::Respond { ring, plaintexts } => response(&ring, plaintexts, queries),
        }
    }
}

/// Returns the work of expanding queries into `rows` selectors and `folds` RGSW ciphertexts each.
fn expansion(ring: &RingParams, rows: usize, folds: usize, queries: f64) -> Work {
    let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
    let leaves = ring.leaves(rows, folds);
    // Level j from the top has a node for every 2^j leaves, each of them a key switch.
    let switch = |(level, digits)| leaves.div_ceil(1usize << (level + 1)) * switch_transforms(limbs, digits);
    let digits = ring.levels().iter().rev().map(|gadget| gadget.digits).enumerate();
    let bottoms = folds * ring.fold_gadget().digits * switch_transforms(limbs, ring.square_gadget().digits);
    let subs = digits.map(switch).sum::<usize>();
    Work {
        operand_bytes: ciphertext_bytes(ring, queries * rows as f64),
        transforms: queries * (subs + bottoms) as f64,
        ..Work::default()
    }
}

/// Returns the work of lifting a hint to `polys` polynomials: a row of the hint is n words, a coefficient of n polynomials.
fn lift(ring: &RingParams, polys: f64) -> Work {
    let words = polys * (size_of::<u32>() * ring.degree()) as f64;
    Work {
        operand_bytes: words + polys * poly_bytes(ring) as f64,
        transforms: polys * ring.kept_limbs() as f64,
        ..Work::default()
    }
}

/// Returns the work of folding a database of symbols, whose transforms a batch of queries shares.
fn symbol_fold(ring: &RingParams, db: SymbolTiling, queries: f64) -> Work {
    let polys = (db.rows() * db.columns() * ring.kept_limbs()) as f64;
    let sums = 2.0 * queries * (db.columns() * ring.kept_limbs() * ring.degree()) as f64;
    let (bytes, products) = (db.bytes() as f64, sums * db.rows() as f64);
    let operand_bytes = ciphertext_bytes(ring, queries * (db.rows() + db.columns()) as f64);
    Work { bytes, operand_bytes, transforms: polys, products, sums, ..Work::default() }
}

/// Returns the work of switching TLWE queries to `rows` selectors and `folds` RGSW ciphertexts each, by private keys.
fn private_key_switch(ring: &RingParams, rows: usize, folds: usize, queries: f64) -> Work {
    let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
    let switched = (rows + 2 * folds * ring.fold_gadget().digits) as f64;
    let sums = queries * switched * (2 * limbs * ring.degree()) as f64;
    let n = ring.tlwe().map_or(0, |tlwe| tlwe.key_rows()) as f64;
    // A transform back of the dropped prime, and one to each kept one, of both halves.
    let transforms = 2.0 * queries * switched * limbs as f64;
    Work { products: sums * n, sums, transforms, ..Work::default() }
}

/// Returns the work of switching a ciphertext to the small ring, whose transforms cost less in proportion to its degree.
fn ring_switch(ring: &RingParams, queries: f64) -> Work {
    let small = ring.switch().map_or(0.0, |switch| {
        let parts = ring.degree() / switch.degree();
        let transforms = parts * (2 + switch.gadget().digits) + switch.rank() + 1;
        (transforms * switch.limbs() * switch.degree()) as f64 / ring.degree() as f64
    });
    switches(ring, 2.0 * queries) + Work { transforms: queries * small, ..Work::default() }
}

/// Returns the work of packing folded columns, without the fold. A batch reads the digits once, and each query its words.
fn column_packing(ring: &RingParams, shape: &PackShape, queries: f64) -> Work {
    let polys = queries * (ring.kept_limbs() * (1 + shape.plaintexts())) as f64;
    let products = polys * ring.degree() as f64;
    let digits = shape.plaintexts() * poly_bytes(ring);
    let words = queries * (size_of::<u32>() * shape.rows()) as f64;
    let operand_bytes = words + digits as f64;
    Work { operand_bytes, transforms: polys, products, sums: products, ..Work::default() }
}

/// Returns the work of folding entries by a power of X. The terms are rotated words, and masks that all queries share.
fn power_fold(ring: &RingParams, shape: &PackShape, queries: f64) -> Work {
    let folds = shape.planes() * (shape.entries().next_power_of_two() - 1);
    let keys = Work { transforms: queries * 2.0 * ring.kept_limbs() as f64, ..Work::default() };
    let words = queries * (size_of::<u32>() * shape.rows()) as f64;
    let masks = (shape.plaintexts() * poly_bytes(ring)) as f64;
    let products = external_products(ring, queries * folds as f64);
    Work { operand_bytes: words + masks, ..products } + keys
}

/// Returns the work of responding with `plaintexts` ciphertexts, in pairs where the ring packs pairs. A pair takes a decomposition
/// of the halves a of both, and three polynomials, each a sum of 2 l products a slot. Four polynomials are read, and three written.
fn response(ring: &RingParams, plaintexts: usize, queries: f64) -> Work {
    let pairs = if ring.packs_pairs() { plaintexts / 2 } else { 0 };
    let (limbs, digits) = (ring.kept_limbs(), ring.pack_gadget().digits);
    let pairs_of_all = queries * pairs as f64;
    let sums = 3.0 * pairs_of_all * (limbs * ring.degree()) as f64;
    let packed = Work {
        operand_bytes: 7.0 * pairs_of_all * poly_bytes(ring) as f64,
        transforms: 2.0 * pairs_of_all * switch_transforms(limbs, digits) as f64,
        products: sums * 2.0 * digits as f64,
        sums,
        ..Work::default()
    };
    packed + switches(ring, queries * (2 * plaintexts - pairs) as f64)
}

/// A fold of `db` by `vectors` vectors.
fn fold(db: Tiling, vectors: f64) -> Work {
    let multiply_adds = vectors * db.rows() as f64 * db.cols() as f64;
    let operand_bytes = vectors * (size_of::<u32>() * (db.rows() + db.cols())) as f64;
    Work { bytes: db.bytes() as f64, operand_bytes, multiply_adds, ..Work::default() }
}

/// External products modulo Q_1: both halves are decomposed, and both of the result are sums of 2 l products in every slot.
fn external_products(ring: &RingParams, count: f64) -> Work {
    let (limbs, digits) = (ring.kept_limbs(), ring.fold_gadget().digits);
    let sums = count * (2 * limbs * ring.degree()) as f64;
    Work {
        // Two ciphertexts are read, one is written.
        operand_bytes: ciphertext_bytes(ring, 3.0 * count),
        transforms: count * 2.0 * switch_transforms(limbs, digits) as f64,
        products: sums * (2 * digits) as f64,
        sums,
        ..Work::default()
    }
}

/// Transforms of a polynomial that is decomposed into `digits` digits: back from each of `limbs` limbs, and of every digit to each.
fn switch_transforms(limbs: usize, digits: usize) -> usize {
    limbs * (1 + digits)
}

/// Sums of the entries of `db`, each times both halves of a selector, for so many queries.
fn selected(db: NttTiling, queries: f64) -> Work {
    let sums = 2.0 * queries * (db.columns() * db.poly_words()) as f64;
    let ciphertexts = queries * (db.rows() + db.columns()) as f64;
    let operand_bytes = ciphertexts * (2 * size_of::<u32>() * db.poly_words()) as f64;
    Work { operand_bytes, products: sums * db.rows() as f64, sums, ..Work::default() }
}

/// Polynomials that are switched to the widths of an answer: a transform back of each limb, and limbs - 1 products a coefficient to
/// put the limbs together.
fn switches(ring: &RingParams, polys: f64) -> Work {
    let products = polys * ((ring.kept_limbs() - 1) * ring.degree()) as f64;
    Work {
        operand_bytes: polys * (poly_bytes(ring) + size_of::<u32>() * ring.degree()) as f64,
        transforms: polys * ring.kept_limbs() as f64,
        products,
        sums: products,
        ..Work::default()
    }
}

/// Bytes of so many ciphertexts.
fn ciphertext_bytes(ring: &RingParams, count: f64) -> f64 {
    count * (2 * poly_bytes(ring)) as f64
}

/// Bytes of a polynomial modulo Q_1.
fn poly_bytes(ring: &RingParams) -> usize {
    size_of::<u32>() * ring.kept_limbs() * ring.degree()
}

/// What a file of a snapshot holds, by which a backend reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A byte database.
    Bytes(Tiling),
    /// A database of ring elements in evaluation form.
    Eval(NttTiling),
    /// A database of ring elements as symbols.
    Symbols {
        /// The RLWE set.
        ring: RingParams,
        /// D0 rows, a column a plane and entry.
        db: SymbolTiling,
    },
    /// The polynomials of a chain (`chain_hint`): a digit and a mask for every plaintext.
    Chain {
        /// The RLWE set.
        ring: RingParams,
        /// The plaintexts.
        shape: PackShape,
        /// Whether entries are folded, for which a backend keeps the masks.
        folds: bool,
    },
    /// A file that clients download, and no backend reads.
    Download {
        /// The most bytes that the file has: it may be compressed.
        bytes: u64,
    },
}

impl Content {
    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(tiling) => tiling.stored_bytes(),
            Self::Eval(tiling) => tiling.stored_bytes(),
            Self::Symbols { db, .. } => db.stored_bytes(),
            Self::Chain { ring, shape, .. } => 2 * shape.plaintexts() as u64 * poly_bytes(ring) as u64,
            Self::Download { bytes } => *bytes,
        }
    }

    /// Whether a server holds it: all but what clients download.
    pub fn is_held(&self) -> bool {
        !matches!(self, Self::Download { .. })
    }

    /// Whether every answer reads it: a database, in whatever form.
    pub fn is_scanned(&self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Eval(_) | Self::Symbols { .. })
    }
}

/// The pack columns of a database of `rows` rows: 4N bytes beside each of them.
pub fn pack_columns_tiling(ring: &RingParams, rows: usize) -> Tiling {
    Tiling::new(rows, PACK_BYTES * ring.degree())
}

/// What a backend takes of its memory: bounds, known before anything is loaded.
pub trait Footprint {
    /// Queries that one pass of the step takes at most.
    fn largest_batch(step: &StepShape) -> usize;

    /// Bytes that a step takes for `batch` queries, with its results: at least what the backend allocates. Of what is there anyway
    /// (databases, keys) nothing is counted.
    fn footprint(step: &StepShape, batch: usize) -> usize;

    /// Bytes that a file takes for good, once it is loaded.
    fn resident(content: &Content) -> usize;

    /// Bytes that are on their way at once while a file is loaded.
    fn staging(content: &Content) -> usize;

    /// Bytes of a client's evaluation keys.
    fn keys(ring: &RingParams) -> usize;
}

/// The largest batch of a path, at least one query, whose steps fit `room` bytes.
pub fn largest_batch<F: Footprint>(path: &[Step], room: usize) -> usize {
    let most = path.iter().map(|step| F::largest_batch(&step.shape)).min().unwrap_or(1);
    (1..=most).rev().find(|&batch| batch_bytes::<F>(path, batch) <= room).unwrap_or(1)
}

/// Bytes that a path takes for `batch` queries.
pub fn batch_bytes<F: Footprint>(path: &[Step], batch: usize) -> usize {
    let bytes = |step: &Step| F::footprint(&step.shape, if step.one_by_one { batch.min(1) } else { batch });
    path.iter().map(bytes).fold(0, usize::saturating_add)
}
