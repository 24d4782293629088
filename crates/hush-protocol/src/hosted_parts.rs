//! A table whose parts are elsewhere than what finishes its answers: in other processes, on other devices.
//!
//! [`HostedPart`] scans one part of every segment, [`HostedHead`] finishes answers from the partials of all. Both open the batch,
//! so that no more than the queries travels to the parts. Source: PPIR (map server and database servers), GPIR section 6.

use std::{mem, ops::Range, sync::Arc, thread};

use hush_ops::{OpsError, contract::Steps};

use crate::{
    ProtocolError,
    page::{Batch, Files, Host, Page, Partial},
    wire::Query,
};

/// Which part of a table: the `index`th of as many as there are weights, with its weight's share of the units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which.
    pub index: usize,
    /// Of all parts; they do not add up to zero.
    pub weights: Vec<u32>,
}

impl Share {
    /// Its units, of a segment of `units`: none where the others have them all.
    ///
    /// # Panics
    /// If there is no such part, or all weights are 0.
    pub fn of(&self, units: usize) -> Range<usize> {
        let total: u64 = self.weights.iter().map(|&weight| u64::from(weight)).sum();
        let up_to = |parts: usize| {
            let before: u64 = self.weights[..parts].iter().map(|&weight| u64::from(weight)).sum();
            (u128::from(before) * units as u128 / u128::from(total)) as usize
        };
        up_to(self.index)..up_to(self.index + 1)
    }
}

/// The units of all parts of these weights, of a segment of `units`: those of [`Share::of`].
///
/// # Panics
/// If all weights are 0.
pub fn shares(weights: &[u32], units: usize) -> Vec<Range<usize>> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let (mut before, mut start) = (0u64, 0);
    let share = |&weight: &u32| {
        before += u64::from(weight);
        let end = (u128::from(before) * units as u128 / u128::from(total)) as usize;
        mem::replace(&mut start, end)..end
    };
    weights.iter().map(share).collect()
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
        let open = |(table, files): (P::Table, &F)| {
            let units = share.of(P::facts(&table).units);
            let part = match units.is_empty() {
                true => None,
                false => Some(P::open_part(&ready.host(&table), units, files)?),
            };
            Ok((table, part))
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
        for (weights, units) in [
            (vec![1], 1),
            (vec![1, 1, 1], 2),
            (vec![2, 2, 1, 2, 1], 1000),
            (vec![0, 7, 0], 5),
            (vec![u32::MAX; 9], usize::MAX / 2),
        ] {
            let parts = weights.len();
            let shares: Vec<_> =
                (0..parts).map(|index| Share { index, weights: weights.clone() }.of(units)).collect();
            assert_eq!(super::shares(&weights, units), shares);
            assert_eq!((shares[0].start, shares[parts - 1].end), (0, units));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start), "{weights:?}");
        }
        let share = |index| Share { index, weights: vec![2, 2, 1, 2, 1] }.of(80);
        assert_eq!([share(0), share(2), share(4)], [0..20, 40..50, 70..80]);
    }
}
