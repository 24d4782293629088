//! Answers a batch on several devices, each with a share of the table. Each device finishes the answers of some queries.
//!
//! A device expands its own queries. If a scan reads the expansions of all, the devices send theirs to each other; devices whose
//! link is too slow for that expand all queries. Each scans its share for the whole batch. Then it receives the contributions of
//! all devices to its own queries, and finishes these. No device gathers everything, and the work before and after the first fold
//! is divided. Source: VIPIR (section 4.5), GPIR (section 6).

use std::{ops::Range, panic::resume_unwind, thread};

use hush_ops::{
    OpsError,
    contract::{Memory, Steps, WordCopy, WordStore},
};

use crate::{
    ProtocolError,
    expansions::gather,
    hosted::{Contribution, Hosted},
    page::{Batch, Page, Partial, Partials},
    wire::Query,
};

/// Answers a batch on `devices`, which together have the whole table. `keys[d][i]` are the keys of query `i`'s client on
/// device `d`; the lists are empty if the protocol has no keys. A single device exchanges nothing.
///
/// # Errors
/// The errors of [`Page::open`], before anything is scanned. [`ProtocolError::Ops`] if a step or a copy fails.
pub fn answer<P: Page, B: Steps>(
    devices: &[Hosted<P, B>],
    queries: &[Query],
    keys: &[Vec<&B::Keys>],
) -> Result<Vec<Vec<u8>>, ProtocolError> {
    if let ([device], [keys]) = (devices, keys) {
        return device.answer(queries, keys);
    }
    let shares = shares(queries.len(), devices.len());
    let memories: Vec<_> = devices.iter().map(|device| device.share().backend()).collect();
    let table = devices[0].share().host().table;
    let (scans_all, all) = (P::scans_expansions(table), 0..queries.len());
    let gathers = scans_all && B::are_linked(&memories);
    let mut opened = on_all(devices.iter().zip(keys).collect(), |device, (hosted, keys)| {
        let own = if scans_all && !gathers { &all } else { &shares[device] };
        hosted.share().open_own(queries, keys, own)
    })?;
    if gathers {
        let mut expansions: Vec<_> = opened.iter_mut().filter_map(P::expansions::<B>).collect();
        gather(&memories, &mut expansions)?;
    }
    let contributions =
        on_all(devices.iter().zip(&opened).collect(), |_, (device, opened)| device.share().scan(opened))?;
    let exchanged = exchange(P::partials(table), &memories, contributions, &shares)?;
    let answers = on_all(opened.into_iter().zip(exchanged).collect(), |device, (opened, contributions)| {
        let own = &shares[device];
        let keys = &keys[device];
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let opened = P::narrow::<B>(&opened, own);
        devices[device].finish(&opened, &Batch { queries, keys }.narrow(own), contributions)
    })?;
    Ok(answers.concat())
}

