//! Searches RLWE sets for `onion`: the tables of `docs/notes/ring-parameters.md`.
//!
//! ```sh
//! cargo run --release -p hush-he --example search_ring
//! ```
//!
//! Noise is that of [`RingNoise`], sizes are those of `RingParams` (asserted for the presets), time is a model. Security
//! is not computed: moduli stay under the bounds of [`TARGETS`], which come from the lattice-estimator.

use std::{collections::BTreeMap, time::Instant};

use hush_he::{
    codec::packed_bytes,
    params::{
        ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126, RING_SEED_BYTES, RLWE_ERROR_STD, ResponseBits,
        RingNoise, RingNoiseInputs, RingParams,
    },
};
use hush_math::{gadget::Gadget, modulus::MODULUS_LIMIT};

/// Folds for which noise, queries and expansion are computed.
const FOLDS: usize = 12;
/// Rows of the first dimension (D0) that are tried.
const ROWS: [usize; 3] = [128, 256, 512];
/// log2 of the failure probability of an answer of two planes: the house limit of -40 and a margin.
const MAX_LOG2_FAILURE: f64 = -45.0;
/// Standard deviations between the error after all folds and Delta / 2.
const MIN_SIGMAS: f64 = 12.0;
/// Model: nanoseconds of a transform per butterfly, with its share of digits and products around it.
const BUTTERFLY_NS: f64 = 0.22;
/// Model: bytes a nanosecond of the first dimension's scan, on one core.
const SCAN_RATE: f64 = 14.0;
/// Model: bytes of records in the table.
const PAYLOAD: f64 = (1u64 << 30) as f64;

/// Sets that cost more than this much of the preset are not looked at.
const MAX_COST: f64 = 1.12;
/// Sets that are printed.
const PRINTED: usize = 10;

/// What is asked of a set of one degree.
struct Target {
    preset: RingParams,
    /// Largest log2 Q_e: below it 128 bits of security, with a bit or half of one to spare.
    max_full_bits: f64,
    max_key_bytes: f64,
    /// Bytes of a packed pair for a byte of its records.
    max_overhead: f64,
    /// Bytes of a query for each leaf.
    max_leaf_bytes: usize,
    /// Numbers of kept primes, and the least bits of each.
    kept: &'static [(usize, u32)],
}

/// Variance of a coefficient of a ternary secret.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;
const MIB: f64 = (1u64 << 20) as f64;

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
        max_key_bytes: 0.8 * MIB,
        max_overhead: 2.5,
        max_leaf_bytes: 10,
        kept: &[(1, 28), (2, 24)],
    },
];

/// The primes of a set, largest first; the dropped one is last.
#[derive(Clone, Debug)]
struct Moduli {
    degree: usize,
    kept: Vec<u32>,
    dropped: Option<u32>,
}

impl Moduli {
    fn limbs(&self) -> usize {
        self.kept.len() + usize::from(self.dropped.is_some())
    }

    fn kept_product(&self) -> u128 {
        self.kept.iter().map(|&p| u128::from(p)).product()
    }

    fn full_product(&self) -> u128 {
        self.kept_product() * u128::from(self.dropped.unwrap_or(1))
    }

    fn name(&self) -> String {
        let bits = |p: u32| f64::from(p).log2();
        let dropped = self.dropped.map_or(String::new(), |p| format!("+{:.1}", bits(p)));
        format!("{}x{:.0}{dropped}", self.kept.len(), bits(self.kept[0]))
    }
}

#[derive(Clone)]
struct Set {
    moduli: Moduli,
    rows: usize,
    plaintext_bits: u32,
    levels: Vec<Gadget>,
    square: Gadget,
    fold: Gadget,
    pack: Gadget,
    key_dropped_bits: u32,
    query_dropped_bits: u32,
    response: ResponseBits,
}

