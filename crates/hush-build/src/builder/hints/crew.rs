//! Others that compute what takes a build longest: processes that see the folder of the unfinished table.
//!
//! A build cuts its work into [tasks](super::task), bytes that say all there is to do. A [`Crew`] has
//! [`work`](crate::builder::work) do them, wherever it is, and brings what comes of them. The build writes it, and notes it in its
//! journal like its own work. So a build that is killed goes on behind what its crew has done, and the table is the same whoever
//! computed it.

use std::collections::BTreeMap;

use hush_engine::Progress;
use prost::bytes::Bytes;

use super::task::Task;
use crate::builder::BuildError;

/// Tasks that are under way for each place: one that is done, and one that waits.
const UNDER_WAY: usize = 2;

/// Whoever has tasks done elsewhere.
pub trait Crew: Send + Sync {
    /// Tasks that are done at once.
    fn places(&self) -> usize;

    /// Has [`crate::builder::work`] do a task, without waiting for it.
    ///
    /// # Errors
    /// [`BuildError::Crew`].
    fn ask(&self, number: usize, task: Bytes) -> Result<(), BuildError>;

    /// Waits for one of the tasks that were asked for: its number, and what came of it. `None` after some moments without one, so
    /// that whoever waits can give up.
    ///
    /// # Errors
    /// [`BuildError::Crew`] if a task is not done.
    fn next(&self) -> Result<Option<(usize, Vec<Bytes>)>, BuildError>;
}

/// Has all of `tasks` done, and gives what comes of each, with what it came with, to `take`.
///
/// # Errors
/// Those of `tasks`, of the crew and of `take`; [`BuildError::Cancelled`].
pub(in crate::builder) fn have_done<T>(
    crew: &dyn Crew,
    progress: &dyn Progress,
    tasks: impl IntoIterator<Item = Result<(T, Task), BuildError>>,
    mut take: impl FnMut(T, Vec<Bytes>) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let most = UNDER_WAY * crew.places().max(1);
    let mut tasks = tasks.into_iter().enumerate();
    let mut under_way = BTreeMap::new();
    loop {
        // No more than are soon done: what comes back is written before more is asked for.
        while under_way.len() < most
            && let Some((number, task)) = tasks.next()
        {
            let (what, task) = task?;
            crew.ask(number, task.to_bytes())?;
            under_way.insert(number, what);
        }
        if under_way.is_empty() {
            return Ok(());
        }
        progress.check()?;
        let Some((number, contents)) = crew.next()? else { continue };
        let asked = under_way.remove(&number);
        let what = asked.ok_or_else(|| BuildError::Crew(format!("task {number} was not asked for")))?;
        take(what, contents)?;
    }
}
