//! The handling of Ctrl-C and termination signals while a table is built or changed.

use std::{
    error::Error,
    fs,
    path::Path,
    process::{self, ExitCode},
};

use hush_build::{JobError, UpdateError};
use hush_engine::Cancel;
use hush_store::snapshot::{Phase, SharedPhase};

use crate::report;

/// The exit code of a program that a signal ended.
const INTERRUPTED: u8 = 130;

/// Installs the signal handler. The first signal cancels the work, which then ends in order; the next one ends the program at once.
/// The target is untouched until everything is written, so even an uncatchable kill leaves nothing half done.
pub(super) fn cancel_on_interrupt(
    partial: &Path,
    phase: SharedPhase,
    cancel: &Cancel,
) -> Result<(), ctrlc::Error> {
    let partial = partial.to_owned();
    let cancel = cancel.clone();
    ctrlc::set_handler(move || {
        if !cancel.is_cancelled() {
            return cancel.cancel();
        }
        // The lock waits while the table is being put in place, and is held until the end, so that it is not put in place later.
        let phase = phase.lock();
        if *phase == Phase::Fresh {
            // If this fails, the next build into the same folder clears it.
            let _ = fs::remove_dir_all(&partial);
        }
        say!("\n{}", outcome(*phase));
        process::exit(INTERRUPTED.into());
    })
}

/// Reports the outcome to the user, and returns the exit code of the program.
pub(super) fn exit(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    let error = outcome.as_ref().err();
    let of_update = error.and_then(|error| error.downcast_ref()).and_then(|error| match error {
        UpdateError::Job(error) => Some(error),
        _ => None,
    });
    let of_job = error.and_then(|error| error.downcast_ref()).or(of_update);
    if let Some(JobError::Cancelled { phase }) = of_job {
        say!("\n{}", self::outcome(*phase));
        return ExitCode::from(INTERRUPTED);
    }
    report::exit(outcome)
}

/// Returns the message for the user.
fn outcome(phase: Phase) -> String {
    let go_on = "error: interrupted; run the same command again to go on";
    match phase {
        Phase::Fresh => "error: interrupted; nothing was kept, run the same command again".into(),
        Phase::LeftOver => "error: interrupted; what an earlier build left is still there".into(),
        Phase::LaidOut { units: 0, .. } => format!("{go_on}: the records are laid out"),
        Phase::LaidOut { done, units } => format!("{go_on}: {done} of {units} pieces are done"),
        Phase::Committed => "interrupted, but the table was already in place".into(),
    }
}
