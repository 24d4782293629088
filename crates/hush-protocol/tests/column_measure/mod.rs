//! What a look-up with column packing is off after each step, in steps of a byte (LSB), Q / 256: measured with the secret that a
//! client draws.

use std::ops::Range;

use hush_cpu::Cpu;
use hush_he::{
    algorithms::{decrypt_response, encrypt_column_query, open_column_keys},
    codec::{packed_bytes, unpack_scaled, unpack_wide},
    entities::{OneTimeRingSecret, RingDecryptionKey},
    params::ColumnParams,
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::contract::{
    ColumnOps, LweBatch, LweOps, LweQueries, PowerKeys, RlweBatch, key_words, lift_words,
};
use hush_protocol::{
    Target,
    column_packing::{self, Pending},
    wire,
};

use crate::column_setup::Setup;

/// Bits to which the phase of a response is decoded: all that it has.
const PHASE_BITS: u32 = 18;

fn params(setup: &Setup<Cpu>) -> &ColumnParams {
    setup.table.params()
}

/// N.
fn degree(setup: &Setup<Cpu>) -> usize {
    params(setup).ring().degree()
}

/// A query with what its client could know beyond what it keeps.
pub(crate) struct Client {
    pub(crate) target: Target,
    pub(crate) query: wire::Query,
    pub(crate) pending: Pending,
    pub(crate) key: RingDecryptionKey,
    /// The slots that the vector adds up, in all rows of the table.
    pub(crate) expected: Vec<u8>,
    /// Rows of the block that is asked for.
    pub(crate) rows: Range<usize>,
}

impl Client {
    /// Encrypts twice with the same randomness: as clients do, and to see the secret.
    pub(crate) fn new(setup: &Setup<Cpu>, target: Target, seed: u64) -> Self {
        let (table, scheme) = (&setup.table, &setup.scheme);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let (query, pending) = column_packing::query(table, scheme, target.clone(), rng);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let secret = OneTimeRingSecret::sample(params(setup), rng);
        let (entry, _) = table.place(target.block);
        let (matrix, power) = (table.matrix(), table.exponent(entry));
        let vector = (&matrix, &target.columns[..]);
        let (_, keys, key) =
            encrypt_column_query(params(setup), scheme.context(), scheme.masks(), secret, vector, power, rng);
        assert_eq!(keys, query.packed);
        let blocks = 0..table.shape().blocks;
        let slot = |block| setup.expected(&Target { columns: target.columns.clone(), block });
        let expected = blocks.flat_map(slot).collect();
        let rows = target.block * table.shape().slot_bytes..(target.block + 1) * table.shape().slot_bytes;
        Self { target, query, pending, key, expected, rows }
    }

    /// Coefficients of the secret.
    pub(crate) fn secret(&self, setup: &Setup<Cpu>) -> Vec<i32> {
        let ring = setup.scheme.context().kept();
        let s = ring.inverse(Poly::clone(&self.key.secret().eval(ring)));
        (0..degree(setup)).map(|i| ring.rns().lift_centred(|limb| s.limb(limb)[i]) as i32).collect()
    }

    /// Errors of phases, in LSB, of the given rows.
    pub(crate) fn errors(&self, rows: Range<usize>, phases: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let expected = self.expected[rows].iter().map(|&byte| f64::from(byte));
        phases.into_iter().zip(expected).map(|(phase, byte)| centred(phase - byte)).collect()
    }
}

/// A number modulo 256, from -128 to 128.
pub(crate) fn centred(x: f64) -> f64 {
    (x + 128.0).rem_euclid(256.0) - 128.0
}

/// (1) The words of all rows, query after query.
pub(crate) fn fold(setup: &Setup<Cpu>, clients: &[Client]) -> LweBatch {
    let (cols, bits) = (setup.table.shape().columns, setup.table.query_bits());
    let vectors = clients.iter().map(|client| unpack_scaled(&client.query.first, cols, bits).unwrap());
    setup.backend.lwe_fold(&setup.db, &LweQueries { cols, words: vectors.flatten().collect() }).unwrap()
}

/// What the server makes of a batch.
pub(crate) struct Steps {
    pub(crate) folded: LweBatch,
    pub(crate) packed: LweBatch,
    /// `[query][plane]`.
    pub(crate) chosen: RlweBatch,
    pub(crate) answers: Vec<Vec<u8>>,
}

impl Steps {
    pub(crate) fn new(setup: &Setup<Cpu>, clients: &[Client]) -> Self {
        let (cpu, ring, scheme) = (&setup.backend, &setup.ring, &setup.scheme);
        let queries: Vec<_> = clients.iter().map(|client| client.query.clone()).collect();
        let keys = queries.iter().map(|query| {
            open_column_keys(params(setup), scheme.context(), setup.table.folds(), &query.packed).unwrap()
        });
        let keys: Vec<_> = keys.collect();
        let folded = fold(setup, clients);
        let rotations: Vec<_> = keys.iter().map(|keys| &keys.rotation[..]).collect();
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let words = key_words(params(setup).ring().degree(), &rotations);
        let packed =
            cpu.pack_columns(ring, &setup.columns, &setup.chain, folded.clone(), &words, &conjugations);
        let packed = packed.unwrap();
        let bodies: Vec<_> = keys.iter().map(|keys| keys.power.as_ref()).collect();
        let powers = PowerKeys { masks: scheme.masks().power(), bodies: &bodies };
        let chosen = cpu.rgsw_power_fold(ring, &setup.chain, &packed, powers).unwrap();
        Self { folded, packed, chosen, answers: setup.answer(&queries).unwrap() }
    }
}

/// Errors in LSB after each step, of one look-up.
pub(crate) struct Errors {
    /// Of all rows.
    pub(crate) fold: Vec<f64>,
    /// Of all rows.
    pub(crate) packing: Vec<f64>,
    /// Of the rows that are asked for, as are those below.
    pub(crate) folds: Vec<f64>,
    pub(crate) response: Vec<f64>,
    /// What rounding b added to the response.
    pub(crate) rounded_b: Vec<f64>,
}

impl Errors {
    pub(crate) fn new(setup: &Setup<Cpu>, client: &Client, steps: &Steps, index: usize) -> Self {
        let (all, rows) = (0..setup.table.rows(), client.rows.clone());
        let words = |batch: &LweBatch| batch.words[index * batch.rows..][..batch.rows].to_vec();
        let (folded, secret) = (words(&steps.folded), client.secret(setup));
        let fold = all.clone().map(|row| fold_phase(setup, &secret, row, folded[row]));
        let ring = setup.scheme.context().kept();
        let packed = words(&steps.packed);
        let plaintexts = packed
            .chunks_exact(degree(setup))
            .zip(setup.polys.masks.chunks_exact(ring.limbs() * degree(setup)));
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

/// The phase of a row's folded word.
pub(crate) fn fold_phase(setup: &Setup<Cpu>, secret: &[i32], row: usize, word: u32) -> f64 {
    let degree = degree(setup);
    let hint = &setup.hint[row * degree..(row + 1) * degree];
    let products = hint.iter().zip(secret).map(|(&h, &s)| h.wrapping_mul(s as u32));
    f64::from(products.fold(word, u32::wrapping_add)) / 2f64.powi(24)
}

/// The coefficients of a polynomial modulo Q in LSB, Q / 256.
fn coefficients(setup: &Setup<Cpu>, words: &[u32]) -> Vec<f64> {
    let ring = setup.scheme.context().kept();
    let poly = ring.inverse(Poly::<Eval>::from_words(words.to_vec(), degree(setup)));
    let lsb = ring.rns().product() as f64 / 256.0;
    (0..degree(setup)).map(|i| ring.rns().lift(|limb| poly.limb(limb)[i]) as f64 / lsb).collect()
}

/// The phase of a ciphertext `a, b` modulo Q.
fn phases(setup: &Setup<Cpu>, client: &Client, ciphertext: &[u32]) -> Vec<f64> {
    let ring = setup.scheme.context().kept();
    let (a, b) = ciphertext.split_at(ciphertext.len() / 2);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), degree(setup));
    let mut phase = poly(b);
    ring.mul_add(&mut phase, &poly(a), &client.key.secret().eval(ring));
    coefficients(setup, phase.words())
}

/// The phase of an answer of one plaintext, and its b.
fn response(setup: &Setup<Cpu>, client: &Client, answer: &[u8]) -> (Vec<f64>, Vec<f64>) {
    let bits = params(setup).ring().response_bits();
    let words = |bytes: &[u8], bits| -> Vec<u64> {
        unpack_wide(bytes, degree(setup), bits).unwrap().map(|word| word as u64).collect()
    };
    let (a, b) = answer.split_at(packed_bytes(degree(setup), bits.a));
    let (a, b) = (words(a, bits.a), words(b, bits.b));
    let phases = decrypt_response(setup.scheme.context(), client.key.secret(), &a, &b, PHASE_BITS);
    let lsb = |bits: u32| 2f64.powi(bits as i32 - 8);
    let phases = phases.iter().map(|&phase| f64::from(phase) / lsb(PHASE_BITS));
    (phases.collect(), b.into_iter().map(|b| b as f64 / lsb(bits.b)).collect())
}

pub(crate) fn std(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

pub(crate) fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}
