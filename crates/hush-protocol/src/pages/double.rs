//! DoublePIR, path (1)(2)(1): the result of a first fold becomes a small database, which is folded again.
//!
//! After step (1) the client needs one row block of the hint H and one of the answer, both of LWE words. These are cut into
//! bytes (2) and laid out with a column for every block. A second query, under a fresh secret and an independent A2,
//! selects the block. Clients download the hint of the second fold. Its size does not depend on the table, but grows by `n
//! * digits * n` words with every byte of a slot, so the protocol is for tiny slots.
//!
//! ```text
//!   H  (blocks x slot x n)  --(2), at build-->  M1  (slot*n*digits x blocks)   hint = M1 * A2
//!   a1 (blocks x slot)      --(2), online --->  M2  (slot*digits   x blocks)
//!   answer = [ M1 * q2 | M2 * q2 | M2 * A2 ]
//! ```
//!
//! Source: SimplePIR paper section 5; VIPIR section 3.2. Ours: 2 digits (16 bits) instead of the whole words.

use hush_he::{
    algorithms::{PreparedLwe, decrypt_byte, phase},
    codec::{pack_rounded, packed_bytes, unpack_scaled},
    entities::{LweDecryptionKey, OneTimeLweSecret, PublicMatrix, PublicSeed},
    params::LweParams,
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweBatch, LweOps, Rounding, SentRows},
    path::Step,
    steps::{FoldOnline, LweFold, LweHint, ReinterpretLwe, SendWords},
    tiling::Tiling,
};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    layout::DOUBLE_MIN_COLUMNS,
    lwe_page::{LwePage, OpenedLwe, hint_row},
    lwe_table::{LweSpec, LweTable},
    online_rows::OnlineRows,
    registry::Protocol,
    target::Target,
    wire,
};

/// The page of `double`.
pub struct Double;

/// A query without its target: a vector over the columns, and one over the blocks.
pub struct PreparedDouble {
    first: PreparedLwe,
    second: PreparedLwe,
}

/// The state that the client keeps between query and answer.
pub struct DoublePending {
    first: LweDecryptionKey,
    second: LweDecryptionKey,
}

impl LwePage for Double {
    const NAME: &'static str = "double";
    const SPEC: LweSpec = LweSpec { protocol: Protocol::Double, one_block: false, second_fold: true };
    type Prepared = PreparedDouble;
    type Pending = DoublePending;

    fn columns(_: &LweParams, slots: usize, _: usize) -> usize {
        DOUBLE_MIN_COLUMNS.max((slots as f64).sqrt() as usize)
    }

    /// Encrypts zeros for the columns under one fresh secret, and for the blocks under another.
    fn prepare(table: &LweTable, seed: PublicSeed, rng: &mut Csprng) -> PreparedDouble {
        let lwe = table.lwe();
        let [first, second] = [table.first_matrix(), table.second_matrix()].map(|shape| {
            let secret = OneTimeLweSecret::sample(lwe, rng);
            PreparedLwe::new(lwe, &PublicMatrix::new(seed, shape), secret, rng)
        });
        PreparedDouble { first, second }
    }

    fn ask(table: &LweTable, prepared: PreparedDouble, target: &Target) -> (wire::Query, DoublePending) {
        let widths = table.widths();
        let (first, first_key) = prepared.first.encrypt(&target.columns);
        let (second, second_key) = prepared.second.encrypt(&[(target.block as u32, 1)]);
        let pack = |words: &[u32]| pack_rounded(words, widths.query).into();
        let query = wire::Query { first: pack(&first), second: pack(&second), ..Default::default() };
        (query, DoublePending { first: first_key, second: second_key })
    }

