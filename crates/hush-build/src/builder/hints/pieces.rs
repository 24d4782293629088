//! A stage of a build that is computed piece by piece: by one device, by several, or by a crew. Each piece is written by this
//! process and recorded in the journal, so that a killed build resumes after it.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    panic::resume_unwind,
    sync::Mutex,
    thread,
};

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_store::snapshot::{Journal, SegmentWriter};
use prost::bytes::Bytes;
use rayon::prelude::*;

use super::{crew::have_done, task::Task};
use crate::builder::{BuildError, Crew};

/// The least number of tasks for each place of a crew, if there are enough pieces, so that all places end at about the same time.
const TASKS: usize = 4;
/// The maximum bytes of a task's result, unless one piece is longer.
const TASK_BYTES: usize = 64 << 20;

/// The pieces of a stage's product, and the files that they are written to. Used from any thread.
pub(in crate::builder) trait Pieces: Sync {
    /// Returns the number of pieces.
    fn count(&self) -> usize;
    /// Returns the units of progress in a piece.
    fn units(&self, piece: usize) -> u64;
    /// Returns the bytes of the content of a piece.
    fn bytes(&self, piece: usize) -> usize;
    /// Writes the content of a piece.
    fn write(&self, piece: usize, content: &[u8]) -> Result<(), BuildError>;
    /// Reads the content of a piece back, and passes it to `take` in order, in one or several chunks.
    fn read(&self, piece: usize, take: &mut dyn FnMut(&[u8]));
}

/// A worker that computes pieces.
pub(in crate::builder) trait Worker: Sync {
    /// Returns the number of pieces that are computed at once.
    fn at_once(&self) -> usize {
        1
    }

    /// Returns whether the worker reports progress itself while it computes a piece, because a piece takes long.
    fn tells(&self) -> bool {
        false
    }

    /// Returns the contents of neighbouring pieces, computed together.
    fn contents(&self, pieces: Range<usize>, progress: &dyn Progress) -> Result<Vec<Bytes>, BuildError>;
}

/// The context of a stage: the segment's files, the threads for work on the host, the crew, and the progress.
#[derive(Clone, Copy)]
pub(in crate::builder) struct StageContext<'a> {
    pub(in crate::builder) writer: &'a SegmentWriter<'a>,
    pub(in crate::builder) cpu: &'a Cpu,
    pub(in crate::builder) crew: Option<&'a dyn Crew>,
    pub(in crate::builder) progress: &'a dyn Progress,
}

/// A stage of a build: all pieces of a product that derives from a hint.
pub(in crate::builder) struct Stage<'a> {
    /// The name of the stage, and the units of its progress.
    pub(in crate::builder) name: (&'static str, &'static str),
    pub(in crate::builder) context: StageContext<'a>,
    pub(in crate::builder) pieces: &'a dyn Pieces,
    /// The journal; `None` if a killed build repeats the whole stage.
    pub(in crate::builder) journal: Option<Journal>,
    /// Whether the product is the hint from which a second database is made.
    pub(in crate::builder) is_first: bool,
}

