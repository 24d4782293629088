//! Ctrl-C and termination signals during a build.

use std::{fs, process};

use hush_engine::{Cancel, Job};
use hush_store::snapshot::Phase;

/// Exit code of a program that a signal has ended.
pub(super) const INTERRUPTED: u8 = 130;

/// The first signal cancels the job, which then ends in order. The next one ends the program at once. The target is never touched
/// before everything is written, so that a kill that cannot be caught leaves nothing half done either.
pub(super) fn cancel_on_interrupt(job: &Job, cancel: &Cancel) -> Result<(), ctrlc::Error> {
    let (partial, phase, cancel) = (job.partial_dir().to_owned(), job.phase(), cancel.clone());
    ctrlc::set_handler(move || {
        if !cancel.is_cancelled() {
            return cancel.cancel();
        }
        // Waits if the table is being put in place; held until the end, so that it is not put there later.
        let phase = phase.lock();
        if *phase == Phase::Fresh {
            // If this fails, the next build into the same folder clears it.
            let _ = fs::remove_dir_all(&partial);
        }
        eprintln!("\n{}", outcome(*phase));
        process::exit(INTERRUPTED.into());
    })
}

/// What the user is told.
pub(super) fn outcome(phase: Phase) -> String {
    let go_on = "error: interrupted; run the same command again to go on";
    match phase {
        Phase::Fresh => "error: interrupted; nothing was kept, run the same command again".into(),
        Phase::LeftOver => "error: interrupted; what an earlier build left is still there".into(),
        Phase::LaidOut { units: 0, .. } => format!("{go_on}: the records are laid out"),
        Phase::LaidOut { done, units } => format!("{go_on}: {done} of {units} plaintexts are done"),
        Phase::Committed => "interrupted, but the table was already in place".into(),
    }
}
