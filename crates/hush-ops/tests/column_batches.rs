//! Column packing on the reference backend: a query is answered alike alone and with others.

use std::sync::Arc;

use hush_he::params::{INSECURE_COLPACK_N256, RingContext};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
};
use hush_ops::{
    contract::{ChainPolys, ColumnOps, LweBatch, PACK_BYTES, PowerKeys, key_words},
    pack_shape::PackShape,
    reference::Reference,
    tiling::TiledDb,
};

const DEGREE: usize = 256;

/// A batch is answered like its queries one by one.
#[test]
fn batches_are_their_queries() {
    let rng = &mut Csprng::insecure_from_seed(18);
    let context = Arc::new(RingContext::new(*INSECURE_COLPACK_N256.ring()));
    let ring = context.kept();
    // Three entries of two planes.
    let shape = PackShape::new(DEGREE, 900, 300).unwrap();
    let mut bytes = vec![0; shape.rows() * PACK_BYTES * DEGREE];
    rng.fill_bytes(&mut bytes);
    let columns = TiledDb::from_matrix(shape.rows(), PACK_BYTES * DEGREE, &bytes);
    let mut polys = |count: usize| -> Vec<u32> {
        (0..count).flat_map(|_| ring.expand_uniform::<Eval>(rng).into_words()).collect()
    };
    let chain = ChainPolys { digits: polys(shape.plaintexts()), masks: polys(shape.plaintexts()) };
    let chain = Reference.open_chain(&context, &shape, chain).unwrap();
    let masks = [(); 2].map(|()| ring.expand_uniform(rng));
    let powers: Vec<[Poly<Coeff>; 2]> = (0..2).map(|_| [(); 2].map(|()| ring.expand_uniform(rng))).collect();
    let conjugations: Vec<Poly<Coeff>> = (0..2).map(|_| ring.expand_uniform(rng)).collect();
    let rotations: Vec<Vec<u64>> = (0..2).map(|_| (0..DEGREE).map(|_| rng.next_u64()).collect()).collect();
    let mut words = vec![0; 2 * shape.rows()];
    rng.fill_u32(&mut words);
    let answer = |queries: &[usize]| {
        let rotations: Vec<&[u64]> = queries.iter().map(|&q| &rotations[q][..]).collect();
        let conjugations: Vec<_> = queries.iter().map(|&q| &conjugations[q]).collect();
        let bodies: Vec<_> = queries.iter().map(|&q| Some(&powers[q])).collect();
        let powers = PowerKeys { masks: &masks, bodies: &bodies };
        let words = queries.iter().flat_map(|&q| words.chunks(shape.rows()).nth(q).unwrap().to_vec());
        let folded = LweBatch { rows: shape.rows(), words: words.collect() };
        let keys = key_words(DEGREE, &rotations);
        let packed =
            Reference.pack_columns(&context, &columns, &chain, folded, &keys, &conjugations).unwrap();
        Reference.rgsw_power_fold(&context, &chain, &packed, powers).unwrap().words.to_vec()
    };
    let [first, second] = [answer(&[0]), answer(&[1])];
    assert_ne!(first, second);
    assert_eq!(answer(&[0, 1]), [&first[..], &second[..]].concat());
    assert_eq!(answer(&[1, 0]), [second, first].concat());
}
