//! Noise of packed answers with real noise: a whole plane at 2^16 columns, packed pairs, structured databases, fresh keys.
//! Every byte is decoded, and the measured error is the one that `PackNoise` predicts for the bytes of the database.

#![allow(clippy::print_stderr)]

use std::{slice, sync::Arc};

use hush_cpu::Cpu;
use hush_he::{
    algorithms::decrypt_response,
    params::{PACK_M31, PackNoise, PackParams, VIPIR_N4096_3X29},
};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol,
    any_page::TableParams,
    hosted::Hosted,
    hybrid::Hybrid,
    pack_page::{PackClient, Packed},
    pack_table::PackTable,
    page::Page,
    ring_keys::RingKeys,
};

use super::{PHASE_BITS, halves, std};
use crate::support::{PUBLIC_SEED, Stored, one, pack_table, shape};

/// How far the standard deviation over rows that differ may be off its prediction.
const DIFFERENT_ROWS: f64 = 1.05;
/// How far it may be above for equal rows, which all have one fold error: one sample of it a key.
const EQUAL_ROWS: f64 = 3.0;

/// A table of one block, looked up by `keys` fresh clients.
struct Case {
    name: &'static str,
    params: PackParams,
    columns: usize,
    slot_bytes: usize,
    keys: u8,
    equal_rows: bool,
    /// Bits between the measured standard deviation and the limit of decoding, at least.
    margin: f64,
}

impl Case {
    fn table(&self) -> PackTable {
        pack_table(Protocol::Hybrid, self.params, shape(self.columns, 1, self.slot_bytes))
    }

    /// Standard deviation in LSB that is predicted for bytes of this database.
    fn predicted(&self, matrix: &[u8]) -> f64 {
        let mut noise = PackNoise::new(&self.params, self.columns, self.table().query_bits(), 0);
        // The worst database has -128 everywhere. Random bytes have 73.9 on average.
        let squares: f64 = matrix.iter().map(|&byte| f64::from(byte as i8).powi(2)).sum();
        noise.lwe.fold *= (squares / matrix.len() as f64).sqrt() / 128.0;
        // Rounding b is uniform within its bound; so are the steps to which phases are decoded.
        noise.std().hypot(noise.bound() / 3f64.sqrt()).hypot(2f64.powi(8 - PHASE_BITS as i32) / 12f64.sqrt())
    }

    fn check(&self, fill: &mut dyn FnMut(&mut [u8])) {
        let mut matrix = vec![0; self.slot_bytes * self.columns];
        fill(&mut matrix);
        let predicted = self.predicted(&matrix);
        let planes = self.measure(&matrix);
        for (plane, errors) in planes.iter().enumerate() {
            let std = std(errors);
            let largest = errors.iter().fold(0f64, |largest, error| largest.max(error.abs()));
            let margin = (0.5 / std).log2();
            let name = format!("{}, {}, D0 = {}, plane {plane}", self.params.name(), self.name, self.columns);
            eprintln!(
                "{name}: std {std:.4} LSB (predicted {predicted:.4}), max {largest:.4}, {margin:.2} bits"
            );
            let off = std / predicted;
            let allowed = match self.equal_rows {
                true => 0.0..EQUAL_ROWS,
                false => 1.0 / DIFFERENT_ROWS..DIFFERENT_ROWS,
            };
            assert!(allowed.contains(&off), "{name}: {std:.4} LSB, predicted {predicted:.4}");
            assert!(margin >= self.margin, "{name}: {margin:.2} bits below the limit of decoding");
            assert!(largest < 0.25, "{name}: {largest:.4} LSB, half the limit of decoding");
        }
    }

