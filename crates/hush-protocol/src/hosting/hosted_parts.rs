//! A table whose parts are elsewhere than what finishes its answers: in other processes, on other devices.
//!
//! [`HostedPart`] scans one part of every segment, [`HostedHead`] finishes answers from the partials of all, and may have a part
//! itself. Both open the batch, so that no more than the queries travels to the parts. Partials are where the part computes:
//! whoever knows both places carries them. Source: PPIR (map server and database servers), GPIR section 6.

use std::{ops::Range, sync::Arc, thread};

use hush_he::entities::PublicSeed;
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
pub struct SegmentSize {
    /// Its units.
    pub units: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl SegmentSize {
    /// Of a segment of `units` units, whose files these are.
    pub fn new(units: usize, files: Vec<FileSpec>) -> Self {
        let scanned = files.into_iter().map(|file| file.content).filter(Content::is_scanned);
        Self { units, bytes: scanned.map(|content| content.bytes()).sum() }
    }
}

impl Share {
    /// No units at all: all of them are another's.
    pub fn nothing() -> Self {
        Self { index: 0, weights: vec![0, 1] }
    }

    /// Its units of each segment.
    ///
    /// # Panics
    /// If there is no such part, or all weights are 0.
    pub fn of(&self, segments: &[SegmentSize]) -> Vec<Range<usize>> {
        shares(&self.weights, segments).swap_remove(self.index)
    }
}

/// The units of each segment that each of some parts has, by their weights. The segments are one line of bytes, cut by the weights,
/// and a unit belongs to the part in which its middle is: a part has units of few segments, and short segments do not all go to one
/// part.
///
/// # Panics
/// If all weights are 0.
pub fn shares(weights: &[u32], segments: &[SegmentSize]) -> Vec<Vec<Range<usize>>> {
    // A segment of nothing has a place in the line as well.
    let length = |segment: &SegmentSize| u128::from(segment.bytes.max(1));
    let all: u128 = segments.iter().map(length).sum();
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    // The first unit of each segment with `before + bytes (2 unit + 1) / (2 units)` not before the cut.
    let firsts = |cut: u128| {
        let mut before = 0;
        let first = |segment: &SegmentSize| {
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
fn sizes<P: Page>(tables: &[P::Table]) -> Vec<SegmentSize> {
    tables.iter().map(|table| SegmentSize::new(P::facts(table).units, P::files(table))).collect()
}

/// What a part contributes to the answers of a segment, and the segment's number.
pub type Contribution<W> = (usize, Partial<W>);

/// A part of every segment, on a backend.
pub struct HostedPart<P: Page, B: Steps> {
    backend: Arc<B>,
    seed: PublicSeed,
    scheme: P::Scheme<B>,
    /// The base first.
    segments: Vec<SegmentPart<P, B>>,
}

/// A segment, and the part of it, in as many pieces as are scanned one after another; none where the share has no units of it.
struct SegmentPart<P: Page, B: Steps> {
    table: P::Table,
    pieces: Vec<P::Part<B>>,
}

impl<P: Page, B: Steps> HostedPart<P, B> {
    /// Opens a part of a table of several segments, the base first; `files[i]` are those of segment `i`. The seed is that of the
    /// whole table.
    ///
    /// # Errors
    /// As [`Hosted::open_segments`](crate::hosted::Hosted::open_segments).
    pub fn open<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        share: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let scheme = P::scheme(&*backend, &tables[0], seed)?;
        let shares = share.of(&sizes::<P>(&tables));
        let open = |((table, files), units): ((P::Table, &F), Range<usize>)| {
            let host = Host { backend: &*backend, table: &table, seed, scheme: &scheme };
            let pieces = P::pieces(&table, &units).into_iter();
            let pieces = pieces.map(|units| P::open_part(&host, units, files)).collect::<Result<_, _>>()?;
            Ok(SegmentPart { table, pieces })
        };
        let segments =
            tables.into_iter().zip(files).zip(shares).map(open).collect::<Result<_, F::Error>>()?;
        Ok(Self { backend, seed, scheme, segments })
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    fn host<'a>(&'a self, table: &'a P::Table) -> Host<'a, P, B> {
        Host { backend: &self.backend, table, seed: self.seed, scheme: &self.scheme }
    }

    fn base(&self) -> Host<'_, P, B> {
        self.host(&self.segments[0].table)
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.base(), body)
    }

    /// The pass over the part for a batch: what it contributes to the segments of which it has units, where its backend computes.
    ///
    /// # Errors
    /// As [`Page::open`], before anything is scanned; [`ProtocolError::Ops`] if a step fails.
    pub fn scan(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
    ) -> Result<Vec<Contribution<B::Words>>, ProtocolError> {
        self.scan_opened(&self.open_batch(queries, keys)?)
    }

    /// The batch as the base reads it.
    ///
    /// # Errors
    /// As [`Page::open`].
    pub fn open_batch(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<P::Opened<B>, ProtocolError> {
        P::open(&self.base(), &Batch { queries, keys })
    }

    /// [`HostedPart::scan`] for an opened batch.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    pub fn scan_opened(&self, base: &P::Opened<B>) -> Result<Vec<Contribution<B::Words>>, ProtocolError> {
        let mut partials = Vec::new();
        for (number, SegmentPart { table, pieces }) in self.segments.iter().enumerate() {
            let host = self.host(table);
            let wrapped = match pieces.is_empty() || number == 0 {
                true => None,
                false => Some(P::wrap(&host, base)?),
            };
            for piece in pieces {
                partials.push((number, P::scan(&host, piece, wrapped.as_ref().unwrap_or(base))?));
            }
        }
        Ok(partials)
    }
}

/// What finishes the answers of a table whose other parts are elsewhere.
pub struct HostedHead<P: Page, B: Steps> {
    /// That of the head itself, which may have no units.
    own: HostedPart<P, B>,
    /// Of every segment.
    heads: Vec<P::Head<B>>,
}

impl<P: Page, B: Steps> HostedHead<P, B> {
    /// Opens it, with the part `own` of the table; what others scan is not read.
    ///
    /// # Errors
    /// As [`Hosted::open_segments`](crate::hosted::Hosted::open_segments).
    pub fn open<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        own: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let own = HostedPart::open(backend, tables, seed, own, files)?;
        let open =
            |(segment, files): (&SegmentPart<P, B>, &F)| P::open_head(&own.host(&segment.table), &[], files);
        let heads = own.segments.iter().zip(files).map(open).collect::<Result<_, F::Error>>()?;
        Ok(Self { own, heads })
    }

    /// The part of the head itself.
    pub fn own(&self) -> &HostedPart<P, B> {
        &self.own
    }

    /// Answers a batch. `scan` gets what all other parts contribute, while the batch is opened here and the head's own part is
    /// scanned; `keep` then carries their words to where the head computes.
    ///
    /// # Errors
    /// As [`Page::open`], whatever `scan` says; then those of `scan`; [`ProtocolError::Partials`] if it has not all of the table;
    /// those of `keep`.
    pub fn answer<W: Send, E: From<ProtocolError> + Send>(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
        scan: impl FnOnce() -> Result<Vec<Contribution<W>>, E> + Send,
        keep: impl Fn(W) -> Result<B::Words, OpsError>,
    ) -> Result<Vec<Vec<u8>>, E> {
        let (opened, scanned) = thread::scope(|scope| {
            let scanning = scope.spawn(scan);
            let opened = self.own.open_batch(queries, keys);
            let opened = opened.and_then(|opened| Ok((self.own.scan_opened(&opened)?, opened)));
            (opened, scanning.join())
        });
        let (mut contributions, opened) = opened?;
        let scanned = scanned.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        for (number, partial) in scanned {
            contributions.push((number, partial.carried(&keep).map_err(ProtocolError::from)?));
        }
        Ok(self.finish(&opened, &Batch { queries, keys }, contributions)?)
    }

    /// The answers to an opened batch, from what all parts contribute.
    ///
    /// # Errors
    /// [`ProtocolError::Partials`] if that is not all of the table; [`ProtocolError::Ops`] if a step fails.
    pub fn finish(
        &self,
        opened: &P::Opened<B>,
        batch: &Batch<'_, B>,
        contributions: Vec<Contribution<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let mut partials: Vec<Vec<_>> = self.heads.iter().map(|_| Vec::new()).collect();
        for (number, partial) in contributions {
            partials.get_mut(number).ok_or(ProtocolError::Partials)?.push(partial);
        }
        let mut answers = vec![Vec::new(); batch.queries.len()];
        let segments = self.own.segments.iter().zip(&self.heads).zip(partials).enumerate();
        for (number, ((segment, head), partials)) in segments {
            let host = self.own.host(&segment.table);
            let partials = in_order::<P, _>(&segment.table, partials)?;
            let own = match number {
                0 => P::finish(&host, head, opened, batch, partials)?,
                _ => P::finish(&host, head, &P::wrap(&host, opened)?, batch, partials)?,
            };
            answers.iter_mut().zip(own).for_each(|(answer, own)| answer.extend(own));
        }
        Ok(answers)
    }
}

/// The partials of a segment in the order of their units, all of them.
fn in_order<P: Page, W>(
    table: &P::Table,
    mut partials: Vec<Partial<W>>,
) -> Result<Vec<Partial<W>>, ProtocolError> {
    partials.sort_by_key(|partial| partial.units.start);
    let mut end = 0;
    for partial in &partials {
        if partial.units.start != end || partial.units.is_empty() {
            return Err(ProtocolError::Partials);
        }
        end = partial.units.end;
    }
    if end == P::facts(table).units { Ok(partials) } else { Err(ProtocolError::Partials) }
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
            let segments: Vec<_> =
                segments.iter().map(|&(units, bytes)| SegmentSize { units, bytes }).collect();
            let shares: Vec<_> =
                (0..parts).map(|index| Share { index, weights: weights.clone() }.of(&segments)).collect();
            for (number, segment) in segments.iter().enumerate() {
                assert_eq!((shares[0][number].start, shares[parts - 1][number].end), (0, segment.units));
                let joined = |pair: &[Vec<Range<usize>>]| pair[0][number].end == pair[1][number].start;
                assert!(shares.windows(2).all(joined), "{weights:?}");
            }
        }
        let share = |index| Share { index, weights: vec![2, 2, 1, 2, 1] };
        let one = |index| share(index).of(&[SegmentSize { units: 80, bytes: 4096 }]).remove(0);
        assert_eq!([one(0), one(2), one(4)], [0..20, 40..50, 70..80]);
        // Short segments go to different parts.
        let short = [SegmentSize { units: 1, bytes: 10 }; 4];
        let halves = shares(&[1, 1], &short);
        assert_eq!(halves, [[0..1, 0..1, 0..0, 0..0], [1..1, 1..1, 0..1, 0..1]]);
    }
}
