//! The files of a snapshot in memory: made of a matrix of bytes by a backend's steps, as `hush-engine` makes them.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use hush_he::{
    codec::pack_rounded,
    entities::{MatrixShape, PublicMatrix},
    params::{ColumnParams, RingContext},
};
use hush_ops::{
    contract::{LweOps, PACK_BYTES, Steps},
    ntt_tiling::{ALIGNMENT, NttTiledDb, NttTiling},
    pack_shape::PackShape,
    reference::Reference,
    symbol_tiling::SymbolDb,
    tiling::{DbBytes, TiledDb, Tiling},
};
use hush_protocol::{
    ProtocolError,
    any_page::TableParams,
    colpack_s::round_masks,
    column_page::ColumnRing,
    facts::{
        CHAIN_FILE, COLUMNS_FILE, DB_FILE, Database, DbForm, HINT_FILE, HintPlan, HintProduct, LIFTED_FILE,
        SECOND_DB_FILE,
    },
    page::Files,
    ring_table::RingTable,
    symbols::to_symbols,
    table::TableShape,
    whitening::Whitening,
};
use rayon::prelude::*;

use super::{PUBLIC_SEED, WHITENING_SEED};

/// Files by name.
#[derive(Default)]
pub(crate) struct Stored {
    files: BTreeMap<&'static str, DbBytes>,
    /// The words of the hint of each byte database, one made of the other.
    pub(crate) hints: Vec<Vec<u32>>,
}

impl Files for Stored {
    type Error = ProtocolError;

    fn bytes(&self, name: &'static str) -> Result<DbBytes, ProtocolError> {
        self.files.get(name).cloned().ok_or_else(|| ProtocolError::Descriptor(format!("{name} is not there")))
    }

    /// Returns the bytes that no range names are others: who reads one answers wrongly.
    fn part(&self, name: &'static str, ranges: &[Range<usize>]) -> Result<DbBytes, ProtocolError> {
        let whole = self.bytes(name)?;
        let mut part = Shifted::new((*whole).as_ref().len());
        part.bytes_mut().iter_mut().zip((*whole).as_ref()).for_each(|(part, whole)| *part = !whole);
        for range in ranges {
            part.bytes_mut()[range.clone()].copy_from_slice(&(*whole).as_ref()[range.clone()]);
        }
        Ok(Arc::new(part))
    }
}

/// Bytes of which the first is at a multiple of 64.
struct Shifted {
    padded: Vec<u8>,
    range: Range<usize>,
}

impl Shifted {
    fn new(len: usize) -> Self {
        let padded = vec![0; len + ALIGNMENT - 1];
        let start = padded.as_ptr().align_offset(ALIGNMENT);
        Self { padded, range: start..start + len }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.padded[self.range.clone()]
    }
}

impl AsRef<[u8]> for Shifted {
    fn as_ref(&self) -> &[u8] {
        &self.padded[self.range.clone()]
    }
}

