//! A crew computes the longest stages of a build: processes elsewhere that see the folder of the unfinished table.
//!
//! A build cuts its work into [tasks](super::task): bytes that describe the work completely. A [`Crew`] has
//! [`work`](crate::builder::work) do the tasks in other processes, and returns the results. The build writes the results, and
//! records them in its journal like its own work. So a killed build resumes after the pieces that its crew has done, and the
//! table is the same whoever computed it.

use std::collections::BTreeMap;

use hush_engine::Progress;
use prost::bytes::Bytes;

use super::task::Task;
use crate::builder::BuildError;

/// The tasks in flight for each place: one that is being done, and one that waits.
const UNDER_WAY: usize = 2;

/// A crew: passes tasks to other processes and collects the results.
pub trait Crew: Send + Sync {
    /// Returns the number of tasks that the crew does at the same time.
    fn places(&self) -> usize;

    /// Sends a task to be done by [`crate::builder::work`], without waiting for the result.
    ///
    /// # Errors
    /// [`BuildError::Crew`] if the task cannot be sent.
    fn ask(&self, number: usize, task: Bytes) -> Result<(), BuildError>;

    /// Waits for the result of any task that was sent. Returns the task's number and its result, or `None` if no task has ended
    /// within a moment, so that the caller can cancel.
    ///
    /// # Errors
    /// [`BuildError::Crew`] if a task failed.
    fn next(&self) -> Result<Option<(usize, Vec<Bytes>)>, BuildError>;
}

/// Has the crew do all of `tasks`, and passes the result of each to `take`, with the value that is paired with the task.
///
/// # Errors
/// The errors of `tasks`, of the crew and of `take`; [`BuildError::Cancelled`].
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
        // The number in flight is limited, so that results are written before more are requested.
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
