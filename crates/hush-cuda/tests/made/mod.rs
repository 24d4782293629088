//! The products of a database's hint when a table is built, made of the whole hint at once.

use std::sync::Arc;

use hush_he::{
    codec::pack_rounded,
    entities::{ColumnMasks, PublicMatrix, PublicSeed},
    params::{RingContext, RingParams},
};
use hush_ops::{
    contract::{LweOps, PACK_BYTES, Steps},
    ntt_tiling::NttTiledDb,
    pack_shape::PackShape,
    reference::Reference,
    tiling::{DbBytes, TiledDb, Tiling},
};
use hush_protocol::{
    colpack_s::round_masks,
    facts::{CHAIN_FILE, COLUMNS_FILE, HINT_FILE, HintPlan, HintProduct, LIFTED_FILE, SECOND_DB_FILE},
};

/// A file by name.
pub(crate) type File = (&'static str, DbBytes);

/// Returns the bytes of a file.
pub(crate) fn bytes(file: &DbBytes) -> &[u8] {
    (**file).as_ref()
}

/// The bytes of a database in evaluation form, at an address at which it can be opened.
pub(crate) struct Aligned(pub(crate) NttTiledDb);

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Returns the files beside the database, which has the bytes `db`, of the table whose public values follow from `seed`.
pub(crate) fn of_hint<B: Steps>(backend: &B, plan: &HintPlan, seed: PublicSeed, db: DbBytes) -> Vec<File> {
    let db = TiledDb::new(Tiling::new(plan.rows, plan.matrix.cols()), db).unwrap();
    let db = backend.open_db(db).unwrap();
    let mut hint = backend.lwe_hint(&db, &PublicMatrix::new(seed, plan.matrix), 0..plan.rows).unwrap();
    let (mut files, mut n): (Vec<File>, _) = (Vec::new(), plan.matrix.n());
    if let Some(second) = &plan.second {
        // A backend does not hand the bytes of its database back.
        let words = backend.read(&hint).unwrap().to_vec().into();
        let db = Reference.reinterpret_lwe(&words, 1, second.items, second.digits).unwrap();
        files.push((SECOND_DB_FILE, Arc::new(db.bytes().to_vec())));
        let db = backend.reinterpret_lwe(&hint, 1, second.items, second.digits).unwrap();
        let matrix = PublicMatrix::new(seed, second.matrix);
        hint = backend.lwe_hint(&db, &matrix, 0..second.tiling.rows()).unwrap();
        n = second.matrix.n();
    }
    match &plan.product {
        HintProduct::Download { bits } => {
            files.push((HINT_FILE, Arc::new(pack_rounded(&backend.read(&hint).unwrap(), *bits))));
        }
        HintProduct::Lifted { ring, shape } => {
            files.push((LIFTED_FILE, Arc::new(Aligned(lifted(backend, &hint, n, ring, shape)))));
        }
        HintProduct::Chained { params, shape, mask_bits } => {
            files.extend(chained(backend, &hint, seed, params.ring(), shape, *mask_bits));
        }
    }
    files
}

/// Returns the hint in evaluation form, with zeros beyond its last row.
fn lifted<B: Steps>(
    backend: &B,
    hint: &B::Words,
    n: usize,
    ring: &RingParams,
    shape: &PackShape,
) -> NttTiledDb {
    let ring = backend.open_ring(Arc::new(RingContext::new(*ring))).unwrap();
    let mut words = backend.read(hint).unwrap().into_owned();
    words.resize(shape.rows() * n, 0);
    let words = backend.keep(words).unwrap();
    let lifted = backend.lift_hint(&ring, &words, n, shape, 0..shape.plaintexts()).unwrap();
    backend.read_ntt_db(&ring, &lifted).unwrap()
}

/// Pack columns, and digits and masks.
fn chained<B: Steps>(
    backend: &B,
    hint: &B::Words,
    seed: PublicSeed,
    ring: &RingParams,
    shape: &PackShape,
    mask_bits: Option<u32>,
) -> Vec<File> {
    let (context, n) = (Arc::new(RingContext::new(*ring)), ring.degree());
    let masks = ColumnMasks::new(&context, &seed);
    let ring = backend.open_ring(context).unwrap();
    let plan = backend.open_masks(&ring, &masks).unwrap();
    let mut hints = Vec::with_capacity(shape.plaintexts());
    for plaintext in 0..shape.plaintexts() {
        let rows = shape.plaintext_rows(plaintext);
        hints.push(backend.join(&[(hint, rows.start * n..rows.end * n)]).unwrap());
    }
    let chained = backend.chain_hint(&ring, &plan, &hints.iter().collect::<Vec<_>>()).unwrap();
    let columns: Vec<u8> = chained.iter().flat_map(|chained| &chained.columns).copied().collect();
    assert_eq!(columns.len(), shape.rows() * PACK_BYTES * n);
    let digits: Vec<u32> = chained.iter().flat_map(|chained| &chained.digit).copied().collect();
    let masks: Vec<u32> = chained.iter().flat_map(|chained| &chained.mask).copied().collect();
    let kept = if mask_bits.is_some() { &[] } else { &masks[..] };
    let polys: Vec<u8> = digits.iter().chain(kept).flat_map(|word| word.to_le_bytes()).collect();
    let columns = Tiling::new(shape.rows(), PACK_BYTES * n).tile(&columns);
    let mut files: Vec<File> = vec![(COLUMNS_FILE, Arc::new(columns)), (CHAIN_FILE, Arc::new(polys))];
    if let Some(bits) = mask_bits {
        files.push((HINT_FILE, Arc::new(round_masks(backend, &ring, masks, bits).unwrap())));
    }
    files
}
