//! Weights of parts: small integers whose shares are as the speeds of their machines, and no larger than these have memory for.

/// The largest weight that is tried.
const LARGEST: u32 = 240;
/// A part may take so many times as long as it would with shares that are not rounded.
const UNEVEN: f64 = 1.05;

/// Weights of parts on machines of these speeds, of which each has memory for a share of the table at most (`room`, 0 to 1); none
/// if there is no room.
pub(super) fn weights(speeds: &[f64], room: &[f64]) -> Option<Vec<u32>> {
    let shares = shares(speeds, room)?;
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let slowest = slowest(speeds, &shares);
    let rounded = |most: u32| -> Vec<u32> {
        let weight = |share: f64| share / largest * f64::from(most);
        shares.iter().map(|&share| (weight(share).round() as u32).max(1)).collect()
    };
    let of = |weights: &[u32]| -> Vec<f64> {
        let all: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        weights.iter().map(|&weight| f64::from(weight) / all).collect()
    };
    let has_room = |weights: &&Vec<u32>| {
        of(weights).iter().zip(room).all(|(share, room)| share <= &(room * (1.0 + f64::EPSILON)))
    };
    let all = || (1..=LARGEST).map(rounded);
    let is_even = |weights: &Vec<u32>| self::slowest(speeds, &of(weights)) <= UNEVEN * slowest;
    all().filter(|weights| has_room(&weights)).find(is_even).or_else(|| {
        let with_room = all().filter(|weights| has_room(&weights));
        with_room.min_by(|a, b| self::slowest(speeds, &of(a)).total_cmp(&self::slowest(speeds, &of(b))))
    })
}

/// Shares by speed; those that exceed their room are as large as it is, and the others have the rest.
fn shares(speeds: &[f64], room: &[f64]) -> Option<Vec<f64>> {
    let mut shares = vec![None; speeds.len()];
    loop {
        let (mut rest, mut speed) = (1.0, 0.0);
        for (share, own) in shares.iter().zip(speeds) {
            match share {
                Some(share) => rest -= share,
                None => speed += own,
            }
        }
        if speed == 0.0 {
            return None;
        }
        let exceeding: Vec<usize> = (0..speeds.len())
            .filter(|&at| shares[at].is_none() && rest * speeds[at] / speed > room[at])
            .collect();
        if exceeding.is_empty() {
            let by_speed = |(share, own): (&Option<f64>, &f64)| share.unwrap_or(rest * own / speed);
            return Some(shares.iter().zip(speeds).map(by_speed).collect());
        }
        exceeding.into_iter().for_each(|at| shares[at] = Some(room[at]));
    }
}

/// How long the slowest part takes.
fn slowest(speeds: &[f64], shares: &[f64]) -> f64 {
    shares.iter().zip(speeds).map(|(share, speed)| share / speed).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_as_speeds() {
        let room = [1.0; 5];
        assert_eq!(weights(&[2.0, 2.0, 1.0, 2.0, 1.0], &room), Some(vec![2, 2, 1, 2, 1]));
        assert_eq!(weights(&[7.0; 5], &room), Some(vec![1; 5]));
        assert_eq!(weights(&[2.04, 2.0, 1.0, 1.98, 1.01], &room), Some(vec![2, 2, 1, 2, 1]));
        assert_eq!(weights(&[3.0, 2.0], &room[..2]), Some(vec![3, 2]));
        assert_eq!(weights(&[5.0], &[1.0]), Some(vec![1]));
    }

    #[test]
    fn memory_bounds_them() {
        // The fast one has room for a third, the others share the rest.
        let found = weights(&[4.0, 1.0, 1.0], &[0.34, 1.0, 1.0]).unwrap();
        let all: u32 = found.iter().sum();
        assert!(f64::from(found[0]) / f64::from(all) <= 0.34 && found[0] >= found[1], "{found:?}");
        assert_eq!(weights(&[1.0, 1.0], &[0.4, 0.5]), None);
        assert_eq!(weights(&[1.0], &[0.9]), None);
        // All exactly full.
        assert_eq!(weights(&[1.0, 3.0], &[0.5, 0.5]), Some(vec![1, 1]));
    }
}
