//! The memory of a batch's words.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Memory that a backend lends to a batch, and takes back when it is dropped.
pub trait LentWords: AsRef<[u32]> + AsMut<[u32]> + Send + Sync {}

impl<T: AsRef<[u32]> + AsMut<[u32]> + Send + Sync> LentWords for T {}

/// The words of a batch: a vector, or memory that a backend lends and takes back on drop. Lending saves time, since
/// allocating tens of MiB costs about as much as writing them.
pub struct BatchWords(Box<dyn LentWords>);

impl BatchWords {
    /// Wraps words in memory of a backend.
    pub fn lent(words: impl LentWords + 'static) -> Self {
        Self(Box::new(words))
    }
}

impl From<Vec<u32>> for BatchWords {
    fn from(words: Vec<u32>) -> Self {
        Self::lent(words)
    }
}

impl FromIterator<u32> for BatchWords {
    fn from_iter<I: IntoIterator<Item = u32>>(words: I) -> Self {
        words.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for BatchWords {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        (*self.0).as_ref()
    }
}

impl DerefMut for BatchWords {
    fn deref_mut(&mut self) -> &mut [u32] {
        (*self.0).as_mut()
    }
}

impl Clone for BatchWords {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl fmt::Debug for BatchWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for BatchWords {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BatchWords {}
