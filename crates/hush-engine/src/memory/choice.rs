//! The choice of how the files of a table are kept in the memory of the host.

use crate::{Progress, machine::memory, named::named, open_error::OpenError, units::Bytes};

/// The inverse of the share of all memory that is left to batches, keys of clients, and the system.
const LEFT_ALONE: u64 = 16;

/// A user's choice of where scanned files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryChoice {
    /// Resident if there is enough memory, else mapped.
    #[default]
    Auto,
    /// In memory of the process, on huge pages; an error if there is not enough.
    Resident,
    /// In the system's cache of files: for tables beyond memory, and for quick starts.
    Mapped,
}

named!(
    MemoryChoice,
    "a way to keep files in memory",
    [Auto = "auto", Resident = "resident", Mapped = "mapped"]
);

impl MemoryChoice {
    /// Whether files of `bytes` bytes, which are not in memory yet, are to be resident. Reports to `progress` why they are not, if
    /// the choice would have allowed it.
    ///
    /// # Errors
    /// [`OpenError::NoRoom`] if residence is asked for and there is not enough memory.
    pub(crate) fn is_resident(self, bytes: u64, progress: &dyn Progress) -> Result<bool, OpenError> {
        if self == Self::Mapped {
            return Ok(false);
        }
        // If the system does not say, there is enough.
        let room =
            memory().map_or(u64::MAX, |memory| memory.available.saturating_sub(memory.total / LEFT_ALONE));
        if bytes <= room {
            return Ok(true);
        }
        let needed = Bytes(bytes as usize);
        let room = Bytes(room as usize);
        if self == Self::Resident {
            return Err(OpenError::NoRoom { needed: needed.to_string(), room: room.to_string() });
        }
        progress.note(&format!(
            "its files stay mapped: they take {needed}, and {room} of memory are free. Answers are slower, and whatever the system \
             drops from its cache is read from the disk again"
        ));
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Progress for Notes {
        fn start(&self, _: &str, _: u64, _: &'static str) {}
        fn advance(&self, _: u64) {}
        fn note(&self, line: &str) {
            self.0.lock().unwrap().push(line.to_owned());
        }
    }

    #[test]
    fn what_has_no_room_is_mapped_or_refused() {
        const NEVER: u64 = 1 << 60;
        let notes = Notes::default();
        let of = |choice: MemoryChoice, bytes| choice.is_resident(bytes, &notes);
        assert!(of(MemoryChoice::Auto, 0).unwrap() && of(MemoryChoice::Resident, 0).unwrap());
        assert!(!of(MemoryChoice::Mapped, 0).unwrap() && !of(MemoryChoice::Mapped, NEVER).unwrap());
        assert!(notes.0.lock().unwrap().is_empty());
        assert!(!of(MemoryChoice::Auto, NEVER).unwrap());
        let note = notes.0.lock().unwrap().concat();
        assert!(note.starts_with("its files stay mapped: they take 1048576.00 TiB"), "{note}");
        let error = of(MemoryChoice::Resident, NEVER).unwrap_err().to_string();
        assert!(error.starts_with("the table needs 1048576.00 TiB of memory"), "{error}");
    }
}
