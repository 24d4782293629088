//! SimplePIR, path (1): the answer is the database times the query.
//!
//! The table is a matrix of bytes, and a query encrypts a small vector over its columns. The answer holds one word for each
//! row. The client decrypts the rows of the wanted block with its copy of the hint `H = db * A`.
//!
//! | message | words            | width                            |
//! |---------|------------------|----------------------------------|
//! | query   | columns (D0)     | `query_bits`                     |
//! | answer  | blocks x slot    | `answer_bits`                    |
//! | hint    | rows x n         | `hint_bits`, downloaded once     |
//!
//! Source: SimplePIR (Henzinger, Hong, Corrigan-Gibbs, Meiklejohn, Vaikuntanathan) section 4.
//! Ours: words are sent rounded to the widths that the noise allows, and a query may encrypt any small vector (for a key
//! look-up), not only a one-hot vector.

use hush_he::{
    algorithms::{PreparedLwe, decrypt_byte, phase},
    codec::{pack_rounded, unpack_scaled},
    entities::{LweDecryptionKey, OneTimeLweSecret, PublicMatrix, PublicSeed},
    params::LweParams,
};
use hush_math::{constant_time::chunk_at, csprng::Csprng};
use hush_ops::{
    contract::{LweBatch, LweOps, Rounding, SentRows},
    path::Step,
    steps::SendWords,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    layout::{ANSWER_WORD, HINT_WORD, QUERY_WORD},
    lwe_page::{LwePage, OpenedLwe, hint_row},
    lwe_table::{LweSpec, LweTable},
    registry::Protocol,
    response::choose_lane,
    table::LOOKUPS_PER_EPOCH,
    target::Target,
    wire,
};

/// The page of `simple`.
pub type Simple = OneFold<false>;

/// The page of a protocol with one fold. `ONE_BLOCK` is whether all slots lie in one block (`frodo`) or in several (`simple`).
pub struct OneFold<const ONE_BLOCK: bool>;

/// A query without its target. `hint_products` is the product of each row of the hint and the secret, if that was computed ahead:
/// `b'` and `d'` of ChalametPIR appendix C.4.
pub struct PreparedSimple {
    query: PreparedLwe,
    hint_products: Option<Zeroizing<Vec<u32>>>,
}

/// The state that the client keeps between query and answer.
pub struct SimplePending {
    key: LweDecryptionKey,
    hint_products: Option<Zeroizing<Vec<u32>>>,
}

impl<const ONE_BLOCK: bool> LwePage for OneFold<ONE_BLOCK> {
    const NAME: &'static str = if ONE_BLOCK { "frodo" } else { "simple" };
    const SPEC: LweSpec = LweSpec {
        protocol: if ONE_BLOCK { Protocol::Frodo } else { Protocol::Simple },
        one_block: ONE_BLOCK,
        second_fold: false,
    };
    type Prepared = PreparedSimple;
    type Pending = SimplePending;

    /// Returns the number of slots if there is one block. Otherwise returns the number with the least bytes of query +
    /// answer + hint / look-ups, which is `sqrt(table bytes * (answer + n * hint / look-ups) / query)`, in bytes of a word.
    fn columns(lwe: &LweParams, slots: usize, slot_bytes: usize) -> usize {
        if ONE_BLOCK {
            return slots;
        }
        let row_cost = ANSWER_WORD + HINT_WORD * lwe.n() as f64 / LOOKUPS_PER_EPOCH;
        ((slots as f64 * slot_bytes as f64) * row_cost / QUERY_WORD).sqrt() as usize
    }

    fn prepare(table: &LweTable, seed: PublicSeed, rng: &mut Csprng) -> PreparedSimple {
        let secret = OneTimeLweSecret::sample(table.lwe(), rng);
        let matrix = PublicMatrix::new(seed, table.first_matrix());
        PreparedSimple { query: PreparedLwe::new(table.lwe(), &matrix, secret, rng), hint_products: None }
    }

    /// Multiplies all rows of the hint by the secret, because the wanted block is not known yet.
    fn prepare_recovery(
        table: &LweTable,
        hint: &[u8],
        prepared: &mut PreparedSimple,
    ) -> Result<(), ProtocolError> {
        let mut products = Zeroizing::new(Vec::with_capacity(table.rows()));
        for row in 0..table.rows() {
            products.push(phase(0, &hint_row(table, hint, row)?, prepared.query.key()));
        }
        prepared.hint_products = Some(products);
        Ok(())
    }

    fn ask(table: &LweTable, prepared: PreparedSimple, target: &Target) -> (wire::Query, SimplePending) {
        let (words, key) = prepared.query.encrypt(&target.columns);
        let first = pack_rounded(&words, table.widths().query).into();
        let pending = SimplePending { key, hint_products: prepared.hint_products };
        (wire::Query { first, ..Default::default() }, pending)
    }

    fn path_behind(table: &LweTable) -> Vec<Step> {
        vec![Step::of_batch(SendWords { rows: table.rows(), bytes: table.answer_bytes() })]
    }

    fn finish<B: LweOps>(
        backend: &B,
        table: &LweTable,
        _: Option<(&B::Db, PublicMatrix)>,
        _: &OpenedLwe,
        folded: &LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let all = SentRows { rows: 0..table.rows(), bits: table.widths().answer };
        Ok(backend.send_words(folded, &[all], Rounding::HalfEven)?)
    }

    fn recover(
        table: &LweTable,
        hint: &[u8],
        pending: &SimplePending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Vec<u8>, ProtocolError> {
        let shape = table.shape();
        let words = unpack_scaled(answer, table.rows(), table.widths().answer)?;
        // All blocks are read, so that no memory address depends on the target. A hint in a file is not even all in memory.
        let of_block = |words: &[u32]| choose_lane(words, shape.slot_bytes, shape.blocks, target.block);
        let words = of_block(&words);
        if let Some(products) = &pending.hint_products {
            let byte = |(word, product): (&u32, &u32)| decrypt_byte(word.wrapping_add(*product));
            return Ok(words.iter().zip(of_block(products).iter()).map(byte).collect());
        }
        let hint = chunk_at(hint, shape.slot_bytes * table.hint_row_bytes(), target.block);
        let byte = |(row, &word): (usize, &u32)| {
            Ok(decrypt_byte(phase(word, &hint_row(table, &hint, row)?, &pending.key)))
        };
        words.iter().enumerate().map(byte).collect()
    }
}
