//! The map from records to the rows of files, since messages about records name rows.

use std::path::{Path, PathBuf};

/// A run of records that are consecutive rows of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RowRun {
    /// The number of the first record, from 1.
    record: u64,
    /// The row of the first record, from 1.
    row: u64,
    /// The file, if there are several.
    file: Option<PathBuf>,
}

/// The map from the number of a record to its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowMap {
    runs: Vec<RowRun>,
    /// The number of records so far.
    records: u64,
    /// The number of the current file, if there are several.
    file: Option<usize>,
    /// The number of rows of that file so far.
    row: u64,
    /// Whether the last row is a record.
    is_in_run: bool,
}

impl RowMap {
    /// Adds the next row, which is a record or was left out. If there are several files, `file` is the current one with its unique
    /// number.
    pub(crate) fn note(&mut self, is_record: bool, file: Option<(usize, &Path)>) {
        let number = file.map(|(number, _)| number);
        if self.file != number {
            (self.file, self.row, self.is_in_run) = (number, 0, false);
        }
        self.row += 1;
        self.records += u64::from(is_record);
        if is_record && !self.is_in_run {
            let file = file.map(|(_, path)| path.to_owned());
            self.runs.push(RowRun { record: self.records, row: self.row, file });
        }
        self.is_in_run = is_record;
    }

    /// Returns the row of a record, from 1, and its file if there are several.
    pub fn row(&self, record: u64) -> (Option<&Path>, u64) {
        let run =
            self.runs.partition_point(|run| run.record <= record).checked_sub(1).map(|at| &self.runs[at]);
        run.map_or((None, record), |run| (run.file.as_deref(), record - run.record + run.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_several_files_have_rows_of_their_own() {
        let mut map = RowMap::default();
        let [a, b] = ["a.csv", "b.csv"].map(Path::new);
        for file in [(0, a), (0, a), (1, b), (2, b)] {
            map.note(true, Some(file));
        }
        let rows = [1, 2, 3, 4].map(|record| map.row(record));
        assert_eq!(rows, [(Some(a), 1), (Some(a), 2), (Some(b), 1), (Some(b), 1)]);
        assert_eq!(RowMap::default().row(7), (None, 7));
    }

    #[test]
    fn rows_that_are_left_out_count() {
        let mut map = RowMap::default();
        [false, true, true, false, false, true].into_iter().for_each(|is_record| map.note(is_record, None));
        assert_eq!([1, 2, 3].map(|record| map.row(record)), [(None, 2), (None, 3), (None, 6)]);
    }
}
