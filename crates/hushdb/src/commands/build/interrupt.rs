//! Ctrl-C and termination signals during a build.

use std::{fs, path::Path, process};

use hush_store::snapshot::{Phase, SharedPhase};

/// On a signal, exits; the unfinished files in `partial` are removed before, unless a build can go on from them. The target is
/// never touched before everything is written, so that a kill that cannot be caught leaves nothing half done either.
pub(super) fn stop_on_interrupt(partial: &Path, phase: SharedPhase) -> Result<(), ctrlc::Error> {
    let partial = partial.to_owned();
    ctrlc::set_handler(move || {
        // Waits if the table is being put in place; held until the end, so that it is not put there later.
        let phase = phase.lock();
        if *phase == Phase::Fresh {
            // If this fails, the next build into the same folder clears it.
            let _ = fs::remove_dir_all(&partial);
        }
        eprintln!("\n{}", outcome(*phase));
        process::exit(130);
    })
}

/// What the user is told.
fn outcome(phase: Phase) -> String {
    let go_on = "error: interrupted; run the same command again to go on";
    match phase {
        Phase::Fresh => "error: interrupted; nothing was kept, run the same command again".into(),
        Phase::LeftOver => "error: interrupted; what an earlier build left is still there".into(),
        Phase::LaidOut { units: 0, .. } => format!("{go_on}: the records are laid out"),
        Phase::LaidOut { done, units } => format!("{go_on}: {done} of {units} plaintexts are done"),
        Phase::Committed => "interrupted, but the table was already in place".into(),
    }
}
