//! A table whose parts are elsewhere than what finishes its answers: in other processes, on other devices.
//!
//! [`HostedPart`] scans one part of every segment, [`HostedHead`] finishes answers from the partials of all. Both open the batch,
//! so that no more than the queries travels to the parts. Source: PPIR (map server and database servers), GPIR section 6.

use std::{ops::Range, sync::Arc, thread};

use hush_ops::{OpsError, contract::Steps, path::Content};

use crate::{
    ProtocolError,
    facts::FileSpec,
    page::{Batch, Files, Host, Page, Partial},
    wire::Query,
};

/// Which part of a table: the `index`th of as many as there are weights, with its weight's share of what is scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which.
    pub index: usize,
    /// Of all parts; they do not add up to zero.
    pub weights: Vec<u32>,
}

/// What a scan of a segment reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Its units.
    pub units: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Scanned {
    /// Of a segment of `units` units, whose files these are.
    pub fn new(units: usize, files: Vec<FileSpec>) -> Self {
        let scanned = files.into_iter().map(|file| file.content).filter(Content::is_scanned);
        Self { units, bytes: scanned.map(|content| content.bytes()).sum() }
    }
}

impl Share {
    /// Its units of each segment.
    ///
    /// # Panics
    /// If there is no such part, or all weights are 0.
    pub fn of(&self, segments: &[Scanned]) -> Vec<Range<usize>> {
        shares(&self.weights, segments).swap_remove(self.index)
    }
}

/// The units of each segment that each of some parts has, by their weights. The segments are one line of bytes, cut by the weights,
/// and a unit belongs to the part in which its middle is: a part has units of few segments, and short segments do not all go to one
/// part.
///
/// # Panics
/// If all weights are 0.
pub fn shares(weights: &[u32], segments: &[Scanned]) -> Vec<Vec<Range<usize>>> {
    // A segment of nothing has a place in the line as well.
    let length = |segment: &Scanned| u128::from(segment.bytes.max(1));
    let all: u128 = segments.iter().map(length).sum();
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    // The first unit of each segment with `before + bytes (2 unit + 1) / (2 units)` not before the cut.
    let firsts = |cut: u128| {
        let mut before = 0;
        let first = |segment: &Scanned| {
            let (units, bytes) = (segment.units as u128, length(segment));
            let twice = (2 * units * cut.saturating_sub(before)).saturating_sub(bytes);
            before += bytes;
            twice.div_ceil(2 * bytes).min(units) as usize
        };
        segments.iter().map(first).collect::<Vec<_>>()
    };
    let (mut up_to, mut starts) = (0, firsts(0));
    let part = |&weight: &u32| {
        up_to += u128::from(weight);
        let ends = firsts(all * up_to / total);
        let units = starts.iter().zip(&ends).map(|(&start, &end)| start..end).collect();
        starts = ends;
        units
    };
    weights.iter().map(part).collect()
}

/// What a scan reads of every segment.
fn scanned<P: Page>(tables: &[P::Table]) -> Vec<Scanned> {
    tables.iter().map(|table| Scanned::new(P::facts(table).units, P::files(table))).collect()
}

/// What a part contributes to a segment's answers, in words of the host.
pub type HostPartial = Partial<Vec<u32>>;

/// A backend that has a parameter set.
struct Ready<P: Page, B: Steps> {
    backend: Arc<B>,
    scheme: P::Scheme<B>,
}

impl<P: Page, B: Steps> Ready<P, B> {
    fn new(backend: Arc<B>, table: &P::Table) -> Result<Self, ProtocolError> {
        let scheme = P::scheme(&*backend, table)?;
        Ok(Self { backend, scheme })
    }

    fn host<'a>(&'a self, table: &'a P::Table) -> Host<'a, P, B> {
        Host { backend: &self.backend, table, scheme: &self.scheme }
    }
}

/// A part of every segment, on a backend.
pub struct HostedPart<P: Page, B: Steps> {
    ready: Ready<P, B>,
    /// The base first.
    segments: Vec<SegmentPart<P, B>>,
}

/// A segment, and the part of it; none where the share has no units of it.
type SegmentPart<P, B> = (<P as Page>::Table, Option<<P as Page>::Part<B>>);

impl<P: Page, B: Steps> HostedPart<P, B> {
    /// Opens a part of a table of several segments, the base first; `files[i]` are those of segment `i`.
    ///
    /// # Errors
    /// As [`Hosted::open_segments`](crate::hosted::Hosted::open_segments).
    pub fn open<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        share: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let ready = Ready::<P, B>::new(backend, &tables[0])?;
        let shares = share.of(&scanned::<P>(&tables));
        let open = |((table, files), units): ((P::Table, &F), Range<usize>)| {
            let part = match units.is_empty() {
                true => None,
                false => Some(P::open_part(&ready.host(&table), units, files)?),
            };
            Ok((table, part))
        };
        let segments =
            tables.into_iter().zip(files).zip(shares).map(open).collect::<Result<_, F::Error>>()?;
        Ok(Self { ready, segments })
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.ready.host(&self.segments[0].0), body)
    }

    /// The pass over the part for a batch: the partials of the segments of which it has units, each with its segment's number.
    ///
    /// # Errors
    /// As [`Page::open`], before anything is scanned; [`ProtocolError::Ops`] if a step fails.
    pub fn scan(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
    ) -> Result<Vec<(usize, HostPartial)>, ProtocolError> {
        let base = P::open(&self.ready.host(&self.segments[0].0), &Batch { queries, keys })?;
        let mut partials = Vec::new();
        for (number, (table, part)) in self.segments.iter().enumerate() {
            let (Some(part), host) = (part, self.ready.host(table)) else { continue };
            let partial = match number {
                0 => P::scan(&host, part, &base)?,
                _ => P::scan(&host, part, &P::wrap(&host, &base)?)?,
            };
            let read = |words| Ok(self.ready.backend.read(words)?.into_owned());
            let words = partial.words.iter().map(read).collect::<Result<_, OpsError>>()?;
            partials.push((number, Partial { units: partial.units, words }));
        }
        Ok(partials)
    }
}

