//! The baselines of measurements compute what the steps do.

use std::sync::Arc;

use crate::{coverage, devices::small};
use hush_cuda::{
    Cuda, baselines,
    device::{Buffer, Device},
};
use hush_he::params::{INSECURE_PACK_N256, RingContext};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::RingOps,
    ntt_tiling::{NttTiledDb, NttTiling},
    steps,
};

fn uploaded(device: &Device, words: &[u32]) -> Buffer<u32> {
    device.upload(words).expect("the device holds them")
}

fn read(device: &Device, words: &Buffer<u32>) -> Vec<u32> {
    device.download(&words.slice(..)).expect("the device is there")
}

#[test]
fn small_baselines_fold() {
    let devices = small();
    for device in &devices {
        for queries in [1, 9] {
            fold_bytes(device, queries, |rng| rng.next_u32());
            fold_bytes(device, queries, |_| 0x8080_8080);
        }
        for queries in [1, 5] {
            fold_residues(device, queries, |rng, p| rng.next_u32() % p);
            fold_residues(device, queries, |_, p| p - 1);
        }
    }
    coverage::assert_launched(&devices, coverage::BASELINES);
}

fn fold_bytes(device: &Device, queries: usize, mut word: impl FnMut(&mut Csprng) -> u32) {
    let (rows, columns) = (12, 7);
    let rng = &mut Csprng::insecure_from_seed(1);
    let db: Vec<u32> = (0..rows * columns / 4).map(|_| word(rng)).collect();
    let asked: Vec<u32> = (0..queries * columns).map(|_| word(rng)).collect();
    let bytes: Vec<i8> = db.iter().flat_map(|word| word.to_le_bytes()).map(|byte| byte as i8).collect();
    let expected = asked.chunks(columns).flat_map(|query| {
        let bytes = &bytes;
        (0..rows).map(move |row| {
            let products = query.iter().zip(bytes.chunks(rows));
            products.fold(0u32, |sum, (word, bytes)| sum.wrapping_add(word.wrapping_mul(bytes[row] as u32)))
        })
    });
    let (db, asked) = (uploaded(device, &db), uploaded(device, &asked));
    let folded = baselines::lwe_fold(device, &db, &asked, rows, columns).expect("it is launched");
    assert_eq!(read(device, &folded), expected.collect::<Vec<_>>());
}

fn fold_residues(device: &Device, queries: usize, mut residue: impl FnMut(&mut Csprng, u32) -> u32) {
    let (rows, columns) = (5, 3);
    let context = Arc::new(RingContext::new(*INSECURE_PACK_N256.ring()));
    let kept = context.kept();
    let rng = &mut Csprng::insecure_from_seed(2);
    let mut polys = |count: usize| -> Vec<u32> {
        let limbs = (0..count).flat_map(|_| kept.moduli());
        limbs
            .flat_map(|p| (0..kept.degree()).map(|_| p.value()).collect::<Vec<_>>())
            .map(|p| residue(rng, p))
            .collect()
    };
    let db = polys(rows * columns);
    let selectors: Vec<_> = (0..queries).map(|_| polys(2 * rows)).collect();
    let tiling = NttTiling::new(kept.degree(), kept.limbs(), rows, columns).expect("whole groups");
    let slices: Vec<&[u32]> = selectors.iter().map(Vec::as_slice).collect();
    let expected = steps::rlwe_fold::reference(kept.moduli(), &NttTiledDb::from_polys(tiling, &db), &slices);
    let ring = Cuda::new(device.clone()).open_ring(context.clone()).expect("the device holds the tables");
    let selectors: Vec<_> = selectors.iter().map(|words| uploaded(device, words)).collect();
    let selectors: Vec<_> = selectors.iter().collect();
    let folded = baselines::rlwe_fold(device, ring.kept(), &uploaded(device, &db), &selectors, rows);
    assert_eq!(read(device, &folded.expect("it is launched")), expected.concat());
}