impl Set {
    fn of_preset(p: &RingParams) -> Self {
        let dropped = Some(p.dropped_factor()).filter(|&p| p > 1);
        Self {
            moduli: Moduli { degree: p.degree(), kept: p.kept_primes().to_vec(), dropped },
            rows: 256,
            plaintext_bits: p.plaintext_bits(),
            levels: p.levels().to_vec(),
            square: p.square_gadget(),
            fold: p.fold_gadget(),
            pack: p.pack_gadget(),
            key_dropped_bits: p.key_dropped_bits(),
            query_dropped_bits: p.query_dropped_bits(),
            response: p.response_bits(),
        }
    }

    fn noise(&self) -> RingNoise {
        let inputs = RingNoiseInputs {
            degree: self.moduli.degree,
            kept_product: self.moduli.kept_product() as f64,
            dropped_factor: self.moduli.dropped.unwrap_or(1),
            plaintext_bits: self.plaintext_bits,
            levels: &self.levels,
            square: self.square,
            fold: self.fold,
            pack: self.pack,
            key_dropped_bits: self.key_dropped_bits,
            query_dropped_bits: self.query_dropped_bits,
            response: self.response,
        };
        RingNoise::from_inputs(&inputs, self.rows, FOLDS)
    }

    /// Standard deviations between the error after all folds and Delta / 2.
    fn sigmas(&self, noise: &RingNoise) -> f64 {
        self.moduli.kept_product() as f64 / 2f64.powi(self.plaintext_bits as i32 + 1) / noise.folded.sqrt()
    }

    fn leaves(&self) -> usize {
        self.rows + FOLDS * self.fold.digits
    }

    /// As `RingParams::key_words_bytes`.
    fn key_bytes(&self) -> usize {
        let poly = |product| packed_bytes(self.moduli.degree, bits_of(product) - self.key_dropped_bits);
        let switched: usize = self.levels.iter().chain([&self.square]).map(|gadget| gadget.digits).sum();
        switched * poly(self.moduli.full_product()) + 4 * self.pack.digits * poly(self.moduli.kept_product())
    }

    /// As `RingParams::query_bytes`.
    fn query_bytes(&self) -> usize {
        let words = self.leaves() * (self.moduli.degree >> self.levels.len());
        RING_SEED_BYTES + packed_bytes(words, bits_of(self.moduli.full_product()) - self.query_dropped_bits)
    }

    /// Bytes of a packed pair for a byte of its records.
    fn overhead(&self) -> f64 {
        f64::from(self.response.a + 2 * self.response.b) / f64::from(2 * self.plaintext_bits)
    }

    /// Transforms of one limb that expanding a query takes: the tree, the bottom rows, the drop.
    fn expand_transforms(&self) -> usize {
        let (limbs, kept, levels) = (self.moduli.limbs(), self.moduli.kept.len(), self.levels.len());
        let nodes = |level: usize| self.leaves().div_ceil(1 << (levels - level));
        let subs = |(level, gadget): (usize, &Gadget)| nodes(level) * limbs * (1 + gadget.digits);
        let tree: usize = self.levels.iter().enumerate().map(subs).sum();
        let tops = FOLDS * self.fold.digits;
        let bottom = tops * limbs * (1 + self.square.digits);
        let drop = self.moduli.dropped.map_or(0, |_| 2 * (self.rows + 2 * tops) * (1 + kept));
        tree + bottom + drop
    }

    /// Transforms of one limb that folding the entries of the table takes.
    fn fold_transforms(&self) -> f64 {
        let plaintext_bytes = (self.moduli.degree * self.plaintext_bits as usize / 8) as f64;
        let products = PAYLOAD / plaintext_bytes / self.rows as f64;
        products * (2 * self.moduli.kept.len() * (1 + self.fold.digits)) as f64
    }

    /// Bytes that are scanned for a byte of records.
    fn expansion(&self) -> f64 {
        32.0 * self.moduli.kept.len() as f64 / f64::from(self.plaintext_bits)
    }

