//! The memory of tables that are served.

use hush_cuda::{
    CudaDb,
    ring::{CudaNttDb, MAX_PASS},
};
use hush_ops::{ntt_tiling::NttTiling, tiling::Tiling};
use hush_protocol::{
    column_table::ColumnTable,
    lwe_table::LweTable,
    pack_table::PackTable,
    ring_table::RingTable,
    table::{Protocol, TableParams},
};

use super::{
    MemoryPlan, Part,
    batches::{RingBytes, WORD, db_staging, lwe_fold, ntt_db_staging, pack_online, second_stage},
};
use crate::{Backend, hosted::MAX_BATCH};

/// Queries that one scan answers at most where a query is expanded: what one pass over a database in evaluation form takes.
const MAX_EXPANDED_BATCH: usize = MAX_PASS;

impl MemoryPlan {
    /// A table that is served, with the keys of `clients` clients where they have any. Its batches are all those that are answered
    /// at once ([`Backend::batches_in_flight`]).
    pub fn to_serve(table: &TableParams, clients: usize) -> Self {
        match table {
            TableParams::Lwe(table) => lwe(table),
            TableParams::Ring(table) => ring(table, clients),
            TableParams::Pack(table) => pack(table, clients),
            TableParams::Column(table) => column(table),
        }
    }
}

fn plan(loaded: Loaded, most: usize, batch: impl Fn(usize) -> usize) -> MemoryPlan {
    let Loaded { parts, keys, staging, upload } = loaded;
    let batches = (1..=most).map(|queries| Backend::Cuda.batches_in_flight() * batch(queries)).collect();
    MemoryPlan { parts, keys, keys_promised: 0, staging, upload, one: "batches of one query", batches }
}

/// What is loaded of a table.
#[derive(Default)]
struct Loaded {
    parts: Vec<Part>,
    keys: usize,
    staging: usize,
    upload: usize,
}

impl Loaded {
    fn part(mut self, name: &'static str, bytes: usize) -> Self {
        self.parts.push(Part { name, bytes });
        self
    }

    fn db(mut self, name: &'static str, tiling: Tiling) -> Self {
        self.staging = self.staging.max(db_staging(tiling));
        self.upload += tiling.bytes();
        self.part(name, CudaDb::bytes_for(tiling))
    }

    fn ntt_db(mut self, name: &'static str, tiling: NttTiling) -> Self {
        self.staging = self.staging.max(ntt_db_staging(tiling));
        self.upload += tiling.bytes();
        self.part(name, CudaNttDb::bytes_for(tiling))
    }

    fn keys(self, clients: usize, ring: &RingBytes<'_>) -> Self {
        Self { keys: clients * ring.keys(), ..self }
    }
}

fn lwe(table: &LweTable) -> MemoryPlan {
    let loaded = Loaded::default().db("database", table.tiling());
    let first = |batch| lwe_fold(batch, table.tiling());
    if table.protocol() != Protocol::Double {
        return plan(loaded, MAX_BATCH, first);
    }
    let answer = Tiling::new(table.second_answer_rows(), table.shape().blocks);
    // The answers become databases one after another.
    let online = WORD * table.rows() + second_stage(&table.second_matrix(), answer);
    let loaded = loaded.db("second database", table.second_tiling());
    plan(loaded, MAX_BATCH, |batch| first(batch) + lwe_fold(batch, table.second_tiling()) + online)
}

fn ring(table: &RingTable, clients: usize) -> MemoryPlan {
    let (bytes, tiling) = (RingBytes::new(table.ring()), table.tiling());
    let loaded = Loaded::default().ntt_db("database", tiling).keys(clients, &bytes);
    plan(loaded, MAX_EXPANDED_BATCH, |batch| {
        bytes.expand(batch, table.leaves(), table.folds())
            + bytes.rlwe_fold(batch, tiling)
            + bytes.rgsw_fold(batch, table.entries(), table.planes())
            + bytes.respond(batch, table.planes())
    })
}

fn pack(table: &PackTable, clients: usize) -> MemoryPlan {
    let bytes = RingBytes::new(table.params().ring());
    let mut loaded = Loaded::default().db("database", table.tiling());
    if table.protocol() == Protocol::ExppackD {
        loaded = loaded.db("second database", table.second_tiling());
    }
    let loaded = loaded.ntt_db("lifted hint", table.hint_tiling()).keys(clients, &bytes);
    plan(loaded, MAX_EXPANDED_BATCH, |batch| {
        lwe_fold(batch, table.tiling())
            + bytes.expand(batch, table.leaves(), table.folds())
            + bytes.rlwe_fold(batch, table.hint_tiling())
            + bytes.respond(batch, table.answer_plaintexts())
            + second(table, &bytes, batch)
    })
}

/// What a protocol has behind its first packing.
fn second(table: &PackTable, bytes: &RingBytes<'_>, batch: usize) -> usize {
    let (first, shape, n) = (table.first_shape(), table.second_shape(), table.params().lwe().n());
    match table.protocol() {
        Protocol::Hybrid => bytes.rgsw_fold(batch, first.entries(), first.planes()),
        Protocol::ExppackD => {
            // All queries' rows and their hints, before the first of them is packed.
            let rows = table.second_answer_rows();
            let answers = batch * WORD * (rows * (n + 1) + shape.rows());
            let tiling = Tiling::new(rows, table.shape().blocks);
            let columns = table.second_hint_rows() / shape.degree()..shape.plaintexts();
            let words = WORD * (table.rows() + 2 * shape.rows() + shape.degree() * n);
            lwe_fold(batch, table.second_tiling())
                + answers
                + words
                + pack_online(bytes, &table.second_matrix(), tiling, columns)
        }
        Protocol::DoublePack => {
            let tiling = Tiling::new(shape.rows(), table.second_words());
            let columns = shape.plaintexts().min(table.second_part_columns());
            // Coefficients of 64 bits as they are switched, and their words.
            let switched = 4 * WORD * 2 * first.plaintexts() * first.degree();
            let packed = bytes.polys(4 * shape.plaintexts());
            switched + packed + pack_online(bytes, &table.second_matrix(), tiling, 0..columns)
        }
        _ => 0,
    }
}

fn column(table: &ColumnTable) -> MemoryPlan {
    let (bytes, shape) = (RingBytes::new(table.params().ring()), table.pack_shape());
    let folds = table.protocol() == Protocol::Colpack;
    let mut loaded =
        Loaded::default().db("database", table.tiling()).db("pack columns", table.columns_tiling());
    // Masks that nothing is folded with are rounded, and go back.
    let polys = bytes.polys(2 * shape.plaintexts());
    loaded.upload += polys;
    loaded.staging =
        loaded.staging.max(bytes.chain(&shape, folds) + polys + bytes.respond(1, shape.plaintexts()));
    let loaded = loaded.part("digits and masks", bytes.chain(&shape, folds));
    plan(loaded, MAX_BATCH, |batch| {
        let fold = if folds { bytes.rgsw_power_fold(batch, &shape) } else { 0 };
        lwe_fold(batch, table.tiling())
            + bytes.pack_columns(batch, table.columns_tiling().cols())
            + fold
            + bytes.respond(batch, table.answer_plaintexts())
    })
}
