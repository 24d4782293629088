//! Searches RLWE sets for `onion`: the tables of `docs/explanation/notes/ring-parameters.md`.
//!
//! ```sh
//! cargo run --release -p hush-he --example search_ring
//! ```
//!
//! Noise is that of `RingNoise`, sizes are those of `RingParams` (asserted for the presets), time is a model.
//! Security is not computed: moduli stay under the bounds of `TARGETS`, which come from the lattice-estimator.

#![allow(clippy::print_stdout)]

mod moduli;
mod search;
mod set;

use std::time::Instant;

use hush_he::params::{ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126};
use hush_math::gadget::Gadget;

use moduli::Target;
use moduli::{Moduli, primes};
use search::search;
use set::{FOLDS, Set};

/// Sets that are printed.
const PRINTED: usize = 10;
const MIB: f64 = (1u64 << 20) as f64;

/// Names and widths of what is printed of a set: MiB of keys, KiB of a query, a packed pair's bytes for one of its
/// records'; gadgets as width, digits, dropped bits; bits that keys and queries are sent without.
const COLUMNS: [(&str, usize); 18] = [
    ("", 9),
    ("primes", 9),
    ("rows", 4),
    ("k", 2),
    ("ms", 5),
    ("scan, expand, fold", 19),
    ("transforms", 12),
    ("keys", 5),
    ("query", 5),
    ("pair", 4),
    ("sigma", 5),
    ("log2 P", 6),
    ("levels", 20),
    ("square", 7),
    ("fold", 7),
    ("pack", 7),
    ("without", 7),
    ("response", 8),
];

/// The targets for sets of each degree.
const TARGETS: [Target; 2] = [
    Target {
        preset: ONION_M31,
        max_full_bits: 105.0,
        max_key_bytes: 2.1 * MIB,
        max_overhead: 1.85,
        max_leaf_bytes: 8,
        kept: &[(2, 28), (3, 24)],
    },
    Target {
        preset: ONION_S,
        max_full_bits: 52.5,
        max_key_bytes: 0.81 * MIB,
        max_overhead: 2.5,
        max_leaf_bytes: 10,
        kept: &[(1, 28), (2, 24)],
    },
];

/// Searches, and prints the cheapest sets after the preset.
fn print_target(target: &Target) {
    let preset = Set::of_preset(&target.preset);
    assert_eq!(preset.key_bytes(), target.preset.key_words_bytes());
    assert_eq!(preset.query_bytes(), target.preset.query_bytes(preset.rows, FOLDS));
    let start = Instant::now();
    let sets = search(target);
    let seconds = start.elapsed().as_secs_f64();
    println!("\nN = {}: {} choices of primes and rows, in {seconds:.1} s", preset.moduli.degree, sets.len());
    print_line(COLUMNS.map(|(name, _)| name.to_owned()));
    print_set(&preset, target.preset.name());
    sets.iter().take(PRINTED).for_each(|set| print_set(set, ""));
    let cost = |set: &Set| set.cost() / preset.cost();
    let cheaper = sets.iter().filter(|set| cost(set) < 0.99).count();
    println!("{cheaper} cost at least 1 % less than {}.", target.preset.name());
    println!("The cheapest costs {:.3} of it; its primes: {:?}", cost(&sets[0]), sets[0].moduli);
}

fn print_set(set: &Set, name: &str) {
    let (noise, [scan, expand, fold]) = (set.noise(), set.millis());
    let fine = set.levels.iter().take_while(|&gadget| *gadget == set.levels[0]).count();
    let coarse = &set.levels[fine..];
    let coarse =
        coarse.first().map_or(String::new(), |&gadget| format!(" {}x{}", coarse.len(), text(gadget)));
    print_line([
        name.to_owned(),
        set.moduli.name(),
        set.rows.to_string(),
        set.plaintext_bits.to_string(),
        format!("{:.1}", set.cost()),
        format!("{scan:.1} + {expand:.1} + {fold:.1}"),
        format!("{} + {:.0}", set.expand_transforms(), set.fold_transforms()),
        format!("{:.3}", set.key_bytes() as f64 / MIB),
        format!("{:.2}", set.query_bytes() as f64 / 1024.0),
        format!("{:.2}", set.overhead()),
        format!("{:.1}", set.sigmas(&noise)),
        format!("{:.1}", noise.log2_failure(2 * set.moduli.degree)),
        format!("{fine}x{}{coarse}", text(set.levels[0])),
        text(set.square),
        text(set.fold),
        text(set.pack),
        format!("{}, {}", set.key_dropped_bits, set.query_dropped_bits),
        format!("{} + {}", set.response.a, set.response.b),
    ]);
}

fn print_line(cells: [String; COLUMNS.len()]) {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:<width$}"));
    println!("{}", cells.collect::<Vec<_>>().join(" ").trim_end());
}

fn text(gadget: Gadget) -> String {
    format!("{},{},{}", gadget.width, gadget.digits, gadget.dropped)
}

/// Noise of the presets step by step, as in the note: log2 of standard deviations.
fn print_noise() {
    println!("\nlog2 of standard deviations at {} rows and {FOLDS} folds", Set::of_preset(&ONION_M31).rows);
    println!(
        "| set | leaf | selector | bottom row | first dimension | a fold | after folds | packing | Delta / 2 |"
    );
    for params in [ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126] {
        let set = Set::of_preset(&params);
        let noise = set.noise();
        let steps =
            [noise.leaf, noise.selector, noise.bottom, noise.first, noise.fold, noise.folded, noise.pack];
        print!("| {} |", params.name());
        steps.iter().for_each(|variance| print!(" {:.1} |", variance.log2() / 2.0));
        println!(" {:.1} |", (set.sigmas(&noise) * noise.folded.sqrt()).log2());
    }
}

/// The two sets of the OnionPIRv2 paper as it gives them: nothing dropped, plain key switching modulo q.
fn print_paper_sets() {
    println!("\nOnionPIRv2's own sets, first dimension against Delta / 2 (log2)");
    for (degree, primes_of_30_bits, t, gadget) in
        [(2048, 2, 65521f64.log2(), Gadget::new(6, 10, 0)), (4096, 4, 46.0, Gadget::new(15, 8, 0))]
    {
        let moduli = Moduli { degree, kept: primes(degree, 30.0, primes_of_30_bits, &[]), dropped: None };
        let half_delta = (moduli.kept_product() as f64).log2() - t - 1.0;
        let set = Set {
            moduli,
            rows: 512,
            plaintext_bits: 0,
            levels: vec![gadget; 10],
            key_dropped_bits: 0,
            query_dropped_bits: 0,
            ..Set::of_preset(&ONION_S)
        };
        let first = set.noise().first.log2() / 2.0 + t;
        println!("N = {degree}: {first:.1} against {half_delta:.1}");
    }
}

fn main() {
    TARGETS.iter().for_each(print_target);
    print_noise();
    print_paper_sets();
}
