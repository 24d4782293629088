//! Column packing on the reference backend: exact bytes, and noise as its formulas say.

use std::sync::Arc;

use hush_he::{
    algorithms::{encrypt_column_query, open_column_keys},
    entities::{ColumnMasks, MatrixDomain, OneTimeRingSecret, RingDecryptionKey},
    params::{ColumnNoise, ColumnParams, INSECURE_COLPACK_N256, RingContext},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::{
    contract::{ChainPolys, ColumnOps, LweBatch, LweOps, LweQueries, RlweBatch, key_words, rgsw_rows},
    pack_shape::PackShape,
    reference::{Reference, lift_words},
    tiling::TiledDb,
};

/// What a table holds.
#[derive(Clone, Copy, Debug)]
enum Content {
    Random,
    /// Every byte -128: what the noise formulas take for the worst.
    Lowest,
    SameRows,
    Sparse,
    Zero,
}

/// A table of `entries` entries of `rows` rows, packed.
struct Packed {
    params: ColumnParams,
    context: Arc<RingContext>,
    masks: ColumnMasks,
    shape: PackShape,
    db: TiledDb,
    columns: TiledDb,
    polys: ChainPolys,
}

impl Packed {
    fn new(content: Content, cols: usize, entries: usize, entry_rows: usize, rng: &mut Csprng) -> Self {
        let params = INSECURE_COLPACK_N256;
        let context = Arc::new(RingContext::new(*params.ring()));
        let masks = ColumnMasks::new(&context);
        let n = params.lwe().n();
        let shape = PackShape::new(n, entries * entry_rows, entry_rows).unwrap();
        let mut matrix = vec![0; shape.rows() * cols];
        match content {
            Content::Random => rng.fill_bytes(&mut matrix),
            Content::Lowest => matrix.fill(0x80),
            Content::SameRows => {
                rng.fill_bytes(&mut matrix[..cols]);
                (1..shape.rows()).for_each(|row| matrix.copy_within(..cols, row * cols));
            }
            Content::Sparse => matrix.iter_mut().step_by(1009).for_each(|byte| *byte = 0x80),
            Content::Zero => {}
        }
        let db = TiledDb::from_matrix(shape.rows(), cols, &matrix);
        let a = params.lwe().public_matrix(MatrixDomain::First, cols);
        let hint = Reference.lwe_hint(&db, &a, 0..shape.rows()).unwrap();
        let mut bytes = Vec::new();
        let mut polys = ChainPolys { digits: Vec::new(), masks: Vec::new() };
        for column in 0..shape.plaintexts() {
            let rows = shape.plaintext_rows(column);
            let chained =
                Reference.chain_hint(&context, &masks, &hint[rows.start * n..rows.end * n]).unwrap();
            bytes.extend(chained.columns);
            polys.digits.extend(chained.digit);
            polys.masks.extend(chained.mask);
        }
        let columns = TiledDb::from_matrix(shape.rows(), 4 * n, &bytes);
        Self { params, context, masks, shape, db, columns, polys }
    }

    /// Errors of the decoded bytes in LSB: after packing, and after folding to the last entry.
    fn errors(&self, ones: usize, rng: &mut Csprng) -> [Vec<f64>; 2] {
        let cols = self.db.tiling().cols();
        let a = self.params.lwe().public_matrix(MatrixDomain::First, cols);
        let message: Vec<(u32, u8)> = (0..ones).map(|i| ((7 + i) as u32, 1)).collect();
        let entries = self.shape.entries();
        let power =
            (entries > 1).then(|| 2 * self.shape.degree() / entries.next_power_of_two() * (entries - 1));
        let secret = OneTimeRingSecret::sample(&self.params, rng);
        let (words, keys, key) = encrypt_column_query(
            &self.params,
            &self.context,
            &self.masks,
            secret,
            (&a, &message),
            power,
            rng,
        );
        let keys =
            open_column_keys(&self.params, &self.context, &self.masks, power.is_some(), &keys).unwrap();
        let folded = Reference.lwe_fold(&self.db, &LweQueries { cols, words }).unwrap();
        let chain = Reference.open_chain(&self.context, &self.shape, self.polys.clone()).unwrap();
        let key_words = key_words(&[&keys.rotation]);
        let packed = Reference
            .pack_columns(&self.context, &self.columns, &chain, folded, &key_words, &[&keys.conjugation])
            .unwrap();
        let power = rgsw_rows(keys.power.as_ref());
        let chosen = Reference.rgsw_power_fold(&self.context, &chain, &packed, &[&power]).unwrap().remove(0);
        let wanted = |row: usize| {
            let sum: i32 =
                message.iter().map(|&(column, _)| i32::from(self.db.at(row, column as usize))).sum();
            f64::from(sum as u8)
        };
        let all = (0..self.shape.plaintexts()).flat_map(|column| {
            let rows = self.shape.plaintext_rows(column);
            let phases = self.phases(&key, &self.entry(&packed, column), rows.len());
            rows.zip(phases).map(|(row, phase)| distance(phase, wanted(row))).collect::<Vec<_>>()
        });
        let last = (0..self.shape.planes()).flat_map(|plane| {
            let rows = self.shape.plaintext_rows((entries - 1) * self.shape.planes() + plane);
            let phases = self.phases(&key, chosen.ciphertext(plane), rows.len());
            rows.zip(phases).map(|(row, phase)| distance(phase, wanted(row))).collect::<Vec<_>>()
        });
        [all.collect(), last.collect()]
    }

    /// The packed ciphertext of a column.
    fn entry(&self, packed: &LweBatch, column: usize) -> Vec<u32> {
        let ring = self.context.kept();
        let poly = ring.limbs() * ring.degree();
        let b = ring.forward(lift_words(ring, &packed.words[self.shape.plaintext_rows(column)]));
        [&self.polys.masks[column * poly..][..poly], b.words()].concat()
    }

    /// The first coefficients of the phase in LSB.
    fn phases(&self, key: &RingDecryptionKey, ciphertext: &[u32], count: usize) -> Vec<f64> {
        let ring = self.context.kept();
        let (a, b) = ciphertext.split_at(ciphertext.len() / 2);
        let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), ring.degree());
        let mut phase = poly(b);
        ring.mul_add(&mut phase, &poly(a), &key.secret().eval(ring));
        let phase = ring.inverse(phase);
        let lsb = ring.rns().product() as f64 / 256.0;
        (0..count).map(|i| ring.rns().lift(|limb| phase.limb(limb)[i]) as f64 / lsb).collect()
    }
}