    /// Returns the errors in LSB of every plane of the slot.
    fn measure(&self, matrix: &[u8]) -> Vec<Vec<f64>> {
        let (cpu, params, table) = (Cpu::new(2).unwrap(), self.params, self.table());
        let files = Stored::build(&cpu, &TableParams::new::<Packed<Hybrid>>(table), matrix, None);
        let hosted = Hosted::<Packed<Hybrid>, Cpu>::open(Arc::new(cpu), table, PUBLIC_SEED, &files).unwrap();
        let mut errors = vec![Vec::new(); table.first_shape().planes()];
        for key in 0..self.keys {
            let client_keys = Arc::new(RingKeys::from_seed(params.ring(), &[key; 32]));
            let keys = hosted.share().open_keys(client_keys.upload()).unwrap();
            let client = PackClient { keys: client_keys, seed: PUBLIC_SEED };
            let column = self.columns / 3 * usize::from(key + 1) - 1;
            let rng = &mut Csprng::insecure_from_seed(u64::from(key));
            let (query, pending) = Packed::<Hybrid>::query(&table, &client, &one(column, 0), rng);
            let answer = hosted.answer(slice::from_ref(&query), &[&keys]).unwrap().remove(0);
            let expected: Vec<u8> =
                (0..self.slot_bytes).map(|row| matrix[row * self.columns + column]).collect();
            assert_eq!(
                *Packed::<Hybrid>::recover(&table, &client, &pending, &one(column, 0), &answer).unwrap(),
                expected
            );
            let slot = expected.chunks(params.ring().degree());
            for ((errors, phases), bytes) in errors.iter_mut().zip(phases(&client.keys, &answer)).zip(slot) {
                errors.extend(phases.iter().zip(bytes).map(|(&phase, &byte)| error(phase, byte)));
            }
        }
        errors
    }
}

/// Returns the phases of the one or two plaintexts of an answer.
fn phases(client: &RingKeys, answer: &[u8]) -> Vec<Vec<u32>> {
    let (a, halves) = halves(client.context().params(), answer);
    let secrets = [&client.secrets().query, &client.secrets().second];
    let (context, bits) = (client.context(), client.context().params().response_bits());
    let phases = halves.iter().zip(secrets);
    let phases = phases.map(|(b, s)| decrypt_response(context, s, &a, b, bits, 1, PHASE_BITS).to_vec());
    phases.collect()
}

/// Returns how far a phase is from its byte, in LSB.
fn error(phase: u32, byte: u8) -> f64 {
    let error = phase.wrapping_sub(u32::from(byte) << (PHASE_BITS - 8)) << (32 - PHASE_BITS);
    f64::from(error as i32) / f64::from(1 << 24)
}

/// A whole plane of the default set at 2^16 columns.
const FULL_PLANE: Case = Case {
    name: "random",
    params: PACK_M31,
    columns: 1 << 16,
    slot_bytes: 4096,
    keys: 3,
    equal_rows: false,
    margin: 4.0,
};
const SMALL: Case = Case { columns: 1 << 12, keys: 2, ..FULL_PLANE };

#[test]
fn a_random_plane() {
    let mut rng = Csprng::insecure_from_seed(5);
    FULL_PLANE.check(&mut |matrix| rng.fill_bytes(matrix));
}

/// Both halves of a packed pair.
#[test]
fn two_planes() {
    let mut rng = Csprng::insecure_from_seed(8);
    let case = Case { columns: 1 << 10, slot_bytes: 8192, ..SMALL };
    case.check(&mut |matrix| rng.fill_bytes(matrix));
}

#[test]
fn constant_databases() {
    let worst =
        Case { name: "all -128", columns: 1 << 16, slot_bytes: 512, equal_rows: true, margin: 3.0, ..SMALL };
    worst.check(&mut |matrix| matrix.fill(0x80));
    Case { name: "all -1", equal_rows: true, ..SMALL }.check(&mut |matrix| matrix.fill(0xff));
}

#[test]
fn identical_rows_and_sparse_ones() {
    Case { name: "identical rows", equal_rows: true, ..SMALL }.check(&mut |matrix| {
        let (first, rest) = matrix.split_at_mut(1 << 12);
        Csprng::insecure_from_seed(6).fill_bytes(first);
        rest.chunks_exact_mut(1 << 12).for_each(|row| row.copy_from_slice(first));
    });
    Case { name: "one byte in 1,000", ..SMALL }.check(&mut |matrix| {
        matrix.iter_mut().step_by(1000).for_each(|byte| *byte = 0x80);
    });
}

#[test]
fn the_papers_set() {
    let mut rng = Csprng::insecure_from_seed(7);
    Case { params: VIPIR_N4096_3X29, margin: 5.0, ..SMALL }.check(&mut |matrix| rng.fill_bytes(matrix));
}
