//! Size, build time and success rate of the key filters: the tables of `docs/explanation/notes/key-filters.md`.
//!
//! ```sh
//! cargo run --release -p hush-protocol --example filter_rates
//! ```

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use hush_cpu::Cpu;
use hush_math::csprng::Csprng;
use hush_protocol::keyword::{BlockMap, FilterError, FilterKind, FilterParams, KeyDigest};
use rayon::prelude::*;

const MILLION: u64 = 1 << 20;

fn digests(keys: std::ops::Range<u64>) -> Vec<KeyDigest> {
    let keys = keys.into_par_iter();
    keys.map(|key| KeyDigest::new(&[1; 32], &key.to_le_bytes()).expect("short keys")).collect()
}

fn random_bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes
        .par_chunks_mut(1 << 20)
        .enumerate()
        .for_each(|(index, chunk)| Csprng::insecure_from_seed(index as u64).fill_bytes(chunk));
    bytes
}

/// Measures one block: how often the first seed works at the documented size, and the time of a build.
fn one_block(cpu: &Cpu, kind: FilterKind, log_slots: u32) -> Result<(), FilterError> {
    let (trials, slot_bytes) = match log_slots {
        17.. => (4, 128),
        10..=16 => (40, 1024),
        _ => (400, 11 << 10),
    };
    let slots = 1 << log_slots;
    let params = FilterParams { kind, slots };
    let keys = kind.capacity(slots) as u64;
    let mut first_seed = 0;
    for trial in 0..trials {
        let digests = digests(trial * MILLION..trial * MILLION + keys);
        first_seed += u32::from(params.build::<u8>(&digests, &[], 0, cpu, &mut [])? == 0);
    }
    let digests = digests(0..keys);
    let values = random_bytes(digests.len() * slot_bytes);
    let mut out = vec![1; slots * slot_bytes];
    let started = Instant::now();
    let seed = params.build(&digests, &values, slot_bytes, cpu, &mut out)?;
    let rate = out.len() as f64 / started.elapsed().as_secs_f64() / 1e6;
    let mean_support: usize = digests.iter().take(1000).map(|key| params.support(key, seed).len()).sum();
    println!(
        "| `{kind}` | 2^{log_slots} | {:.4} | {first_seed} of {trials} | {:.0} | {rate:.0} MB/s |",
        slots as f64 / keys as f64,
        mean_support as f64 / keys.min(1000) as f64,
    );
    Ok(())
}

/// A table of a million keys in 32 blocks.
fn table(cpu: &Cpu, kind: FilterKind, slot_bytes: usize) -> Result<(), FilterError> {
    let values = random_bytes(MILLION as usize / 32 * 11 / 10 * slot_bytes);
    let started = Instant::now();
    let digests = digests(0..MILLION);
    let capacity = digests.len() / 32 * 1005 / 1000;
    let map =
        BlockMap::assign(&digests, 32, capacity).expect("half a percent of slack balances a million keys");
    let mut blocks = vec![Vec::new(); 32];
    digests.iter().for_each(|digest| blocks[map.block_of(digest)].push(digest.clone()));
    let hashed = started.elapsed();
    let params = FilterParams { kind, slots: kind.slots_for(capacity) };
    let seeds: Vec<u8> = blocks
        .par_iter()
        .map(|keys| {
            let mut out = vec![0; params.slots * slot_bytes];
            params.build(keys, &values[..keys.len() * slot_bytes], slot_bytes, cpu, &mut out)
        })
        .collect::<Result<_, _>>()?;
    let seconds = |time: Duration| time.as_secs_f64();
    println!(
        "| `{kind}` | {slot_bytes} | {:.2} s | {:.2} s | {} |",
        seconds(hashed),
        seconds(started.elapsed() - hashed),
        seeds.iter().filter(|&&seed| seed > 0).count(),
    );
    Ok(())
}

/// A table of many small blocks with room for `capacity` keys each, one more than their mean: how many seeds
/// the blocks need.
fn small_blocks(cpu: &Cpu, params: FilterParams, capacity: usize) -> Result<(), FilterError> {
    const BLOCKS: usize = 4000;
    let digests = digests(0..(BLOCKS * (capacity - 1)) as u64);
    let map =
        BlockMap::assign(&digests, BLOCKS, capacity).expect("a spare key a block balances small blocks");
    let mut blocks = vec![Vec::new(); BLOCKS];
    digests.iter().for_each(|digest| blocks[map.block_of(digest)].push(digest.clone()));
    let seeds: Vec<u8> = blocks
        .par_iter()
        .map(|keys| params.build::<u32>(keys, &[], 0, cpu, &mut []))
        .collect::<Result<_, _>>()?;
    let tries = seeds.iter().map(|&seed| f64::from(seed) + 1.0).sum::<f64>() / BLOCKS as f64;
    println!(
        "| `{}` | {} | {capacity} | {:.4} | {tries:.2} | {} |",
        params.kind,
        params.slots,
        (params.slots * BLOCKS) as f64 / digests.len() as f64,
        seeds.iter().map(|&seed| u32::from(seed) + 1).max().unwrap_or(0),
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::thread::available_parallelism()?.get();
    let cpu = Cpu::new(threads)?;
    println!("{} with {threads} threads", cpu.level());
    println!("| filter | slots | slots a key | first seed works | slots in a look-up | build |");
    for log_slots in [7, 8, 9, 10, 12, 15, 20] {
        for kind in FilterKind::ALL {
            cpu.install(|| one_block(&cpu, kind, log_slots))?;
        }
    }
    println!("| filter | slots | most keys | slots a key | tries | most tries |");
    for (kind, slots, spare) in [
        (FilterKind::Band64, 256, 12),
        (FilterKind::Band128, 256, 6),
        (FilterKind::Band192, 256, 5),
        (FilterKind::Band256, 128, 4),
        (FilterKind::Band256, 128, 1),
        (FilterKind::Band256, 256, 4),
        (FilterKind::Band256, 256, 2),
        (FilterKind::Band256, 256, 1),
        (FilterKind::Band256, 256, 0),
        (FilterKind::Band256, 512, 5),
        (FilterKind::Band256, 512, 2),
    ] {
        cpu.install(|| small_blocks(&cpu, FilterParams { kind, slots }, slots - spare))?;
    }
    println!("| filter | slot bytes | hash and balance | 32 filters | retried |");
    for slot_bytes in [14, 40, 1024] {
        for kind in FilterKind::ALL {
            cpu.install(|| table(&cpu, kind, slot_bytes))?;
        }
    }
    Ok(())
}
