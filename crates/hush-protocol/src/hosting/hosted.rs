//! A table, or a share of it, on a backend.
//!
//! [`HostedShare`] scans the units of a share. [`Hosted`] also finishes answers, from the partials of its own share and of
//! all others. Every share opens the batch itself, so only the queries are sent to it. Partials are in the memory of the
//! backend that computed them; a caller that knows both backends copies them from one to the other. Source: PPIR (map
//! server and database servers), GPIR section 6.

use std::{mem, ops::Range, panic::resume_unwind, slice, sync::Arc, thread};

use hush_he::entities::PublicSeed;
use hush_ops::{OpsError, contract::Steps};

use crate::{
    ProtocolError,
    page::{Batch, Files, Host, Page, Partial},
    share::{SegmentSize, Share},
    wire::Query,
};

/// The number of a segment, and a partial of its answers.
pub type Contribution<W> = (usize, Partial<W>);

/// A share of a table, on a backend.
pub struct HostedShare<P: Page, B: Steps> {
    backend: Arc<B>,
    seed: PublicSeed,
    scheme: P::Scheme<B>,
    /// The segments, the base first, then the others in the order of their answers.
    segments: Vec<HostedSegment<P, B>>,
}

/// A segment, and the share's units of it.
struct HostedSegment<P: Page, B: Steps> {
    table: P::Table,
    /// The units, in the parts that are scanned one after another. Empty if the share has no units of the segment.
    parts: Vec<P::Part<B>>,
    /// Whether the share has all units of the segment.
    is_whole: bool,
}

impl<P: Page, B: Steps> HostedShare<P, B> {
    /// Opens a share of a table of several segments, the base first. `files[i]` are the files of segment `i`. The seed is
    /// that of the whole table.
    ///
    /// # Errors
    /// `F::Error` if a file is missing or damaged, or if the backend cannot hold it.
    ///
    /// # Panics
    /// If `tables` is empty.
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

    /// Returns the backend and the data of the base that all parts and the head have in common.
    pub fn host(&self) -> Host<'_, P, B> {
        self.host_of(&self.segments[0])
    }

    fn host_of<'a>(&'a self, segment: &'a HostedSegment<P, B>) -> Host<'a, P, B> {
        Host { backend: &self.backend, table: &segment.table, seed: self.seed, scheme: &self.scheme }
    }

    /// Reads uploaded evaluation keys.
    ///
    /// # Errors
    /// The errors of [`Page::open_keys`].
    pub fn open_keys(&self, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        P::open_keys(&self.host(), body)
    }

    /// Parses and checks a batch for the base.
    ///
    /// # Errors
    /// The errors of [`Page::open`].
    pub fn open_batch(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<P::Opened<B>, ProtocolError> {
        self.open_own(queries, keys, &(0..queries.len()))
    }

    /// Parses and checks a batch for the base, to scan it alone: queries are expanded only if the scan reads expansions.
    ///
    /// # Errors
    /// The errors of [`Page::open`].
    pub fn open_for_scan(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<P::Opened<B>, ProtocolError> {
        let scanned = if P::scans_expansions(&self.segments[0].table) { queries.len() } else { 0 };
        self.open_own(queries, keys, &(0..scanned))
    }

    /// Parses and checks a batch for the base, of which the backend expands the queries `own`.
    ///
    /// # Errors
    /// The errors of [`Page::open`].
    pub(super) fn open_own(
        &self,
        queries: &[Query],
        keys: &[&B::Keys],
        own: &Range<usize>,
    ) -> Result<P::Opened<B>, ProtocolError> {
        P::open(&self.host(), &Batch { queries, keys }, own)
    }

    /// Scans the share for an opened batch. Returns its partials of all segments of which it has units.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    pub fn scan(&self, opened: &P::Opened<B>) -> Result<Vec<Contribution<B::Words>>, ProtocolError> {
        let mut contributions = Vec::new();
        self.on_segments(
            |segment| !segment.parts.is_empty(),
            opened,
            |number, segment, host, opened| {
                let partials = segment.scan(host, opened)?;
                contributions.extend(partials.into_iter().map(|partial| (number, partial)));
                Ok(())
            },
        )?;
        Ok(contributions)
    }

    /// Calls `work` for each segment that `are_asked` selects, in order, with the batch converted for the segment.
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

    /// Sorts partials by their units.
    ///
    /// # Errors
    /// [`ProtocolError::Partials`] unless the partials cover all units exactly once.
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

/// A table on a backend that has a share of it and finishes answers.
pub struct Hosted<P: Page, B: Steps> {
    /// The share on this backend: the whole table, a share of it, or nothing.
    share: HostedShare<P, B>,
    /// The head of every segment.
    heads: Vec<P::Head<B>>,
}

impl<P: Page, B: Steps> Hosted<P, B> {
    /// Opens a whole table of one segment. `seed` is the seed of its public values.
    ///
    /// # Errors
    /// The errors of [`HostedShare::open`].
    pub fn open<F: Files>(
        backend: Arc<B>,
        table: P::Table,
        seed: PublicSeed,
        files: &F,
    ) -> Result<Self, F::Error> {
        Self::open_share(backend, vec![table], seed, &Share::whole(), slice::from_ref(files))
    }

    /// Opens a share of a table of several segments, and the heads. Does not read data that only other shares scan.
    ///
    /// # Errors
    /// The errors of [`HostedShare::open`].
    ///
    /// # Panics
    /// If `tables` is empty, `share` is out of range, or all of its weights are 0.
    pub fn open_share<F: Files>(
        backend: Arc<B>,
        tables: Vec<P::Table>,
        seed: PublicSeed,
        share: &Share,
        files: &[F],
    ) -> Result<Self, F::Error> {
        Self::with_heads(HostedShare::open(backend, tables, seed, share, files)?, files)
    }

    /// Opens a table of one segment in several parts, whose ranges of units are consecutive and cover the table.
    ///
    /// # Errors
    /// The errors of [`HostedShare::open`].
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

    /// Returns the share on this backend.
    pub fn share(&self) -> &HostedShare<P, B> {
        &self.share
    }

    /// Answers a batch with one scan of the table, all of which must be in this share. `keys[i]` are the keys of the client
    /// of `queries[i]`; the list is empty if the protocol has no keys. An answer consists of that of the base, then those
    /// of the other segments.
    ///
    /// # Errors
    /// The errors of [`Page::open`], before anything is scanned. [`ProtocolError::Ops`] if a step fails.
    /// [`ProtocolError::Partials`] if other shares have units of the table.
    pub fn answer(&self, queries: &[Query], keys: &[&B::Keys]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let opened = self.share.open_batch(queries, keys)?;
        let scan =
            |_, segment: &HostedSegment<P, B>, host: &Host<'_, P, B>, opened: &_| segment.scan(host, opened);
        self.finish_each(&opened, &Batch { queries, keys }, scan)
    }

    /// Answers a batch together with other shares. `scan` returns the partials of all other shares, and runs while this
    /// share opens and scans the batch. `keep` then copies their words to the backend.
    ///
    /// # Errors
    /// The errors of [`Page::open`], which take precedence over those of `scan`. Then the errors of `scan`.
    /// [`ProtocolError::Partials`] if the partials do not cover the table. The errors of `keep`.
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
    /// [`ProtocolError::Partials`] if the partials do not cover the whole table. [`ProtocolError::Ops`] if a step fails.
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

    /// Finishes the answers of each segment in order. `partials_of` returns the partials of a segment.
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
