//! The files of one segment of a snapshot. A file's name has the segment's number in front, except in the base.

use crate::snapshot::{Journal, MappedOutput, Scratch, SnapshotError, SnapshotWriter};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the name of the file `name` of segment `segment`. The base, segment 0, has no number in front of it.
pub fn segment_file(segment: usize, name: &str) -> String {
    if segment == 0 { name.into() } else { format!("{segment}.{name}") }
}

/// Returns the segment to which the file `name` belongs, and the file's name there. Files of the whole table count as the base's.
pub fn segment_of(name: &str) -> (usize, &str) {
    match name.split_once('.') {
        Some((number, own)) => number.parse().map_or((0, name), |segment| (segment, own)),
        None => (0, name),
    }
}

/// A writer of the files of one segment.
#[derive(Clone, Copy)]
pub struct SegmentWriter<'a> {
    writer: &'a SnapshotWriter,
    segment: usize,
}

impl SnapshotWriter {
    /// Returns the writer of segment `segment`; 0 is the base.
    pub fn segment(&self, segment: usize) -> SegmentWriter<'_> {
        SegmentWriter { writer: self, segment }
    }
}

impl SegmentWriter<'_> {
    /// Returns the folder of all segments' files while the snapshot is made.
    pub fn folder(&self) -> &Path {
        self.writer.partial_dir()
    }

    /// Returns the number of the segment.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Returns the path of the file `name` while the snapshot is made.
    pub fn path(&self, name: &str) -> PathBuf {
        self.writer.partial_dir().join(segment_file(self.segment, name))
    }

    /// Removes the file `name`, which another file has replaced. Fails with [`SnapshotError::Io`], also if there is no such file.
    pub fn remove(&self, name: &str) -> Result<(), SnapshotError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(SnapshotError::io(&path, "remove"))
    }

    /// Creates a mapped file of the segment, with the errors of [`SnapshotWriter::create_mapped`].
    pub fn create_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.writer.create_mapped(&segment_file(self.segment, name), bytes)
    }

    /// Opens a mapped file of the segment, with the errors of [`SnapshotWriter::open_mapped`].
    pub fn open_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.writer.open_mapped(&segment_file(self.segment, name), bytes)
    }

    /// Creates scratch memory, with the errors of [`SnapshotWriter::create_scratch`].
    pub fn create_scratch(&self, bytes: usize) -> Result<Scratch, SnapshotError> {
        self.writer.create_scratch(bytes)
    }

    /// Opens the journal of a stage that writes `units` units to `files`, given by name and length. If an earlier build did not
    /// leave all of the files, the ones that it left are removed, and its journal. Open the files with
    /// [`SegmentWriter::open_mapped`] afterwards. Every segment has its own journal.
    ///
    /// `key` identifies everything that the content of a unit depends on: entries under another key do not match.
    pub fn open_journal(
        &self,
        files: &[(&str, usize)],
        units: usize,
        key: [u8; blake3::KEY_LEN],
    ) -> Result<Journal, SnapshotError> {
        let files: Vec<(String, usize)> =
            files.iter().map(|&(name, bytes)| (segment_file(self.segment, name), bytes)).collect();
        let files: Vec<(&str, usize)> = files.iter().map(|(name, bytes)| (&name[..], *bytes)).collect();
        self.writer.open_journal(self.segment, &files, units, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_back() {
        for (segment, name, expected) in
            [(0, "db.bin", "db.bin"), (1, "db.bin", "1.db.bin"), (12, "build.journal", "12.build.journal")]
        {
            assert_eq!(segment_file(segment, name), expected);
            assert_eq!(segment_of(expected), (segment, name));
        }
        assert_eq!(segment_of("plain"), (0, "plain"));
    }
}