/// The difference of two numbers modulo 256, centred.
fn distance(x: f64, y: f64) -> f64 {
    (x - y + 128.0).rem_euclid(256.0) - 128.0
}

fn std(errors: &[f64]) -> f64 {
    (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
fn packing_and_folds_add_what_their_formulas_say() {
    let rng = &mut Csprng::insecure_from_seed(17);
    let params = INSECURE_COLPACK_N256;
    for (content, entries, rows, ones) in [
        (Content::Random, 1, 256, 1),
        (Content::Random, 4, 256, 1),
        (Content::Random, 5, 300, 32),
        (Content::Random, 16, 100, 1),
        (Content::Lowest, 4, 256, 1),
        (Content::SameRows, 4, 256, 32),
        (Content::Sparse, 3, 512, 1),
        (Content::Zero, 2, 256, 1),
    ] {
        let table = Packed::new(content, 64, entries, rows, rng);
        let folds = entries.next_power_of_two() - 1;
        let noise = ColumnNoise::new(&params, 64, 32, folds);
        let runs: Vec<_> = (0..4).map(|_| table.errors(ones, rng)).collect();
        let [packed, folded] = [0, 1].map(|i| runs.iter().flat_map(|run| run[i].clone()).collect::<Vec<_>>());
        let predicted = noise.packing.hypot(noise.lwe.std());
        let all = predicted.hypot(noise.folds);
        println!(
            "{content:?} {entries} x {rows}: packed {:.5} ({predicted:.5}), folded {:.5} ({all:.5}), folds {:.5}",
            std(&packed),
            std(&folded),
            noise.folds
        );
        assert!(packed.iter().chain(&folded).all(|error| error.abs() < 0.5));
        assert!(std(&packed) < 1.15 * predicted && std(&folded) < 1.15 * all, "{content:?}");
    }
}

/// Margin of the worst table at 2^16 columns, in bits.
#[test]
fn the_margin_is_kept() {
    let noise = ColumnNoise::new(&hush_he::params::COLPACK_N2048_Q52, 1 << 16, 27, 63);
    let bits = ((0.5 - noise.response_bound) / noise.std()).log2();
    assert!(bits > 3.58, "{bits}: 12 sigma");
}

/// A batch is answered like its queries one by one.
#[test]
fn batches_are_their_queries() {
    let rng = &mut Csprng::insecure_from_seed(18);
    let table = Packed::new(Content::Random, 32, 3, 300, rng);
    let ring = table.context.kept();
    let poly = ring.limbs() * ring.degree();
    let chain = Reference.open_chain(&table.context, &table.shape, table.polys.clone()).unwrap();
    let rotations: Vec<Vec<u64>> = (0..2).map(|_| (0..256).map(|_| rng.next_u64()).collect()).collect();
    let conjugations: Vec<Poly<Eval>> = (0..2).map(|_| ring.expand_uniform(rng)).collect();
    let powers: Vec<RlweBatch> = (0..2)
        .map(|_| {
            let rows = (0..4).flat_map(|_| ring.expand_uniform::<Eval>(rng).into_words());
            RlweBatch { ciphertext_words: 2 * poly, words: rows.collect::<Vec<_>>().into() }
        })
        .collect();
    let mut words = vec![0; 2 * table.shape.rows()];
    rng.fill_u32(&mut words);
    let answer = |queries: &[usize]| {
        let rotations: Vec<&[u64]> = queries.iter().map(|&q| &rotations[q][..]).collect();
        let conjugations: Vec<_> = queries.iter().map(|&q| &conjugations[q]).collect();
        let powers: Vec<_> = queries.iter().map(|&q| &powers[q]).collect();
        let words = queries.iter().flat_map(|&q| words.chunks(table.shape.rows()).nth(q).unwrap().to_vec());
        let folded = LweBatch { rows: table.shape.rows(), words: words.collect() };
        let keys = key_words(&rotations);
        let packed = Reference
            .pack_columns(&table.context, &table.columns, &chain, folded, &keys, &conjugations)
            .unwrap();
        Reference.rgsw_power_fold(&table.context, &chain, &packed, &powers).unwrap()
    };
    assert_eq!(answer(&[0, 1]), [answer(&[0]), answer(&[1])].concat());
}
