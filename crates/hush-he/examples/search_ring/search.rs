//! The search: all gadgets for all primes and rows.

use std::collections::BTreeMap;

use hush_he::params::{RLWE_ERROR_STD, ResponseBits};
use hush_math::gadget::Gadget;

use crate::{
    moduli::{Moduli, Target, all_moduli, bits_of},
    set::Set,
};

/// Rows of the first dimension (D0) that are tried.
const ROWS: [usize; 3] = [128, 256, 512];
/// Sets that cost more than this much of the preset are not looked at.
const MAX_COST: f64 = 1.12;
/// Variance of a coefficient of a ternary secret.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;

/// Returns the gadget of `digits` digits with the least noise: variances of digits and of what is rounded away, weighted.
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

/// Returns whether a set is cheaper than the cheapest so far of its primes and rows, and not much dearer than the preset.
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

/// Returns the cheapest sets, one for each choice of primes and rows, the cheapest first.
pub(crate) fn search(target: &Target) -> Vec<Set> {
    let mut best = Best::new();
    for moduli in all_moduli(target) {
        for rows in ROWS {
            for key_dropped_bits in 0..=6 {
                search_gadgets(target, &moduli, rows, key_dropped_bits, &mut best);
            }
        }
    }
    let mut sets: Vec<Set> = best.into_values().collect();
    sets.sort_by(|x, y| x.cost().total_cmp(&y.cost()));
    sets
}
