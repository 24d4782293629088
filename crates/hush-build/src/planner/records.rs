//! The records that a table is planned for.

use std::iter;

use hush_protocol::descriptor::{Descriptor, Lookup};

use crate::builder::{BuildError, Lengths};

/// The facts of the records of a table that is planned.
pub struct Records {
    lengths: Lengths,
    by_key: bool,
}

impl Records {
    /// Values of these lengths, as often; at least one.
    ///
    /// # Errors
    /// [`BuildError::NoRecords`].
    pub fn new(lengths: impl IntoIterator<Item = (usize, usize)>, by_key: bool) -> Result<Self, BuildError> {
        let lengths = Lengths::counted(lengths);
        if lengths.records() == 0 {
            return Err(BuildError::NoRecords);
        }
        Ok(Self { lengths, by_key })
    }

    /// Returns the records as far as the public description of a table tells: every value is as long as the tier that
    /// it ends in, and as it is stored.
    ///
    /// # Errors
    /// [`BuildError::NoRecords`].
    pub fn of(table: &Descriptor) -> Result<Self, BuildError> {
        let tiers = table.segments[..table.tiers()].iter().map(|tier| tier.records);
        let in_tiers: Vec<u64> = iter::once(table.records).chain(tiers).chain([0]).collect();
        let ending = in_tiers.windows(2).map(|pair| pair[0].saturating_sub(pair[1]) as usize);
        let by_key = matches!(table.lookup, Lookup::Key(_));
        Self::new(table.tier_ends().into_iter().zip(ending), by_key)
    }

    /// Returns how many there are.
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
