//! The records that a table is planned for.

use std::iter;

use hush_protocol::descriptor::{Descriptor, Lookup};

use crate::builder::{BuildError, Lengths};

/// The facts of records that the planner needs.
pub struct Records {
    lengths: Lengths,
    by_key: bool,
}

impl Records {
    /// Creates records from pairs of a value length in bytes and the number of such values.
    ///
    /// # Errors
    /// [`BuildError::NoRecords`] if there are no values.
    pub fn new(lengths: impl IntoIterator<Item = (usize, usize)>, by_key: bool) -> Result<Self, BuildError> {
        let lengths = Lengths::counted(lengths);
        if lengths.records() == 0 {
            return Err(BuildError::NoRecords);
        }
        Ok(Self { lengths, by_key })
    }

    /// Returns the records as far as a table's public description tells. Every value is taken to be as long as the end of its last
    /// tier. Lengths are those of stored, perhaps compressed, values.
    ///
    /// # Errors
    /// [`BuildError::NoRecords`] if the table has no records.
    pub fn of(table: &Descriptor) -> Result<Self, BuildError> {
        let tiers = table.segments[..table.tiers()].iter().map(|tier| tier.records);
        let in_tiers: Vec<u64> = iter::once(table.records).chain(tiers).chain([0]).collect();
        let ending = in_tiers.windows(2).map(|pair| pair[0].saturating_sub(pair[1]) as usize);
        let by_key = matches!(table.lookup, Lookup::Key(_));
        Self::new(table.tier_ends().into_iter().zip(ending), by_key)
    }

    /// Returns the number of records.
    pub fn count(&self) -> usize {
        self.lengths.records()
    }

    pub(super) fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    pub(super) fn by_key(&self) -> bool {
        self.by_key
    }

    /// Returns the bytes of all values.
    pub fn payload(&self) -> u64 {
        self.lengths.payload() as u64
    }
}