impl Stage<'_> {
    /// Computes all pieces that an earlier build has not done: on the crew if there is one, else on `workers`, which gets the
    /// number of missing pieces as the maximum number of workers.
    pub(in crate::builder) fn run<'w>(
        &self,
        workers: impl FnOnce(usize) -> Result<Vec<Box<dyn Worker + 'w>>, BuildError>,
    ) -> Result<(), BuildError> {
        let progress = self.context.progress;
        let all = 0..self.pieces.count();
        let done = self.intact()?;
        let (name, unit) = self.name;
        progress.start(name, all.clone().map(|piece| self.pieces.units(piece)).sum(), unit);
        if !done.is_empty() {
            progress.resume(done.iter().map(|&piece| self.pieces.units(piece)).sum());
        }
        let left: Vec<usize> = all.filter(|piece| done.binary_search(piece).is_err()).collect();
        // Neighbouring pieces are computed together, because they derive from neighbouring rows.
        let neighbours = left.chunk_by(|one, next| one + 1 == *next);
        let ranges: Vec<_> = neighbours.map(|group| group[0]..group[0] + group.len()).collect();
        match self.context.crew {
            Some(crew) => self.elsewhere(crew, &ranges, left),
            None if left.is_empty() => Ok(()),
            None => self.here(&workers(left.len())?, ranges),
        }
    }

    /// Returns the pieces that an earlier build has done and that are still intact, in ascending order.
    fn intact(&self) -> Result<Vec<usize>, BuildError> {
        let Some(journal) = &self.journal else { return Ok(Vec::new()) };
        let progress = self.context.progress;
        if journal.recorded() > 0 {
            progress.start("check", journal.recorded() as u64, "pieces");
        }
        let intact = self.context.cpu.install(|| {
            journal.intact(|piece, take: &mut dyn FnMut(&[u8])| {
                progress.advance(1);
                self.pieces.read(piece, take);
            })
        });
        Ok(intact?)
    }

    /// Computes pieces on the workers of this process. Each takes the next pieces when it has done its own.
    fn here(&self, workers: &[Box<dyn Worker + '_>], ranges: Vec<Range<usize>>) -> Result<(), BuildError> {
        let left = Mutex::new(VecDeque::from(ranges));
        let next = |most: usize| {
            let mut left = left.lock().expect("no worker panics with it");
            let range = left.front_mut()?;
            let own = range.start..range.end.min(range.start + most);
            range.start = own.end;
            if range.start == range.end {
                left.pop_front();
            }
            Some(own)
        };
        let compute = |worker: &dyn Worker, pieces: Range<usize>| {
            let contents = worker.contents(pieces.clone(), self.context.progress)?;
            let (numbered, tells): (Vec<_>, _) = (pieces.zip(contents).collect(), worker.tells());
            self.context.cpu.install(|| {
                numbered
                    .into_par_iter()
                    .with_max_len(1)
                    .try_for_each(|(piece, content): (usize, Bytes)| self.write(piece, &content, tells))
            })
        };
        let work = |worker: &dyn Worker| {
            while let Some(pieces) = next(worker.at_once().max(1)) {
                // After an error no worker takes another piece.
                compute(worker, pieces)
                    .inspect_err(|_: &BuildError| left.lock().expect("as above").clear())?;
            }
            Ok(())
        };
        let (first, others) = workers.split_first().expect("there is a backend");
        thread::scope(|scope| {
            let working: Vec<_> = others.iter().map(|worker| scope.spawn(|| work(&**worker))).collect();
            let own = work(&**first);
            let joined =
                working.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.fold(own, Result::and)
        })
    }

    /// Computes pieces on the crew. Refuses a piece that is missing, arrives twice, or has the wrong length.
    fn elsewhere(
        &self,
        crew: &dyn Crew,
        ranges: &[Range<usize>],
        left: Vec<usize>,
    ) -> Result<(), BuildError> {
        let longest = left.iter().map(|&piece| self.pieces.bytes(piece)).max().unwrap_or(1);
        let even = left.len() / (TASKS * crew.places().max(1));
        let most = even.min(TASK_BYTES / longest.max(1)).max(1);
        let writer = self.context.writer;
        let is_first = self.is_first;
        let tasks = ranges
            .iter()
            .flat_map(|range: &Range<usize>| {
                let end = range.end;
                range.clone().step_by(most).map(move |start| start..end.min(start + most))
            })
            .map(|pieces| {
                let task = Task::hint(writer.folder(), writer.segment(), is_first, &pieces);
                Ok((pieces, task))
            });
        let mut left: BTreeSet<usize> = left.into_iter().collect();
        have_done(crew, self.context.progress, tasks, |pieces, contents| {
            if pieces.len() != contents.len() {
                return Err(BuildError::Crew(format!("not all of the pieces {pieces:?} came")));
            }
            for (piece, content) in pieces.zip(contents) {
                if !left.remove(&piece) || content.len() != self.pieces.bytes(piece) {
                    return Err(BuildError::Crew(format!("what came is not the piece {piece}")));
                }
                self.write(piece, &content, false)?;
            }
            Ok(())
        })
    }

    /// Writes the content of a piece, records it in the journal, and reports its progress unless `is_told`.
    fn write(&self, piece: usize, content: &[u8], is_told: bool) -> Result<(), BuildError> {
        self.pieces.write(piece, content)?;
        if let Some(journal) = &self.journal {
            journal.record(piece, content)?;
        }
        if !is_told {
            self.context.progress.advance(self.pieces.units(piece));
        }
        Ok(())
    }
}
