//! A table on a backend, or a share of it.
//!
//! [`HostedShare`] scans the units of a share. [`Hosted`] finishes answers as well, from the partials of its own share and of all
//! others. Each opens the batch itself, so that no more than the queries travels to another share. Partials are in the memory of
//! the backend that made them: whoever knows both backends carries them. Source: PPIR (map server and database servers), GPIR
//! section 6.

use std::{mem, ops::Range, panic::resume_unwind, slice, sync::Arc, thread};

use hush_he::entities::PublicSeed;
use hush_ops::{OpsError, contract::Steps};

use crate::{
    ProtocolError,
    page::{Batch, Files, Host, Page, Partial},
    share::{SegmentSize, Share},
    wire::Query,
};

/// A partial of a segment's answers, behind the segment's number.
pub type Contribution<W> = (usize, Partial<W>);

/// A share of a table, on a backend.
pub struct HostedShare<P: Page, B: Steps> {
    backend: Arc<B>,
    seed: PublicSeed,
    scheme: P::Scheme<B>,
    /// The base first, then the others in the order of their answers.
    segments: Vec<HostedSegment<P, B>>,
}

/// A segment, and the units that the share has of it.
struct HostedSegment<P: Page, B: Steps> {
    table: P::Table,
    /// The units, in as many parts as are scanned one after another; none where the share has no units.
    parts: Vec<P::Part<B>>,
    /// Whether these are all units of the segment.
    is_whole: bool,
}

impl<P: Page, B: Steps> HostedShare<P, B> {
    /// Opens a share of a table of several segments, the base first; `files[i]` are those of segment `i`. The seed is that of the
    /// whole table.
    ///
    /// # Errors
    /// `F::Error` if a file is not to be had or is damaged, or the backend cannot hold it.
    ///
    /// # Panics
    /// If there is no segment.
    pub fn open<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        share: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let shares = share.of(&tables
            .iter()
            .map(|table| SegmentSize::new(P::facts(table).units, P::files(table)))
            .collect::<Vec<_>>());
        let parts = tables.iter().zip(&shares).map(|(table, units)| P::pieces(table, units)).collect();
        Self::open_parts(backend, tables, seed, parts, files)
    }

    /// Opens the parts `parts[i]` of segment `i`.
    fn open_parts<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        parts: Vec<Vec<Range<usize>>>,
        files: &[F],
    ) -> Result<Self, F::Error> {
        let scheme = P::scheme(&*backend, &tables[0], seed)?;
        let segments = tables
            .into_iter()
            .zip(files)
            .zip(parts)
            .map(|((table, files), parts): ((P::Table, &F), Vec<Range<usize>>)| {
                let host = Host { backend: &*backend, table: &table, seed, scheme: &scheme };
                let is_whole = parts.iter().map(Range::len).sum::<usize>() == P::facts(&table).units;
                let parts = parts.into_iter().map(|units| P::open_part(&host, units, files));
                let parts = parts.collect::<Result<_, F::Error>>()?;
                Ok(HostedSegment { table, parts, is_whole })
            })
            .collect::<Result<_, F::Error>>()?;
        Ok(Self { backend, seed, scheme, segments })
    }

    /// Returns the backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Returns what is neither part nor head of the base.
    pub fn host(&self) -> Host<'_, P, B> {
        self.host_of(&self.segments[0])
    }

    fn host_of<'a>(&'a self, segment: &'a HostedSegment<P, B>) -> Host<'a, P, B> {
        Host { backend: &self.backend, table: &segment.table, seed: self.seed, scheme: &self.scheme }
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// As [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.host(), body)
    }

    /// Reads a batch as the base does.
    ///
    /// # Errors
    /// As [`Page::open`].
    pub fn open_batch(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<P::Opened<B>, ProtocolError> {
        P::open(&self.host(), &Batch { queries, keys })
    }

    /// Scans the share for an opened batch. Returns its partials of the segments of which it has units.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    pub fn scan(&self, opened: &P::Opened<B>) -> Result<Vec<Contribution<B::Words>>, ProtocolError> {
        let mut contributions = Vec::new();
        let has_units = |segment: &HostedSegment<P, B>| !segment.parts.is_empty();
        self.on_segments(has_units, opened, |number, segment, host, opened| {
            contributions.extend(segment.scan(host, opened)?.into_iter().map(|partial| (number, partial)));
            Ok(())
        })?;
        Ok(contributions)
    }

    /// Does `work` on one segment after another of those that `are_asked`, with the batch as the segment reads it.
    fn on_segments(
        &self,
        are_asked: impl Fn(&HostedSegment<P, B>) -> bool,
        opened: &P::Opened<B>,
        mut work: impl FnMut(
            usize,
            &HostedSegment<P, B>,
            &Host<'_, P, B>,
            &P::Opened<B>,
        ) -> Result<(), ProtocolError>,
    ) -> Result<(), ProtocolError> {
        for (number, segment) in self.segments.iter().enumerate().filter(|(_, segment)| are_asked(segment)) {
            let host = self.host_of(segment);
            match number {
                0 => work(number, segment, &host, opened)?,
                _ => work(number, segment, &host, &P::wrap(&host, opened)?)?,
            }
        }
        Ok(())
    }
}

