//! A compaction beside a table that goes on changing.
//!
//! The new base is made of a copy of an epoch (hard links), while others may change the table. At the end the table is held for as
//! long as changes take: those that came meanwhile are applied to the new base, which takes the place of the table.

use std::{
    collections::BTreeMap,
    path::Path,
    thread::{self, JoinHandle},
    time::Duration,
};

use hush_engine::{Backends, Progress, Silent};
use hush_protocol::descriptor::Descriptor;
use hush_store::{
    cancel::Cancel,
    snapshot::{
        Changes, CopyBeside, Header, KeptRecords, Phase, Snapshot, SnapshotError, Verify, keep_epoch,
    },
};

use crate::{
    CompactRequest, JobError, Update, UpdateError, Updated,
    builder::{self, Applied, BuildError, Signing},
    sorted::changes::ChangingLeaves,
};

/// The interval at which a table that somebody else changes is tried again.
const LOOK: Duration = Duration::from_millis(50);

/// The changes of an epoch since its base was made, with what it takes to compare them to others.
struct EpochChanges {
    changes: Changes,
    /// The records of a sorted table, whose changes are of leaves.
    kept: Option<KeptRecords>,
    descriptor: Descriptor,
    snapshot: Snapshot,
}

impl EpochChanges {
    fn take(mut snapshot: Snapshot) -> Result<Self, UpdateError> {
        let descriptor = snapshot.header().descriptor.clone();
        let changes = Changes::take(&mut snapshot)?;
        let kept = descriptor.sorted.is_some().then(|| KeptRecords::take(&mut snapshot)).transpose()?;
        Ok(Self { changes, kept, descriptor, snapshot })
    }

    /// Returns what changed since the epoch `before` of the same base: new values, and `None` for what is gone.
    fn since(&mut self, before: &mut Self) -> Result<BTreeMap<Vec<u8>, Option<Vec<u8>>>, UpdateError> {
        if let (Some(_), Some(_)) = (&self.kept, &before.kept) {
            let since = self.leaves()?.difference(&before.leaves()?).map_err(JobError::from)?;
            [&self.kept, &before.kept].into_iter().flatten().try_for_each(KeptRecords::check)?;
            return Ok(since);
        }
        let now = std::mem::take(&mut self.changes.0);
        // A record that was added and is gone again is among no changes any more; the new base has it.
        let gone = before.changes.0.iter().filter(|(key, value)| value.is_some() && !now.contains_key(*key));
        let mut since: BTreeMap<_, _> = gone.map(|(key, _)| (key.clone(), None)).collect();
        since.extend(now.into_iter().filter(|(key, value)| before.changes.0.get(key) != Some(value)));
        Ok(since)
    }

    fn leaves(&mut self) -> Result<ChangingLeaves<'_>, UpdateError> {
        let kept = self.kept.as_ref().expect("a sorted table");
        let changes = self.changes.clone();
        Ok(ChangingLeaves::take(&mut self.snapshot, &self.descriptor, kept, changes)?)
    }
}

impl Update {
    /// Folds the changes into a new base, which replaces the table, while others may change it: what they change meanwhile is in
    /// the new epoch, too.
    ///
    /// # Errors
    /// [`UpdateError`]. The table is then as others have left it. If a compaction was cancelled or killed, the next one of the same
    /// base resumes it.
    pub fn compact_beside(
        self,
        request: CompactRequest,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<Updated, UpdateError> {
        let Self { dir, writer, snapshot, signing, cancel, start } = self;
        let header = snapshot.header().clone();
        let count = header.changes.ok_or(BuildError::NotUpdatable)?;
        if count.changes == 0 && request.longest.is_none() && request.changes.is_none() {
            return Err(UpdateError::NoChanges);
        }
        let base = header.descriptor.database;
        let beside = CopyBeside::hold(&dir)?;
        // A copy of the same base that is left of a killed compaction goes on: what changed since is applied at the end.
        let copied = Snapshot::open(&beside.table(), Verify::Header);
        if !copied.is_ok_and(|copied| copied.header().descriptor.database == base) {
            beside.make(&dir)?;
        }
        let outcome = (|| {
            let mut before = EpochChanges::take(Snapshot::open(&beside.table(), Verify::Header)?)?;
            let copy = Update::open(&beside.table(), signing.clone(), &cancel)?;
            // From here on others may have the table.
            drop((writer, snapshot));
            copy.compact(CompactRequest { keep_epochs: None, ..request }, backends, progress)?;
            let now = held(|| Update::open(&dir, signing.clone(), &cancel))?;
            if now.descriptor().database != base {
                return Err(UpdateError::Replaced);
            }
            let asked = now.descriptor().asked();
            let followed = now.header().followed.clone();
            let Update { writer, snapshot, signing, .. } = now;
            let since = EpochChanges::take(snapshot)?.since(&mut before)?;
            let mut made = Snapshot::open(&beside.table(), Verify::Header)?;
            let descriptor = made.header().descriptor.clone();
            let mut changes = Changes::take(&mut made)?;
            let mut sorted = None;
            if descriptor.sorted.is_some() {
                let kept = KeptRecords::take(&mut made)?;
                let leaves = ChangingLeaves::take(&mut made, &descriptor, &kept, changes)?;
                let changed = leaves.change(&since, true).map_err(JobError::from)?;
                kept.check()?;
                let changed = changed.map_err(|_| UpdateError::Replaced)?;
                (changes, sorted) = (changed.changes, Some(changed.table));
            } else {
                changes.0.extend(since);
            }
            request.keep_epochs.map_or(Ok(()), |most| keep_epoch(&dir, most))?;
            let applied = Applied { changes: &changes, sorted: sorted.as_ref(), followed };
            let from = beside.table();
            let header = builder::apply(&from, made, applied, signing.as_ref(), writer, backends, progress)?;
            Ok(Updated::new(header, asked, start))
        })();
        match outcome {
            Err(UpdateError::Job(error)) if error.is_cancelled() => Err(UpdateError::Job(match error {
                // The phase of the copy, from which the next compaction may go on.
                cancelled @ JobError::Cancelled { .. } => cancelled,
                _ => JobError::Cancelled { phase: Phase::Fresh },
            })),
            outcome => {
                beside.remove()?;
                outcome
            }
        }
    }
}

/// The part of the room for changes, in percent, from which a table that follows gets a new base.
const RELIEF_PERCENT: u64 = 60;

fn is_full(header: &Header) -> bool {
    header.changes.is_some_and(|count| count.changes * 100 >= count.room * RELIEF_PERCENT)
}

/// New bases of a table that follows, made on a thread of their own while changes go on.
pub(crate) struct BaseRelief {
    running: Option<RunningRelief>,
}

struct RunningRelief {
    thread: JoinHandle<Result<(), UpdateError>>,
    cancel: Cancel,
}

impl BaseRelief {
    pub(crate) fn new() -> Self {
        Self { running: None }
    }