    /// Modelled milliseconds of one answer on one core: scan, expand, fold.
    fn millis(&self) -> [f64; 3] {
        let n = self.moduli.degree;
        let transform = BUTTERFLY_NS * (n / 2 * n.ilog2() as usize) as f64;
        let scan = PAYLOAD * self.expansion() / SCAN_RATE;
        [scan, self.expand_transforms() as f64 * transform, self.fold_transforms() * transform]
            .map(|ns| ns / 1e6)
    }

    fn cost(&self) -> f64 {
        self.millis().iter().sum()
    }

    /// The widest plaintext that first dimension and folds leave room for; without `fold`, if folds added nothing.
    fn widest_plaintext(&self, first: f64, fold: f64) -> Option<u32> {
        (4..=32).rev().find(|&bits| {
            let folded = first * 4f64.powi(bits as i32) + FOLDS as f64 * fold;
            self.moduli.kept_product() as f64 / 2f64.powi(bits as i32 + 1) >= MIN_SIGMAS * folded.sqrt()
        })
    }

    /// The response of the fewest bits that keeps the failure probability.
    fn choose_response(&mut self) -> bool {
        let mut best = None;
        for b in self.plaintext_bits + 1..=self.plaintext_bits + 4 {
            for a in self.plaintext_bits + 7..=self.plaintext_bits + 12 {
                self.response = ResponseBits { a, b };
                if self.noise().log2_failure(2 * self.moduli.degree) <= MAX_LOG2_FAILURE {
                    best = best.into_iter().chain([(a + 2 * b, a, b)]).min();
                    break;
                }
            }
        }
        let Some((_, a, b)) = best else { return false };
        self.response = ResponseBits { a, b };
        true
    }

    fn print(&self, name: &str) {
        let (noise, [scan, expand, fold]) = (self.noise(), self.millis());
        let fine = self.levels.iter().take_while(|&gadget| *gadget == self.levels[0]).count();
        let levels = match self.levels.len() - fine {
            0 => format!("{fine}x{}", text(self.levels[0])),
            coarse => {
                format!(
                    "{fine}x{} {coarse}x{}",
                    text(self.levels[0]),
                    text(self.levels[self.levels.len() - 1])
                )
            }
        };
        println!(
            "{name:<10} {:<11} {:>4} {:>3} | {:>6.1} {:>5.1} {:>5.1} {:>5.1} | {:>5} {:>5} | {:>5.3} {:>5.2} {:>5.2} | {:>5.1} {:>6.1} | {levels:<22} {:<8} {:<8} {:<8} {:>3}, {:<7} {}+{}",
            self.moduli.name(),
            self.rows,
            self.plaintext_bits,
            self.cost(),
            scan,
            expand,
            fold,
            self.expand_transforms(),
            self.fold_transforms() as usize,
            self.key_bytes() as f64 / MIB,
            self.query_bytes() as f64 / 1024.0,
            self.overhead(),
            self.sigmas(&noise),
            noise.log2_failure(2 * self.moduli.degree),
            text(self.square),
            text(self.fold),
            text(self.pack),
            self.key_dropped_bits,
            self.query_dropped_bits,
            self.response.a,
            self.response.b,
        );
    }
}

fn text(gadget: Gadget) -> String {
    format!("{},{},{}", gadget.width, gadget.digits, gadget.dropped)
}

fn bits_of(product: u128) -> u32 {
    u128::BITS - product.leading_zeros()
}

fn is_prime(x: u32) -> bool {
    x % 2 == 1 && (3..).step_by(2).take_while(|&d: &u64| d * d <= u64::from(x)).all(|d| u64::from(x) % d != 0)
}

/// The largest primes below `2^log2` that are 1 modulo 2N, without those in `taken`.
fn primes(degree: usize, log2: f64, count: usize, taken: &[u32]) -> Vec<u32> {
    let step = 2 * degree as u32;
    let top = (log2.exp2() as u64).min(u64::from(MODULUS_LIMIT)) as u32;
    let candidates = (1..=(top - 2) / step).rev().map(|k| k * step + 1);
    candidates.filter(|p| !taken.contains(p) && is_prime(*p)).take(count).collect()
}