/// Bytes that begin at a multiple of 64.
struct Aligned(NttTiledDb);

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Stored {
    /// Returns the table whose slot bytes are `matrix`: a block is a band of `slot_bytes` rows, a slot a column of it. With
    /// another `hint` than that of the matrix, folded words have other phases than bytes.
    pub(crate) fn build<B: Steps>(
        backend: &B,
        table: &TableParams,
        matrix: &[u8],
        hint: Option<Vec<u32>>,
    ) -> Self {
        let mut stored = Self::default();
        match table.database() {
            Database::Bytes(tiling) => {
                stored.put(DB_FILE, tiling.tile(matrix));
                let plan = table.hint().expect("of a byte database");
                let words =
                    hint.unwrap_or_else(|| hint_of(backend, stored.tiled(DB_FILE, tiling), plan.matrix));
                stored.put_hint(backend, &plan, words);
            }
            Database::Slots => {
                let TableShape { columns, blocks, slot_bytes } = table.facts().shape;
                let slots = (0..blocks).flat_map(|block| (0..columns).map(move |column| (block, column)));
                let byte = |(block, column): (usize, usize), byte| {
                    matrix[(block * slot_bytes + byte) * columns + column]
                };
                let bytes = slots.flat_map(|slot| (0..slot_bytes).map(move |at| byte(slot, at)));
                stored.put(HINT_FILE, bytes.collect());
            }
            Database::Plaintexts(ring) => {
                let scheme = backend.open_ring(Arc::new(RingContext::new(*ring.ring()))).unwrap();
                let plaintexts = plaintexts(&ring, matrix);
                if ring.form() == DbForm::Symbols {
                    let db = SymbolDb::from_symbols(ring.symbol_tiling(), &plaintexts);
                    stored.put(DB_FILE, db.bytes().to_vec());
                } else {
                    let polys = backend.ntt_db(&scheme, &plaintexts).unwrap();
                    stored.put_ntt(DB_FILE, NttTiledDb::from_polys(ring.tiling(), &polys));
                }
            }
        }
        stored.check(table);
        stored
    }

    /// Returns a table over rings of any plaintexts.
    pub(crate) fn of_ntt(table: &TableParams, db: NttTiledDb) -> Self {
        let mut stored = Self::default();
        stored.put_ntt(DB_FILE, db);
        stored.check(table);
        stored
    }

    /// Returns a table over rings of any symbols.
    pub(crate) fn of_symbols(bytes: Vec<u8>) -> Self {
        let mut stored = Self::default();
        stored.put(DB_FILE, bytes);
        stored
    }

    /// Returns the bytes of a file.
    pub(crate) fn get(&self, name: &str) -> &[u8] {
        (*self.files[name]).as_ref()
    }

    /// Returns a byte database.
    pub(crate) fn tiled(&self, name: &'static str, tiling: Tiling) -> TiledDb {
        TiledDb::new(tiling, self.bytes(name).unwrap()).unwrap()
    }

    /// Returns a database in evaluation form.
    pub(crate) fn ntt(&self, name: &'static str, tiling: NttTiling) -> NttTiledDb {
        NttTiledDb::new(tiling, self.bytes(name).unwrap()).unwrap()
    }

    fn put(&mut self, name: &'static str, bytes: Vec<u8>) {
        self.files.insert(name, Arc::new(bytes));
    }

    fn put_ntt(&mut self, name: &'static str, db: NttTiledDb) {
        self.files.insert(name, Arc::new(Aligned(db)));
    }

    /// The files are those that the page lists, of the lengths that it says.
    fn check(&self, table: &TableParams) {
        let listed: BTreeMap<_, _> =
            table.files().into_iter().map(|file| (file.name, file.content.bytes())).collect();
        let there: BTreeMap<_, _> =
            self.files.keys().map(|&name| (name, self.get(name).len() as u64)).collect();
        assert_eq!(there, listed, "{table:?}");
    }

    /// Writes the product of the words of a hint.
    fn put_hint<B: Steps>(&mut self, backend: &B, plan: &HintPlan, mut words: Vec<u32>) {
        let n = plan.matrix.n();
        if let Some(second) = &plan.second {
            let kept = words.clone().into();
            let db = Reference.reinterpret_lwe(&kept, 1, second.items, second.digits).unwrap();
            assert_eq!(db.tiling(), second.tiling);
            self.put(SECOND_DB_FILE, db.bytes().to_vec());
            self.hints.push(words);
            words = hint_of(backend, db, second.matrix);
        }
        match &plan.product {
            HintProduct::Download { bits } => self.put(HINT_FILE, pack_rounded(&words, *bits)),
            HintProduct::Lifted { ring, shape } => {
                let ring = backend.open_ring(Arc::new(RingContext::new(*ring))).unwrap();
                // Rows that stem from the answer are zeros here.
                let mut padded = words.clone();
                padded.resize(shape.rows() * n, 0);
                let padded = backend.keep(padded).unwrap();
                let lifted = backend.lift_hint(&ring, &padded, n, shape, 0..shape.plaintexts()).unwrap();
                self.put_ntt(LIFTED_FILE, backend.read_ntt_db(&ring, &lifted).unwrap());
            }
            HintProduct::Chained { params, shape, mask_bits } => {
                self.put_chained(backend, params, shape, *mask_bits, &words);
            }
        }
        self.hints.push(words);
    }

    fn put_chained<B: Steps>(
        &mut self,
        backend: &B,
        params: &ColumnParams,
        shape: &PackShape,
        mask_bits: Option<u32>,
        hint: &[u32],
    ) {
        let (public, n) = (ColumnRing::new(params, PUBLIC_SEED), params.lwe().n());
        let ring = backend.open_ring(public.context().clone()).unwrap();
        let plan = backend.open_masks(&ring, public.masks()).unwrap();
        let chained = (0..shape.plaintexts()).into_par_iter().map(|column| {
            let rows = shape.plaintext_rows(column);
            let hint = backend.keep(hint[rows.start * n..rows.end * n].to_vec()).unwrap();
            backend.chain_hint(&ring, &plan, &[&hint]).unwrap().remove(0)
        });
        let chained: Vec<_> = chained.collect();
        let columns: Vec<u8> = chained.iter().flat_map(|chained| chained.columns.iter().copied()).collect();
        self.put(COLUMNS_FILE, Tiling::new(shape.rows(), PACK_BYTES * n).tile(&columns));
        let digits = chained.iter().flat_map(|chained| &chained.digit);
        let masks = chained.iter().flat_map(|chained| &chained.mask);
        if let Some(bits) = mask_bits {
            self.put(HINT_FILE, round_masks(backend, &ring, masks.clone().copied().collect(), bits).unwrap());
        }
        let polys = digits.chain(masks.filter(|_| mask_bits.is_none()));
        self.put(CHAIN_FILE, polys.flat_map(|word| word.to_le_bytes()).collect());
    }
}