    /// Begins a new base if the changes of an epoch take much of their room. Tells what became of the last one.
    pub(crate) fn look(&mut self, header: &Header, relieved: &RelievedTable<'_>) {
        if self.running.as_ref().is_some_and(|running| running.thread.is_finished()) {
            self.wait(relieved.progress);
        }
        if is_full(header) && self.running.is_none() {
            self.begin(relieved, false);
        }
    }

    /// Has a new base, whose making is begun or has begun, and waits for it.
    pub(crate) fn now(&mut self, relieved: &RelievedTable<'_>) {
        if self.running.is_none() {
            self.begin(relieved, true);
        }
        self.wait(relieved.progress);
    }

    /// Begins a new base, if there is little room, or in any case.
    fn begin(&mut self, relieved: &RelievedTable<'_>, in_any_case: bool) {
        let cancel = Cancel::new();
        let own = cancel.clone();
        let (dir, signing) = (relieved.dir.to_owned(), relieved.signing.clone());
        let request = CompactRequest { keep_epochs: relieved.keep_epochs, ..CompactRequest::default() };
        let backends = Backends::cpu_only(relieved.backends.cpu().clone());
        let thread = thread::spawn(move || {
            loop {
                let update = held(|| Update::open(&dir, signing.clone(), &own))?;
                if !in_any_case && !is_full(update.header()) {
                    return Ok(());
                }
                match update.compact_beside(request, &backends, &Silent) {
                    // Somebody else makes a new base already.
                    Err(UpdateError::Job(JobError::Target(SnapshotError::Busy(_)))) => thread::sleep(LOOK),
                    made => return made.map(drop),
                }
                own.check()?;
            }
        });
        self.running = Some(RunningRelief { thread, cancel });
    }

    fn wait(&mut self, progress: &dyn Progress) {
        let Some(RunningRelief { thread, .. }) = self.running.take() else { return };
        match thread.join() {
            // A table without changes has no new base: its leaves are as they were built.
            Ok(Ok(()) | Err(UpdateError::NoChanges)) => {}
            Ok(Err(error)) => progress.note(&format!("no new base: {error}")),
            Err(_) => progress.note("no new base: the program failed"),
        }
    }

    /// Gives up a base that is being made, and removes what is made of it.
    pub(crate) fn stop(mut self, dir: &Path) {
        let Some(RunningRelief { thread, cancel }) = self.running.take() else { return };
        cancel.cancel();
        let _ = thread.join();
        // The next change of the table removes it as well.
        let _ = CopyBeside::remove_left(dir);
    }
}

/// A table that gets a new base.
pub(crate) struct RelievedTable<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) signing: &'a Option<Signing>,
    pub(crate) keep_epochs: Option<usize>,
    pub(crate) backends: &'a Backends,
    pub(crate) progress: &'a dyn Progress,
}

/// Opens the table once nobody else changes it.
fn held(open: impl Fn() -> Result<Update, UpdateError>) -> Result<Update, UpdateError> {
    loop {
        match open() {
            Err(UpdateError::Job(JobError::Target(SnapshotError::Busy(_)))) => thread::sleep(LOOK),
            update => return update,
        }
    }
}