fn all_moduli(target: &Target) -> Vec<Moduli> {
    let degree = target.preset.degree();
    let mut all = Vec::new();
    for &(count, least) in target.kept {
        for bits in least..=32 {
            let kept = primes(degree, f64::from(bits), count, &[]);
            let room = target.max_full_bits - f64::from(bits) * count as f64;
            if room >= 0.0 {
                all.push(Moduli { degree, kept: kept.clone(), dropped: None });
            }
            // As many bits as fit, and some fewer.
            for log2 in (0..=4).map(|less| (room - 2.0 * f64::from(less)).min(32.0 - f64::from(less))) {
                if log2 < 17.0 {
                    break;
                }
                let dropped = Some(primes(degree, log2, 1, &kept)[0]);
                all.push(Moduli { degree, kept: kept.clone(), dropped });
            }
        }
    }
    all
}

/// The gadget of `digits` digits with the least `digit_weight` times the digits' plus `rest_weight` times the rest's variance.
fn best_gadget(product: u128, digits: usize, digit_weight: f64, rest_weight: f64) -> Option<Gadget> {
    let gadget = |width: u32| {
        let least = (bits_of(product) + 1).saturating_sub(width * digits as u32);
        (least.saturating_sub(1)..=least + 1)
            .map(|dropped| Gadget::new(width, digits, dropped))
            .find(|gadget| gadget.covers(product))
    };
    let variance = |gadget: &Gadget| {
        let rest = if gadget.dropped == 0 { 0.0 } else { 4f64.powi(gadget.dropped as i32) };
        digit_weight * digits as f64 * 4f64.powi(gadget.width as i32) + rest_weight * rest
    };
    (3..=28).filter_map(gadget).min_by(|x, y| variance(x).total_cmp(&variance(y)))
}

/// The cheapest sets by primes and rows.
type Best = BTreeMap<(String, usize), Set>;

/// Whether a set is cheaper than the cheapest so far of the same primes and rows, and not much dearer than the preset.
fn improves(target: &Target, best: &Best, set: &Set) -> bool {
    let cost = set.cost();
    cost < MAX_COST * Set::of_preset(&target.preset).cost()
        && best.get(&(set.moduli.name(), set.rows)).is_none_or(|old| cost < old.cost())
}

/// Tries all gadgets of one choice of primes, rows, and bits that keys are sent without.
fn search_gadgets(target: &Target, moduli: &Moduli, rows: usize, key_dropped_bits: u32, best: &mut Best) {
    let (n, full) = (moduli.degree as f64, moduli.full_product());
    let key_error = RLWE_ERROR_STD.powi(2)
        + if key_dropped_bits == 0 { 0.0 } else { 4f64.powi(key_dropped_bits as i32) / 12.0 };
    let per_secret = n * SECRET_VARIANCE;
    let gadgets = |rest| [2, 3, 4, 5, 6, 7, 8].map(|digits| best_gadget(full, digits, n * key_error, rest));
    let (subs, squares) = (gadgets(per_secret), gadgets(per_secret.powi(2)));
    let subs: Vec<Gadget> = subs.into_iter().flatten().collect();
    for levels in rows.ilog2() as usize + 1..=moduli.degree.ilog2() as usize {
        for (index, &coarse) in subs.iter().enumerate() {
            let finer = (1..=4).flat_map(|count| subs[index + 1..].iter().map(move |&fine| (count, fine)));
            for (fine_levels, fine) in [(0, coarse)].into_iter().chain(finer) {
                let mut gadgets = vec![coarse; levels];
                gadgets[..fine_levels].fill(fine);
                let one = Gadget::new(20, 1, 20);
                let word_bits = (8 * target.max_leaf_bytes / (moduli.degree >> levels)) as u32;
                let mut set = Set {
                    moduli: moduli.clone(),
                    rows,
                    plaintext_bits: 0,
                    levels: gadgets,
                    square: one,
                    fold: one,
                    pack: one,
                    key_dropped_bits,
                    query_dropped_bits: bits_of(full).saturating_sub(word_bits),
                    response: ResponseBits { a: 48, b: 48 },
                };
                let Some(bits) = set.widest_plaintext(set.noise().first, 0.0) else { continue };
                set.plaintext_bits = bits;
                if improves(target, best, &set) {
                    squares.into_iter().flatten().for_each(|square| {
                        search_folds(target, Set { square, ..set.clone() }, key_error, best);
                    });
                }
            }
        }
    }
}

