//! Which database rows are packed into which RLWE plaintext.

use std::ops::Range;

use crate::OpsError;

/// Rows that belong together (an *entry*: what the folds choose among) are cut into *planes* of at most N rows, and each plane is
/// a *plaintext*, packed into one ciphertext. Plaintext `entry * planes + plane` is that plane: the rows of neighbouring plaintexts
/// are neighbours.
///
/// ```text
///  rows of the database      0 .. entry_rows          entry_rows .. 2 entry_rows      ..
///  plaintexts              │ 0 │ 1 │ planes - 1 │   │ planes │ ..              │
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackShape {
    degree: usize,
    rows: usize,
    entry_rows: usize,
}

impl PackShape {
    /// `rows` rows in entries of `entry_rows` rows (the last entry may have fewer), packed in degree `degree`.
    pub fn new(degree: usize, rows: usize, entry_rows: usize) -> Result<Self, OpsError> {
        for (what, number) in [("degree", degree), ("rows", rows), ("rows of an entry", entry_rows)] {
            OpsError::check_shape("pack", what, number.max(1), number)?;
        }
        Ok(Self { degree, rows, entry_rows })
    }

    /// Returns the shape of `rows` rows, which begin an entry, by themselves.
    ///
    /// # Panics
    /// If there are none.
    pub fn part(&self, rows: usize) -> Self {
        assert!(rows > 0, "a part has rows");
        Self { rows, ..*self }
    }

    /// Coefficients of a plaintext (N).
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Rows of the database.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Rows of an entry; the last one may have fewer.
    pub fn entry_rows(&self) -> usize {
        self.entry_rows
    }

    /// Plaintexts of an entry.
    pub fn planes(&self) -> usize {
        self.entry_rows.div_ceil(self.degree)
    }

    /// Entries.
    pub fn entries(&self) -> usize {
        self.rows.div_ceil(self.entry_rows)
    }

    /// Plaintexts of all entries.
    pub fn plaintexts(&self) -> usize {
        self.entries() * self.planes()
    }

    /// Returns the rows of a plaintext: row `start + j` is coefficient j. At most N; none if the last entry is short of them.
    pub fn plaintext_rows(&self, plaintext: usize) -> Range<usize> {
        let entry = plaintext / self.planes();
        let plane = plaintext % self.planes();
        let end = self.rows.min((entry + 1) * self.entry_rows);
        let start = (entry * self.entry_rows + plane * self.degree).min(end);
        start..end.min(start + self.degree)
    }

    /// Returns the rows of neighbouring entries.
    pub fn entries_rows(&self, entries: &Range<usize>) -> Range<usize> {
        entries.start * self.entry_rows..(entries.end * self.entry_rows).min(self.rows)
    }

    /// Returns the rows of neighbouring plaintexts.
    pub fn rows_of(&self, plaintexts: Range<usize>) -> Range<usize> {
        match plaintexts.is_empty() {
            true => 0..0,
            false => self.plaintext_rows(plaintexts.start).start..self.plaintext_rows(plaintexts.end - 1).end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_column() {
        for (degree, rows, entry_rows) in
            [(64, 1, 1), (64, 640, 64), (64, 1000, 60), (64, 1000, 65), (64, 999, 200), (16, 50, 48)]
        {
            let shape = PackShape::new(degree, rows, entry_rows).expect("positive");
            let all: Vec<usize> =
                (0..shape.plaintexts()).flat_map(|column| shape.plaintext_rows(column)).collect();
            assert!(all.into_iter().eq(0..rows), "{shape:?}");
            assert_eq!(shape.rows_of(0..shape.plaintexts()), 0..rows);
        }
        assert!(PackShape::new(64, 0, 1).is_err());
    }
}