/// What finishes the answers of a table whose parts are elsewhere.
pub struct HostedHead<P: Page, B: Steps> {
    ready: Ready<P, B>,
    /// The base first.
    segments: Vec<(P::Table, P::Head<B>)>,
}

impl<P: Page, B: Steps> HostedHead<P, B> {
    /// Opens it; what the parts scan is not read.
    ///
    /// # Errors
    /// As [`Hosted::open_segments`](crate::hosted::Hosted::open_segments).
    pub fn open<F: Files>(backend: Arc<B>, tables: Vec<P::Table>, files: &[F]) -> Result<Self, F::Error> {
        let ready = Ready::<P, B>::new(backend, &tables[0])?;
        let open = |(table, files): (P::Table, &F)| {
            let head = P::open_head(&ready.host(&table), &[], files)?;
            Ok((table, head))
        };
        let segments = tables.into_iter().zip(files).map(open).collect::<Result<_, F::Error>>()?;
        Ok(Self { ready, segments })
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.ready.host(&self.segments[0].0), body)
    }

    /// Answers a batch, of which `scan` gets what every part contributes to each segment, while the batch is opened here.
    ///
    /// # Errors
    /// As [`Page::open`], whatever `scan` says; then those of `scan`; [`ProtocolError::Partials`] if it has not all of the table.
    pub fn answer<E: From<ProtocolError> + Send>(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
        scan: impl FnOnce() -> Result<Vec<(usize, HostPartial)>, E> + Send,
    ) -> Result<Vec<Vec<u8>>, E> {
        let batch = Batch { queries, keys };
        let (opened, scanned) = thread::scope(|scope| {
            let scanning = scope.spawn(scan);
            let opened = P::open(&self.ready.host(&self.segments[0].0), &batch);
            (opened, scanning.join())
        });
        let opened = opened?;
        let scanned = scanned.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut partials: Vec<Vec<HostPartial>> = self.segments.iter().map(|_| Vec::new()).collect();
        for (number, partial) in scanned {
            partials.get_mut(number).ok_or(ProtocolError::Partials)?.push(partial);
        }
        let mut answers = vec![Vec::new(); queries.len()];
        for (number, ((table, head), partials)) in self.segments.iter().zip(partials).enumerate() {
            let host = self.ready.host(table);
            let partials = self.kept(table, partials)?;
            let own = match number {
                0 => P::finish(&host, head, &opened, &batch, partials)?,
                _ => P::finish(&host, head, &P::wrap(&host, &opened)?, &batch, partials)?,
            };
            answers.iter_mut().zip(own).for_each(|(answer, own)| answer.extend(own));
        }
        Ok(answers)
    }

    /// The partials of a segment in the order of its units, all of them, where the backend computes.
    fn kept(
        &self,
        table: &P::Table,
        mut partials: Vec<HostPartial>,
    ) -> Result<Vec<Partial<B::Words>>, ProtocolError> {
        partials.sort_by_key(|partial| partial.units.start);
        let mut end = 0;
        for partial in &partials {
            if partial.units.start != end || partial.units.is_empty() {
                return Err(ProtocolError::Partials);
            }
            end = partial.units.end;
        }
        if end != P::facts(table).units {
            return Err(ProtocolError::Partials);
        }
        let keep = |partial: HostPartial| {
            let words = partial.words.into_iter().map(|words| self.ready.backend.keep(words));
            Ok(Partial { units: partial.units, words: words.collect::<Result<_, OpsError>>()? })
        };
        partials.into_iter().map(keep).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_of_the_units_once() {
        for (weights, segments) in [
            (vec![1], &[(1, 1)][..]),
            (vec![1, 1, 1], &[(2, 7)]),
            (vec![2, 2, 1, 2, 1], &[(1000, 1 << 40), (10, 1 << 33), (1, 1 << 20), (3, 0)]),
            (vec![0, 7, 0], &[(5, 50), (0, 0)]),
            (vec![1; 9], &[(1, 1), (1, 100), (1, 1)]),
            (vec![u32::MAX; 9], &[(1 << 40, u64::MAX), (1, 1)]),
        ] {
            let parts = weights.len();
            let segments: Vec<_> = segments.iter().map(|&(units, bytes)| Scanned { units, bytes }).collect();
            let shares: Vec<_> =
                (0..parts).map(|index| Share { index, weights: weights.clone() }.of(&segments)).collect();
            for (number, segment) in segments.iter().enumerate() {
                assert_eq!((shares[0][number].start, shares[parts - 1][number].end), (0, segment.units));
                let joined = |pair: &[Vec<Range<usize>>]| pair[0][number].end == pair[1][number].start;
                assert!(shares.windows(2).all(joined), "{weights:?}");
            }
        }
        let share = |index| Share { index, weights: vec![2, 2, 1, 2, 1] };
        let one = |index| share(index).of(&[Scanned { units: 80, bytes: 4096 }]).remove(0);
        assert_eq!([one(0), one(2), one(4)], [0..20, 40..50, 70..80]);
        // Short segments go to different parts.
        let short = [Scanned { units: 1, bytes: 10 }; 4];
        let halves = [0, 1].map(|index| Share { index, weights: vec![1, 1] }.of(&short));
        assert_eq!(halves, [[0..1, 0..1, 0..0, 0..0], [0..0, 0..0, 0..1, 0..1]]);
    }
}