/// Calls `work` for all devices in parallel, with the number of the device and its element of `of_each`.
///
/// # Errors
/// The first error of `work` in the order of the devices, after all calls have ended.
pub fn on_all<T: Send, R: Send, E: Send>(
    of_each: Vec<T>,
    work: impl Fn(usize, T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let work = &work;
    thread::scope(|scope| {
        let working: Vec<_> = of_each
            .into_iter()
            .enumerate()
            .map(|(device, of)| scope.spawn(move || work(device, of)))
            .collect();
        working.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Returns the queries that each device finishes. Their numbers differ by at most one.
fn shares(queries: usize, devices: usize) -> Vec<Range<usize>> {
    let first = |device: usize| (device * queries).div_ceil(devices);
    (0..devices).map(|device| first(device)..first(device + 1)).collect()
}

/// Sends each device the contributions of all devices to its queries. `contributions[d]` are in the memory of device `d`,
/// both in the argument and in the result.
fn exchange<M: Memory>(
    partials: Partials,
    memories: &[&M],
    contributions: Vec<Vec<Contribution<M::Words>>>,
    shares: &[Range<usize>],
) -> Result<Vec<Vec<Contribution<M::Words>>>, OpsError> {
    let queries = shares.last().map_or(0, |share| share.end);
    // The range of a partial's words number `index` that belongs to the queries `own`. `None` if none do.
    let range = |index: usize, words: &M::Words, own: &Range<usize>| match partials {
        Partials::Together => {
            let each = words.len() / queries;
            Some(own.start * each..own.end * each)
        }
        Partials::Apart => own.contains(&index).then(|| 0..words.len()),
    };
    let mut copies = Vec::new();
    let mut counts = Vec::new();
    for (from, contributions) in contributions.iter().enumerate() {
        for (number, partial) in contributions {
            for (to, own) in shares.iter().enumerate().filter(|(_, own)| !own.is_empty()) {
                let words = partial.words.iter().enumerate();
                let goes = words.filter_map(|(index, words)| Some((words, range(index, words, own)?)));
                let before = copies.len();
                copies.extend(goes.map(|(words, range)| WordCopy { from, words, range, to }));
                counts.push((to, *number, partial.units.clone(), copies.len() - before));
            }
        }
    }
    let mut copied = M::exchange(memories, &copies)?.into_iter();
    let mut exchanged: Vec<Vec<_>> = memories.iter().map(|_| Vec::new()).collect();
    for (to, number, units, count) in counts {
        exchanged[to].push((number, Partial { units, words: copied.by_ref().take(count).collect() }));
    }
    Ok(exchanged)
}

#[cfg(test)]
mod tests {
    use hush_ops::{contract::BatchWords, reference::Reference};

    use super::*;

    #[test]
    fn every_query_is_finished_by_one_device() {
        for (queries, devices, expected) in
            [(1, 3, vec![0..1, 1..1, 1..1]), (5, 2, vec![0..3, 3..5]), (4, 4, vec![0..1, 1..2, 2..3, 3..4])]
        {
            assert_eq!(shares(queries, devices), expected);
        }
    }

    /// Two devices and three queries. Each query has two words of the first part and one of the second.
    #[test]
    fn words_go_to_whoever_finishes_their_query() {
        let partial = |units, words: &[&[u32]]| {
            let words = words.iter().map(|words| words.to_vec().into()).collect();
            vec![(7, Partial { units, words })]
        };
        let together = vec![partial(0..2, &[&[10, 11, 20, 21, 30, 31]]), partial(2..3, &[&[12, 22, 32]])];
        let apart = || {
            let first: [&[u32]; 3] = [&[10, 11], &[20, 21], &[30, 31]];
            vec![partial(0..2, &first), partial(2..3, &[&[12], &[22], &[32]])]
        };
        type Told = (usize, Range<usize>, Vec<Vec<u32>>);
        let told = |partials, contributions| -> Vec<Vec<Told>> {
            let exchanged = exchange(partials, &[&Reference; 2], contributions, &[0..2, 2..3]).unwrap();
            exchanged
                .into_iter()
                .map(|contributions: Vec<Contribution<_>>| {
                    let told = contributions.into_iter().map(|(number, Partial { units, words })| {
                        (number, units, words.iter().map(|words: &BatchWords| words.to_vec()).collect())
                    });
                    told.collect()
                })
                .collect()
        };
        assert_eq!(
            told(Partials::Together, together),
            [
                [(7, 0..2, vec![vec![10, 11, 20, 21]]), (7, 2..3, vec![vec![12, 22]])],
                [(7, 0..2, vec![vec![30, 31]]), (7, 2..3, vec![vec![32]])],
            ]
        );
        assert_eq!(
            told(Partials::Apart, apart()),
            [
                [(7, 0..2, vec![vec![10, 11], vec![20, 21]]), (7, 2..3, vec![vec![12], vec![22]])],
                [(7, 0..2, vec![vec![30, 31]]), (7, 2..3, vec![vec![32]])],
            ]
        );
        // A device without queries gets nothing.
        let one = exchange(Partials::Apart, &[&Reference; 2], apart(), &[0..0, 0..3]).unwrap();
        assert_eq!(one.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2]);
    }
}
