//! Which rows of which files the records are: messages about records name rows.

use std::path::{Path, PathBuf};

/// Rows that are records one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The number of the first of the records, from 1.
    record: u64,
    /// The number of the file, and the file, of several.
    file: Option<(usize, PathBuf)>,
}

/// The rows of all records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowMap(Vec<Run>);

impl RowMap {
    /// Notes that a record, the next, is the next row of `file`.
    pub(super) fn note(&mut self, record: u64, file: Option<(usize, &Path)>) {
        let is_same = |run: &Run| run.file.as_ref().map(|own| own.0) == file.map(|file| file.0);
        if !self.0.last().is_some_and(is_same) {
            self.0.push(Run { record, file: file.map(|(number, path)| (number, path.to_owned())) });
        }
    }

    /// Returns the row that a record is, from 1, and of several files the one that it is in.
    pub fn row(&self, record: u64) -> (Option<&Path>, u64) {
        let run = self.0.partition_point(|run| run.record <= record).checked_sub(1).map(|at| &self.0[at]);
        run.map_or((None, record), |run| (run.file.as_ref().map(|file| &*file.1), record - run.record + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_several_files_have_rows_of_their_own() {
        let mut map = RowMap::default();
        let [a, b] = ["a.csv", "b.csv"].map(Path::new);
        for (record, file) in [(1, (0, a)), (2, (0, a)), (3, (1, b)), (4, (2, b))] {
            map.note(record, Some(file));
        }
        assert_eq!(
            [1, 2, 3, 4].map(|record| map.row(record)),
            [(Some(a), 1), (Some(a), 2), (Some(b), 1), (Some(b), 1)]
        );
        assert_eq!(RowMap::default().row(7), (None, 7));
    }
}