/// Tries the gadgets modulo Q_1 for a `set` whose others are chosen.
fn search_folds(target: &Target, mut set: Set, key_error: f64, best: &mut Best) {
    let n = set.moduli.degree as f64;
    let kept = set.moduli.kept_product();
    set.plaintext_bits = 0;
    let noise = set.noise();
    for fold_digits in 1..=5 {
        let rows = n * (noise.bottom + noise.selector);
        let Some(fold) = best_gadget(kept, fold_digits, rows, 1.0 + n * SECRET_VARIANCE) else { continue };
        set.fold = fold;
        set.plaintext_bits = 0;
        let noise = set.noise();
        let Some(bits) = set.widest_plaintext(noise.first, noise.fold) else { continue };
        set.plaintext_bits = bits;
        if set.leaves() > 1 << set.levels.len() {
            continue;
        }
        for digits in 1..=4 {
            let Some(pack) = best_gadget(kept, digits, 2.0 * n * key_error, n * SECRET_VARIANCE) else {
                continue;
            };
            set.pack = pack;
            let fits = set.key_bytes() as f64 <= target.max_key_bytes && improves(target, best, &set);
            if fits && set.choose_response() && set.overhead() <= target.max_overhead {
                best.insert((set.moduli.name(), set.rows), set.clone());
            }
        }
    }
}

fn search(target: &Target) {
    let preset = Set::of_preset(&target.preset);
    assert_eq!(preset.key_bytes(), target.preset.key_words_bytes());
    assert_eq!(preset.query_bytes(), target.preset.query_bytes(preset.leaves()));
    let start = Instant::now();
    let mut best = Best::new();
    for moduli in all_moduli(target) {
        for rows in ROWS {
            for key_dropped_bits in 0..=6 {
                search_gadgets(target, &moduli, rows, key_dropped_bits, &mut best);
            }
        }
    }
    let mut sets: Vec<&Set> = best.values().collect();
    sets.sort_by(|x, y| x.cost().total_cmp(&y.cost()));
    let seconds = start.elapsed().as_secs_f64();
    println!("\nN = {}: {} choices of primes and rows, in {seconds:.1} s", preset.moduli.degree, sets.len());
    println!(
        "{:<10} {:<11} {:>4} {:>3} | {:>6} {:>5} {:>5} {:>5} | {:>5} {:>5} | {:>5} {:>5} {:>5} | {:>5} {:>6} | {:<22} {:<8} {:<8} {:<8} {:<12} response",
        "",
        "primes",
        "rows",
        "k",
        "ms",
        "scan",
        "exp.",
        "fold",
        "exp.T",
        "foldT",
        "keys",
        "query",
        "pair",
        "sigma",
        "log2 P",
        "levels",
        "square",
        "fold",
        "pack",
        "key, query"
    );
    preset.print(target.preset.name());
    sets.iter().take(PRINTED).for_each(|set| set.print(""));
    let cost = |set: &Set| set.cost() / preset.cost();
    let cheaper = sets.iter().filter(|set| cost(set) < 0.99).count();
    println!("{cheaper} cost at least 1 % less than {}.", target.preset.name());
    println!("The cheapest costs {:.3} of it; its primes: {:?}", cost(sets[0]), sets[0].moduli);
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
            ..Set::of_preset(&ONION_S)
        };
        let set = Set { key_dropped_bits: 0, query_dropped_bits: 0, ..set };
        let first = set.noise().first.log2() / 2.0 + t;
        println!("N = {degree}: {first:.1} against {half_delta:.1}");
    }
}

fn main() {
    TARGETS.iter().for_each(search);
    print_noise();
    print_paper_sets();
}