/// Returns the hint of all rows of a database.
fn hint_of<B: Steps>(backend: &B, db: TiledDb, shape: MatrixShape) -> Vec<u32> {
    let (rows, matrix) = (db.tiling().rows(), PublicMatrix::new(PUBLIC_SEED, shape));
    let hint = backend.lwe_hint(&backend.open_db(db).unwrap(), &matrix, 0..rows).unwrap();
    backend.read(&hint).unwrap().into_owned()
}

/// Returns the plaintexts of a table over rings, whitened, `[row][column]`.
fn plaintexts(table: &RingTable, matrix: &[u8]) -> Vec<u32> {
    let (tiling, whitening) = (table.tiling(), Whitening::new(table.ring(), WHITENING_SEED));
    let places = (0..tiling.rows()).flat_map(|row| (0..tiling.columns()).map(move |column| (row, column)));
    places.flat_map(|(row, column)| plaintext(table, &whitening, matrix, row, column)).collect()
}

fn plaintext(table: &RingTable, whitening: &Whitening, matrix: &[u8], row: usize, column: usize) -> Vec<u32> {
    let (degree, size, shape) = (table.ring().degree(), table.slot_symbols(), table.shape());
    let (plane, entry) = (column / table.entries(), column % table.entries());
    let mut plaintext = vec![0; degree];
    for lane in 0..table.lanes() {
        let block = entry * table.lanes() + lane;
        if block < shape.blocks {
            let mut symbols = vec![0; size];
            to_symbols(&super::slot(shape, matrix, row, block), table.ring().plaintext_bits(), &mut symbols);
            let part = &symbols[plane * degree..size.min((plane + 1) * degree)];
            for (coefficient, &symbol) in table.coefficients(lane, plane).zip(part) {
                plaintext[coefficient] = symbol;
            }
        }
    }
    whitening.add_to(row, column, &mut plaintext);
    plaintext
}