    fn path_behind(table: &LweTable) -> Vec<Step> {
        let online = Tiling::new(table.second_answer_rows(), table.shape().blocks);
        let rows = table.second_hint_rows() + table.second_answer_rows() * (1 + table.lwe().n());
        vec![
            Step::of_batch(LweFold { db: table.second_tiling() }),
            Step::of_batch(ReinterpretLwe { words: table.rows(), db: online }),
            Step::of_batch(FoldOnline { db: online }),
            Step::of_batch(LweHint { db: online, matrix: table.second_matrix(), parts: 1 }),
            Step::of_batch(SendWords { rows, bytes: table.answer_bytes() }),
        ]
    }

    fn finish<B: LweOps>(
        backend: &B,
        table: &LweTable,
        second: Option<(&B::Db, PublicMatrix)>,
        opened: &OpenedLwe,
        folded: &LweBatch<B::Words>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let queries = opened.second.batch();
        if queries == 0 {
            return Ok(Vec::new());
        }
        let words = (table.shape().slot_bytes, table.digits());
        let (second_db, matrix) = second.expect("double has a second database");
        let hint_part = backend.lwe_fold(second_db, &opened.second)?; //                     (1) over M1
        let online = OnlineRows::new(backend, folded, words, &opened.second, &matrix)?; //   (2)(1)
        let own: Vec<_> = (0..queries).map(|query| online.words(query)).collect();
        let answer_part = LweBatch { rows: table.second_answer_rows(), words: backend.join(&own)? };
        let send = |words: &LweBatch<B::Words>, bits| {
            backend.send_words(words, &[SentRows { rows: 0..words.rows, bits }], Rounding::HalfEven)
        };
        let answer = table.widths().answer;
        let hint = table.widths().hint;
        let mut answers = send(&hint_part, answer)?;
        for part in [send(&answer_part, answer)?, send(&online.into_hints(), hint)?] {
            answers.iter_mut().zip(part).for_each(|(answer, part)| answer.extend(part));
        }
        Ok(answers)
    }

    /// Decrypts the second fold, whose bytes are the digits of the first fold's words, then decrypts these.
    fn recover(
        table: &LweTable,
        hint: &[u8],
        pending: &DoublePending,
        _: &Target,
        answer: &[u8],
    ) -> Result<Vec<u8>, ProtocolError> {
        let widths = table.widths();
        let n = table.lwe().n();
        let digits = table.digits();
        let hint_rows = table.second_hint_rows();
        let answer_rows = table.second_answer_rows();
        let (hint_part, rest) = answer.split_at(packed_bytes(hint_rows, widths.answer));
        let (answer_part, online_hint) = rest.split_at(packed_bytes(answer_rows, widths.answer));

        let words = unpack_scaled(hint_part, hint_rows, widths.answer)?;
        // The bytes decrypted here reveal the wanted block, so they are wiped like the secrets.
        let mut hint_digits: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(hint_rows));
        for (row, &word) in words.iter().enumerate() {
            hint_digits.push(decrypt_byte(phase(word, &hint_row(table, hint, row)?, &pending.second)));
        }

        let words = unpack_scaled(answer_part, answer_rows, widths.answer)?;
        let online_hint = unpack_scaled(online_hint, answer_rows * n, widths.hint)?;
        let mut answer_digits: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(answer_rows));
        for (row, &word) in words.iter().enumerate() {
            answer_digits.push(decrypt_byte(phase(word, &online_hint[row * n..][..n], &pending.second)));
        }

        let first_hint = Zeroizing::new(join_digits(&hint_digits, digits));
        let first_answer = Zeroizing::new(join_digits(&answer_digits, digits));
        Ok(first_answer
            .iter()
            .enumerate()
            .map(|(byte, &word): (usize, &u32)| {
                decrypt_byte(phase(word, &first_hint[byte * n..][..n], &pending.first))
            })
            .collect())
    }
}

/// Returns words modulo 2^32 from their top `digits` bytes each, least significant byte first.
pub(crate) fn join_digits(bytes: &[u8], digits: usize) -> Vec<u32> {
    bytes
        .chunks_exact(digits)
        .map(|word| {
            word.iter().rev().fold(0u32, |acc, &byte| acc << 8 | u32::from(byte)) << (32 - 8 * digits)
        })
        .collect()
}
