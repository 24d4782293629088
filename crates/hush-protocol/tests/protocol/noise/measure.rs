//! Measurements of the errors of a look-up with column packing after each step, in steps of a byte (LSB), Q / 256,
//! with the secret that a client draws.

use std::ops::Range;

use hush_cpu::Cpu;
use hush_he::{
    algorithms::{decrypt_response, encrypt_column_query, open_column_keys},
    codec::{packed_bytes, unpack_scaled, unpack_words},
    entities::{OneTimeRingSecret, PublicMatrix, RingDecryptionKey},
    params::ColumnParams,
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::{
    contract::{
        ColumnOps, LweBatch, LweOps, LweQueries, PowerKeys, RingOps, RlweBatch, key_words, lift_words,
    },
    tiling::TiledDb,
};
use hush_protocol::{
    Target,
    any_page::TableParams,
    client::Pending,
    colpack::Colpack,
    column_page::{ColumnPacked, ColumnRing, chain_polys},
    column_table::ColumnTable,
    facts::{CHAIN_FILE, COLUMNS_FILE, DB_FILE},
    wire,
};

use super::centred;
use crate::support::{PUBLIC_SEED, Setup, Stored};

/// A table of `colpack` on the CPU, and what its steps read.
pub(super) struct Measured {
    pub(super) setup: Setup,
    pub(super) table: ColumnTable,
    public: ColumnRing,
    cpu: Cpu,
    ring: <Cpu as RingOps>::Ring,
    db: TiledDb,
    columns: TiledDb,
    chain: <Cpu as ColumnOps>::Chain,
    /// The masks of all plaintexts.
    masks: Vec<u32>,
}

impl Measured {
    /// Creates the table whose database is `matrix`, with a hint of it or another one.
    pub(super) fn new(table: ColumnTable, matrix: Vec<u8>, hint: Option<Vec<u32>>) -> Self {
        let (cpu, params) = (Cpu::new(2).unwrap(), TableParams::new::<ColumnPacked<Colpack>>(table));
        let files = Stored::build(&cpu, &params, &matrix, hint);
        let setup = Setup::of_files(Cpu::new(2).unwrap(), params, matrix, files);
        let public = ColumnRing::new(table.params(), PUBLIC_SEED);
        let ring = cpu.open_ring(public.context().clone()).unwrap();
        let db = setup.files.tiled(DB_FILE, table.tiling());
        let columns = setup.files.tiled(COLUMNS_FILE, table.columns_tiling());
        let polys = chain_polys(&table, setup.files.get(CHAIN_FILE)).unwrap();
        let masks = polys.masks.clone();
        let chain = cpu.open_chain(&ring, &table.pack_shape(), polys).unwrap();
        Self { setup, table, public, cpu, ring, db, columns, chain, masks }
    }

    fn params(&self) -> &ColumnParams {
        self.table.params()
    }

    /// N.
    fn degree(&self) -> usize {
        self.params().ring().degree()
    }
}

/// A query with what its client could know beyond what it keeps.
pub(super) struct Client {
    pub(super) target: Target,
    pub(super) query: wire::Query,
    pub(super) pending: Pending,
    pub(super) key: RingDecryptionKey,
    /// The slots that the vector adds up, in all rows of the table.
    pub(super) expected: Vec<u8>,
    /// Rows of the block that is asked for.
    pub(super) rows: Range<usize>,
}

impl Client {
    /// Encrypts twice with the same randomness: as clients do, and to see the secret.
    pub(super) fn new(setup: &Measured, target: Target, seed: u64) -> Self {
        let (table, public) = (&setup.table, &setup.public);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let (query, pending) = setup.setup.client.query(target.clone(), rng);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let secret = OneTimeRingSecret::sample(setup.params(), rng);
        let (entry, _) = table.place(target.block);
        let (matrix, power) = (PublicMatrix::new(PUBLIC_SEED, table.matrix()), table.exponent(entry));
        let vector = (&matrix, &target.columns[..]);
        let (_, keys, key) = encrypt_column_query(
            setup.params(),
            public.context(),
            public.masks(),
            secret,
            vector,
            power,
            rng,
        );
        assert_eq!(keys, query.packed);
        let blocks = 0..table.shape().blocks;
        let expected = blocks
            .flat_map(|block| setup.setup.expected(&Target { columns: target.columns.clone(), block }))
            .collect();
        let rows = target.block * table.shape().slot_bytes..(target.block + 1) * table.shape().slot_bytes;
        Self { target, query, pending, key, expected, rows }
    }

    /// Coefficients of the secret.
    pub(super) fn secret(&self, setup: &Measured) -> Vec<i32> {
        let ring = setup.public.context().kept();
        let s = ring.inverse(Poly::clone(&self.key.secret().eval(ring)));
        (0..setup.degree()).map(|i| ring.rns().lift_centred(|limb| s.limb(limb)[i]) as i32).collect()
    }

    /// Errors of phases, in LSB, of the given rows.
    pub(super) fn errors(&self, rows: Range<usize>, phases: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let expected = self.expected[rows].iter().map(|&byte| f64::from(byte));
        phases.into_iter().zip(expected).map(|(phase, byte)| centred(phase - byte)).collect()
    }
}

/// (1) The words of all rows, query after query.
pub(super) fn fold(setup: &Measured, clients: &[Client]) -> LweBatch {
    let (cols, bits) = (setup.table.shape().columns, setup.table.widths().query);
    let vectors = clients.iter().map(|client| unpack_scaled(&client.query.first, cols, bits).unwrap());
    setup.cpu.lwe_fold(&setup.db, &LweQueries { cols, words: vectors.flatten().collect() }).unwrap()
}

/// The server's results for a batch.
pub(super) struct Steps {
    pub(super) folded: LweBatch,
    pub(super) packed: LweBatch,
    /// `[query][plane]`.
    pub(super) chosen: RlweBatch,
    pub(super) answers: Vec<Vec<u8>>,
}

impl Steps {
    pub(super) fn new(setup: &Measured, clients: &[Client]) -> Self {
        let (cpu, ring, public) = (&setup.cpu, &setup.ring, &setup.public);
        let queries: Vec<_> = clients.iter().map(|client| client.query.clone()).collect();
        let keys = queries.iter().map(|query| {
            open_column_keys(setup.params(), public.context(), setup.table.folds(), &query.packed).unwrap()
        });
        let keys: Vec<_> = keys.collect();
        let folded = fold(setup, clients);
        let rotations: Vec<_> = keys.iter().map(|keys| &keys.rotation[..]).collect();
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let words = key_words(setup.params().ring().degree(), &rotations);
        let packed =
            cpu.pack_columns(ring, &setup.columns, &setup.chain, folded.clone(), &words, &conjugations);
        let packed = packed.unwrap();
        let bodies: Vec<_> = keys.iter().map(|keys| keys.power.as_ref()).collect();
        let powers = PowerKeys { masks: public.masks().power(), bodies: &bodies };
        let chosen = cpu.rgsw_power_fold(ring, &setup.chain, &packed, powers).unwrap();
        Self { folded, packed, chosen, answers: setup.setup.answer(&queries).unwrap() }
    }
}

/// Errors in LSB after each step, of one look-up.
pub(super) struct Errors {
    /// The errors of all rows after the fold.
    pub(super) fold: Vec<f64>,
    /// The errors of all rows after packing.
    pub(super) packing: Vec<f64>,
    /// The errors of the rows that are asked for, after the folds. The fields below are of the same rows.
    pub(super) folds: Vec<f64>,
    pub(super) response: Vec<f64>,
    /// The errors that rounding b added to the response.
    pub(super) rounded_b: Vec<f64>,
}

impl Errors {
    pub(super) fn new(setup: &Measured, client: &Client, steps: &Steps, index: usize) -> Self {
        let (all, rows) = (0..setup.table.rows(), client.rows.clone());
        let words = |batch: &LweBatch| batch.words[index * batch.rows..][..batch.rows].to_vec();
        let (folded, secret) = (words(&steps.folded), client.secret(setup));
        let fold = all.clone().map(|row| fold_phase(setup, &secret, row, folded[row]));
        let ring = setup.public.context().kept();
        let packed = words(&steps.packed);
        let plaintexts =
            packed.chunks_exact(setup.degree()).zip(setup.masks.chunks_exact(ring.limbs() * setup.degree()));
        let packing = plaintexts.flat_map(|(words, mask)| {
            let b = ring.forward(lift_words(ring, words));
            phases(setup, client, &[mask, b.words()].concat())
        });
        let chosen = steps.chosen.ciphertext(index * setup.table.answer_plaintexts());
        let (response, b) = response(setup, client, &steps.answers[index]);
        let exact = coefficients(setup, &chosen[chosen.len() / 2..]);
        Self {
            fold: client.errors(all.clone(), fold),
            packing: client.errors(all, packing),
            folds: client.errors(rows.clone(), phases(setup, client, chosen)),
            response: client.errors(rows, response),
            rounded_b: difference(&b, &exact).into_iter().map(centred).collect(),
        }
    }
}

/// Returns the phase of a row's folded word.
pub(super) fn fold_phase(setup: &Measured, secret: &[i32], row: usize, word: u32) -> f64 {
    let degree = setup.degree();
    let hint = &setup.setup.files.hints[0][row * degree..(row + 1) * degree];
    let products = hint.iter().zip(secret).map(|(&h, &s)| h.wrapping_mul(s as u32));
    f64::from(products.fold(word, u32::wrapping_add)) / 2f64.powi(24)
}

/// Returns the coefficients of a polynomial modulo Q in LSB, Q / 256.
fn coefficients(setup: &Measured, words: &[u32]) -> Vec<f64> {
    let ring = setup.public.context().kept();
    let poly = ring.inverse(Poly::<Eval>::from_words(words.to_vec(), setup.degree()));
    let lsb = ring.rns().product() as f64 / 256.0;
    (0..setup.degree()).map(|i| ring.rns().lift(|limb| poly.limb(limb)[i]) as f64 / lsb).collect()
}

/// Returns the phase of a ciphertext `a, b` modulo Q.
fn phases(setup: &Measured, client: &Client, ciphertext: &[u32]) -> Vec<f64> {
    let ring = setup.public.context().kept();
    let (a, b) = ciphertext.split_at(ciphertext.len() / 2);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), setup.degree());
    let mut phase = poly(b);
    ring.mul_add(&mut phase, &poly(a), &client.key.secret().eval(ring));
    coefficients(setup, phase.words())
}

/// Returns the phase of an answer of one plaintext, and its b.
fn response(setup: &Measured, client: &Client, answer: &[u8]) -> (Vec<f64>, Vec<f64>) {
    let bits = setup.table.response_bits();
    let mask = packed_bytes(setup.degree(), bits.a);
    let half = |bytes: &[u8], bits| -> Vec<u64> { unpack_words(bytes, setup.degree(), bits).unwrap() };
    let (a, b) = answer.split_at(mask);
    let (a, b) = (half(a, bits.a), half(b, bits.b));
    let phases = decrypt_response(setup.public.context(), client.key.secret(), &a, &b, bits, 1, bits.a);
    let lsb = |bits: u32| 2f64.powi(bits as i32 - 8);
    let phases = phases.iter().map(|&phase| f64::from(phase) / lsb(bits.a));
    (phases.collect(), b.into_iter().map(|b| b as f64 / lsb(bits.b)).collect())
}

pub(super) fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}
