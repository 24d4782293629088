//! Noise of packed answers at full size: 2^16 columns, a whole plane, fresh keys, random and structured databases. Every
//! byte is decoded, and the measured error stays below what `PackNoise` predicts for the worst database.

use std::sync::Arc;

use hush_cpu::Cpu;
use hush_he::{
    algorithms::decrypt_response,
    codec::{packed_bytes, unpack_wide},
    params::{PACK_M31, PackNoise, PackParams, RingContext, VIPIR_N4096_3X29},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, PackOps, RingOps},
    tiling::TiledDb,
};
use hush_protocol::{
    Target,
    pack_table::PackTable,
    packing::{self, PackHost},
    ring_keys::{RingKeys, open_upload},
    table::{Protocol, TableShape},
};

/// Bits to which phases are decoded to measure their error: steps of 2^-10 of a byte.
const PHASE_BITS: u32 = 18;
const SLOT: usize = 4096;

/// Standard deviation and maximum of the error in LSB, over answers to `keys` clients.
fn measure(
    cpu: &Cpu,
    params: PackParams,
    columns: usize,
    keys: u8,
    fill: &mut dyn FnMut(&mut [u8]),
) -> (PackTable, f64, f64) {
    let shape = TableShape { columns, blocks: 1, slot_bytes: SLOT };
    let table = PackTable::new(Protocol::Hybrid, params, shape).unwrap();
    let mut matrix = vec![0; SLOT * columns];
    fill(&mut matrix);
    let context = RingContext::new(*params.ring());
    let ring = cpu.open_ring(Arc::new(context.clone()));
    let db = cpu.open_db(TiledDb::from_matrix(SLOT, columns, &matrix)).unwrap();
    let hint = cpu.lwe_hint(&db, &table.first_matrix(), 0..SLOT).unwrap();
    let hint = cpu.lift_hint(&ring, &hint, params.lwe().n(), &table.first_shape(), 0..1).unwrap();
    let host = PackHost {
        backend: cpu,
        ring: &ring,
        context: &context,
        table: &table,
        db: &db,
        second_db: None,
        hint: &hint,
    };
    let (mut squares, mut largest) = (0.0, 0f64);
    for key in 0..keys {
        let client = RingKeys::from_seed(params.ring(), &[key; 32]);
        let keys = cpu.open_evaluation_keys(&ring, open_upload(&context, client.upload()).unwrap()).unwrap();
        let column = columns / 3 * usize::from(key + 1) - 1;
        let target = Target { columns: vec![(column as u32, 1)], block: 0 };
        let rng = &mut Csprng::insecure_from_seed(u64::from(key));
        let (query, pending) = packing::query(&table, &client, target, rng);
        let answer = packing::answer(&host, &[query], &[&keys]).unwrap().remove(0);
        let expected: Vec<u8> = (0..SLOT).map(|row| matrix[row * columns + column]).collect();
        assert_eq!(*packing::recover(&table, &client, &pending, &answer).unwrap(), expected);
        let bits = params.ring().response_bits();
        let (a, b) = answer.split_at(packed_bytes(SLOT, bits.a));
        let words = |bytes, bits| -> Vec<u64> {
            unpack_wide(bytes, SLOT, bits).unwrap().map(|word| word as u64).collect()
        };
        let (a, b) = (words(a, bits.a), words(b, bits.b));
        let phases = decrypt_response(&context, &client.secrets().query, &a, &b, PHASE_BITS);
        for (&phase, byte) in phases.iter().zip(expected) {
            let error = phase.wrapping_sub(u32::from(byte) << (PHASE_BITS - 8)) << (32 - PHASE_BITS);
            let error = f64::from(error as i32) / f64::from(1 << 24);
            squares += error * error;
            largest = largest.max(error.abs());
        }
    }
    (table, (squares / (f64::from(keys) * SLOT as f64)).sqrt(), largest)
}

/// How far the standard deviation over rows that differ may be above its prediction.
const DIFFERENT_ROWS: f64 = 1.05;
/// The same for equal rows, which all have one fold error: one sample of it a key.
const EQUAL_ROWS: f64 = 3.0;

fn check(
    params: PackParams,
    name: &str,
    columns: usize,
    keys: u8,
    slack: f64,
    fill: &mut dyn FnMut(&mut [u8]),
) {
    let cpu = Cpu::new(2).unwrap();
    let (table, std, largest) = measure(&cpu, params, columns, keys, fill);
    let noise = PackNoise::new(&params, columns, table.query_bits(), 0);
    // Rounding b is uniform within its bound; so are the steps to which phases are decoded.
    let uniform = (noise.bound() / 3f64.sqrt()).hypot(2f64.powi(8 - PHASE_BITS as i32) / 12f64.sqrt());
    let predicted = noise.std().hypot(uniform);
    eprintln!(
        "{}, {name}, D0 = {columns}, {} query bits: std {std:.4} LSB (at most {predicted:.4} predicted), max {largest:.4}",
        params.name(),
        table.query_bits()
    );
    assert!(std < slack * predicted, "{name}: {std:.4} LSB, predicted {predicted:.4}");
    assert!(largest < 0.25, "{name}: {largest:.4} LSB, half the limit of decoding");
    assert!(table.sigmas() >= 12.0);
}

#[test]
fn random_database() {
    let mut rng = Csprng::insecure_from_seed(5);
    check(PACK_M31, "random", 1 << 16, 3, DIFFERENT_ROWS, &mut |matrix| rng.fill_bytes(matrix));
}

#[test]
fn constant_databases() {
    check(PACK_M31, "all -128", 1 << 16, 2, EQUAL_ROWS, &mut |matrix| matrix.fill(0x80));
    check(PACK_M31, "all -1", 1 << 12, 2, EQUAL_ROWS, &mut |matrix| matrix.fill(0xff));
}

#[test]
fn identical_rows_and_sparse_ones() {
    check(PACK_M31, "identical rows", 1 << 12, 2, EQUAL_ROWS, &mut |matrix| {
        let (first, rest) = matrix.split_at_mut(1 << 12);
        Csprng::insecure_from_seed(6).fill_bytes(first);
        rest.chunks_exact_mut(1 << 12).for_each(|row| row.copy_from_slice(first));
    });
    check(PACK_M31, "one byte in 1,000", 1 << 12, 2, DIFFERENT_ROWS, &mut |matrix| {
        matrix.iter_mut().step_by(1000).for_each(|byte| *byte = 0x80);
    });
}

#[test]
fn the_papers_set() {
    let mut rng = Csprng::insecure_from_seed(7);
    check(VIPIR_N4096_3X29, "random", 1 << 12, 2, DIFFERENT_ROWS, &mut |matrix| rng.fill_bytes(matrix));
}
