//! The division of database rows into RLWE plaintexts.

use std::ops::Range;

use crate::OpsError;

/// The division of rows into plaintexts. An *entry* is the run of rows that the folds choose among. It is cut into *planes* of
/// at most N rows, and each plane is a *plaintext*, packed into one ciphertext. Plaintext `entry * planes + plane` is that plane,
/// so neighbouring plaintexts have neighbouring rows.
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
    /// Creates the shape of `rows` rows in entries of `entry_rows` rows (the last may be shorter), packed in degree `degree`. Fails
    /// with [`OpsError::Shape`] if one of the numbers is 0.
    pub fn new(degree: usize, rows: usize, entry_rows: usize) -> Result<Self, OpsError> {
        for (what, number) in [("degree", degree), ("rows", rows), ("rows of an entry", entry_rows)] {
            OpsError::check_shape("pack", what, number.max(1), number)?;
        }
        Ok(Self { degree, rows, entry_rows })
    }

    /// Returns the shape of `rows` rows alone, of which the first begins an entry.
    ///
    /// # Panics
    /// If `rows` is 0.
    pub fn part(&self, rows: usize) -> Self {
        assert!(rows > 0, "a part has rows");
        Self { rows, ..*self }
    }

    /// Returns the coefficients of a plaintext (N).
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the rows of the database.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the rows of an entry; the last entry may have fewer.
    pub fn entry_rows(&self) -> usize {
        self.entry_rows
    }

    /// Returns the plaintexts of an entry.
    pub fn planes(&self) -> usize {
        self.entry_rows.div_ceil(self.degree)
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.rows.div_ceil(self.entry_rows)
    }

    /// Returns the plaintexts of all entries.
    pub fn plaintexts(&self) -> usize {
        self.entries() * self.planes()
    }

    /// Returns the rows of a plaintext: row `start + j` is coefficient j. At most N rows; empty where the last entry has no rows
    /// left.
    pub fn plaintext_rows(&self, plaintext: usize) -> Range<usize> {
        let entry = plaintext / self.planes();
        let plane = plaintext % self.planes();
        let end = self.rows.min((entry + 1) * self.entry_rows);
        let start = (entry * self.entry_rows + plane * self.degree).min(end);
        start..end.min(start + self.degree)
    }

    /// Returns the rows of a range of entries.
    pub fn entries_rows(&self, entries: &Range<usize>) -> Range<usize> {
        entries.start * self.entry_rows..(entries.end * self.entry_rows).min(self.rows)
    }

    /// Returns the rows of a range of plaintexts.
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