impl<P: Page, B: Steps> HostedSegment<P, B> {
    fn scan(
        &self,
        host: &Host<'_, P, B>,
        opened: &P::Opened<B>,
    ) -> Result<Vec<Partial<B::Words>>, ProtocolError> {
        self.parts.iter().map(|part| P::scan(host, part, opened)).collect()
    }

    /// Returns the partials in the order of their units.
    ///
    /// # Errors
    /// [`ProtocolError::Partials`] unless they are those of all units.
    fn in_order<W>(&self, mut partials: Vec<Partial<W>>) -> Result<Vec<Partial<W>>, ProtocolError> {
        partials.sort_by_key(|partial| partial.units.start);
        let mut end = 0;
        for partial in &partials {
            if partial.units.start != end || partial.units.is_empty() {
                return Err(ProtocolError::Partials);
            }
            end = partial.units.end;
        }
        if end == P::facts(&self.table).units { Ok(partials) } else { Err(ProtocolError::Partials) }
    }
}

/// A table on a backend that has a share of it, and finishes answers.
pub struct Hosted<P: Page, B: Steps> {
    /// The own share, which may be the whole table, or nothing.
    share: HostedShare<P, B>,
    /// The head of every segment.
    heads: Vec<P::Head<B>>,
}

impl<P: Page, B: Steps> Hosted<P, B> {
    /// Opens a table of one segment, with the seed of its public values.
    ///
    /// # Errors
    /// As [`HostedShare::open`].
    pub fn open<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        seed: PublicSeed,
        files: &F,
    ) -> Result<Self, F::Error> {
        Self::open_share(backend, vec![table], seed, &Share::whole(), slice::from_ref(files))
    }

    /// Opens a table of several segments with a share of it. What other shares scan is not read.
    ///
    /// # Errors
    /// As [`HostedShare::open`].
    ///
    /// # Panics
    /// As [`HostedShare::open`].
    pub fn open_share<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        share: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        Self::with_heads(HostedShare::open(backend, tables, seed, share, files)?, files)
    }

    /// Opens a table of one segment in parts, whose units are those of the table in order.
    ///
    /// # Errors
    /// As [`HostedShare::open`].
    pub fn open_in_parts<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        seed: PublicSeed,
        parts: &[Range<usize>],
        files: &F,
    ) -> Result<Self, F::Error> {
        let files = slice::from_ref(files);
        let share = HostedShare::open_parts(backend, vec![table], seed, vec![parts.to_vec()], files)?;
        Self::with_heads(share, files)
    }

    fn with_heads<F: Files>(share: HostedShare<P, B>, files: &[F]) -> Result<Self, F::Error> {
        let heads = share
            .segments
            .iter()
            .zip(files)
            .map(|(segment, files): (&HostedSegment<P, B>, &F)| {
                let parts = if segment.is_whole { &segment.parts[..] } else { &[] };
                P::open_head(&share.host_of(segment), parts, files)
            })
            .collect::<Result<_, F::Error>>()?;
        Ok(Self { share, heads })
    }

    /// Returns the own share.
    pub fn share(&self) -> &HostedShare<P, B> {
        &self.share
    }

    /// Answers a batch with one pass over the table, all of which is here. `keys[i]` are those of the client of
    /// `queries[i]`; none where the protocol has none. An answer is that of the base, then those of the other segments.
    ///
    /// # Errors
    /// As [`Page::open`], before anything is scanned; [`ProtocolError::Ops`] if a step fails; [`ProtocolError::Partials`] if units
    /// are elsewhere.
    pub fn answer(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let opened = self.share.open_batch(queries, keys)?;
        let scan =
            |_, segment: &HostedSegment<P, B>, host: &Host<'_, P, B>, opened: &_| segment.scan(host, opened);
        self.finish_each(&opened, &Batch { queries, keys }, scan)
    }

    /// Answers a batch. `scan` gets the partials of all other shares, while the batch is opened here and the own share
    /// is scanned; `keep` then carries their words to the backend.
    ///
    /// # Errors
    /// As [`Page::open`], whatever `scan` says; then those of `scan`; [`ProtocolError::Partials`] if it has not all of the table;
    /// those of `keep`.
    pub fn answer_with<W: Send, E: From<ProtocolError> + Send>(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
        scan: impl FnOnce() -> Result<Vec<Contribution<W>>, E> + Send,
        keep: impl Fn(W) -> Result<B::Words, OpsError>,
    ) -> Result<Vec<Vec<u8>>, E> {
        let (opened, scanned) = thread::scope(|scope| {
            let scanning = scope.spawn(scan);
            let opened = self.share.open_batch(queries, keys);
            let opened = opened.and_then(|opened| Ok((self.share.scan(&opened)?, opened)));
            (opened, scanning.join())
        });
        let (mut contributions, opened) = opened?;
        for (number, partial) in scanned.unwrap_or_else(|panic| resume_unwind(panic))? {
            contributions.push((number, partial.carried(&keep).map_err(ProtocolError::from)?));
        }
        Ok(self.finish(&opened, &Batch { queries, keys }, contributions)?)
    }

    /// Finishes the answers to an opened batch from the partials of all shares.
    ///
    /// # Errors
    /// [`ProtocolError::Partials`] if these are not of all of the table; [`ProtocolError::Ops`] if a step fails.
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
        self.finish_each(opened, batch, |number, _, _, _| Ok(mem::take(&mut partials[number])))
    }

    /// Finishes the answers of one segment after another, from the partials that `partials_of` returns of each.
    fn finish_each(
        &self,
        opened: &P::Opened<B>,
        batch: &Batch<'_, B>,
        mut partials_of: impl FnMut(
            usize,
            &HostedSegment<P, B>,
            &Host<'_, P, B>,
            &P::Opened<B>,
        ) -> Result<Vec<Partial<B::Words>>, ProtocolError>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let mut answers = Vec::new();
        self.share.on_segments(
            |_| true,
            opened,
            |number, segment, host, opened| {
                let partials = segment.in_order(partials_of(number, segment, host, opened)?)?;
                let own = P::finish(host, &self.heads[number], opened, batch, partials)?;
                match number {
                    0 => answers = own,
                    _ => answers.iter_mut().zip(own).for_each(|(answer, own)| answer.extend(own)),
                }
                Ok(())
            },
        )?;
        Ok(answers)
    }
}
