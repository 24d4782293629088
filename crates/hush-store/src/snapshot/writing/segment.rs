//! The files of one segment of a snapshot: as those of any other, with the segment's number before the name.

use crate::snapshot::{Journal, MappedOutput, Scratch, SnapshotError, SnapshotWriter};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the name of the file that segment `segment` calls `name`: the base, 0, has it as it is.
pub fn segment_file(segment: usize, name: &str) -> String {
    if segment == 0 { name.into() } else { format!("{segment}.{name}") }
}

/// Returns the segment that the file `name` is of, and what it calls it. Files of a whole table are as those of the base.
pub fn segment_of(name: &str) -> (usize, &str) {
    match name.split_once('.') {
        Some((number, own)) => number.parse().map_or((0, name), |segment| (segment, own)),
        None => (0, name),
    }
}

/// Writes the files of one segment.
#[derive(Clone, Copy)]
pub struct SegmentWriter<'a> {
    writer: &'a SnapshotWriter,
    segment: usize,
}

impl SnapshotWriter {
    /// Returns the files of segment `segment`; 0 is the base.
    pub fn segment(&self, segment: usize) -> SegmentWriter<'_> {
        SegmentWriter { writer: self, segment }
    }
}

impl SegmentWriter<'_> {
    /// Returns the folder of all segments while the snapshot is made.
    pub fn folder(&self) -> &Path {
        self.writer.partial_dir()
    }

    /// Returns which segment.
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Returns where the file `name` is while the snapshot is made.
    pub fn path(&self, name: &str) -> PathBuf {
        self.writer.partial_dir().join(segment_file(self.segment, name))
    }

    /// Removes the file `name`, of which another one was made.
    pub fn remove(&self, name: &str) -> Result<(), SnapshotError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(SnapshotError::io(&path, "remove"))
    }

    /// Creates a mapped file of the segment, as [`SnapshotWriter::create_mapped`] does.
    pub fn create_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.writer.create_mapped(&segment_file(self.segment, name), bytes)
    }

    /// Opens a mapped file of the segment, as [`SnapshotWriter::open_mapped`] does.
    pub fn open_mapped(&self, name: &str, bytes: usize) -> Result<MappedOutput, SnapshotError> {
        self.writer.open_mapped(&segment_file(self.segment, name), bytes)
    }

    /// Creates scratch memory, as [`SnapshotWriter::create_scratch`] does.
    pub fn create_scratch(&self, bytes: usize) -> Result<Scratch, SnapshotError> {
        self.writer.create_scratch(bytes)
    }

    /// Opens the journal of a stage that writes `units` units to `files`, names and lengths. Unless an earlier build left all of
    /// them, whatever it left of them is removed. Then [`SegmentWriter::open_mapped`] opens them. Every segment has its own.
    ///
    /// `key` stands for all that the content of a unit depends on: entries under another one do not match.
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
