//! The expanded queries of a batch on one of several devices, each of which expands some. Source: VIPIR (section 4.5), GPIR
//! (section 6).

use std::{ops::Range, sync::Arc};

use hush_ops::{
    OpsError,
    contract::{Expanded, Memory, RlweBatch, WordCopy, WordStore},
};

/// The expanded queries that a device has.
pub struct Expansions<W> {
    /// The number of the first query in the batch.
    first: usize,
    expanded: Vec<Arc<Expanded<W>>>,
}

impl<W> Expansions<W> {
    /// Creates the expansions of consecutive queries of a batch, of which `first` is the first.
    pub(crate) fn new(first: usize, expanded: Vec<Expanded<W>>) -> Self {
        Self { first, expanded: expanded.into_iter().map(Arc::new).collect() }
    }

    /// Returns the expansions that the device has, in the order of their queries.
    pub(crate) fn all(&self) -> &[Arc<Expanded<W>>] {
        &self.expanded
    }

    /// Returns those of `queries`, as a batch of their own.
    ///
    /// # Panics
    /// If the device has not all of them.
    pub(crate) fn narrow(&self, queries: &Range<usize>) -> Self {
        let own = queries.start - self.first..queries.end - self.first;
        Self { first: 0, expanded: self.expanded[own].to_vec() }
    }
}

impl<W> Clone for Expansions<W> {
    fn clone(&self) -> Self {
        Self { first: self.first, expanded: self.expanded.clone() }
    }
}

/// Gives every device the expansions of all queries. `own[d]` are those of the queries that device `d` has expanded, which together
/// are the batch, in order.
pub(crate) fn gather<M: Memory>(
    memories: &[&M],
    own: &mut [&mut Expansions<M::Words>],
) -> Result<(), OpsError> {
    let mut copies = Vec::new();
    for to in 0..memories.len() {
        for (from, own) in own.iter().enumerate().filter(|(from, _)| *from != to) {
            for expanded in &own.expanded {
                let parts = [&expanded.selectors].into_iter().chain(&expanded.bits);
                let words = parts.map(|part| &part.words);
                copies.extend(words.map(|words| WordCopy { from, words, range: 0..words.len(), to }));
            }
        }
    }
    let mut copied = M::exchange(memories, &copies)?.into_iter();
    let mut carried = |batch: &RlweBatch<M::Words>| RlweBatch {
        ciphertext_words: batch.ciphertext_words,
        words: copied.next().expect("a result for every copy"),
    };
    let mut gathered = Vec::new();
    for to in 0..memories.len() {
        let mut all = Vec::new();
        for (from, own) in own.iter().enumerate() {
            all.extend(own.expanded.iter().map(|expanded| match from == to {
                true => expanded.clone(),
                false => Arc::new(Expanded {
                    selectors: carried(&expanded.selectors),
                    bits: expanded.bits.iter().map(&mut carried).collect(),
                }),
            }));
        }
        gathered.push(all);
    }
    for (own, all) in own.iter_mut().zip(gathered) {
        **own = Expansions { first: 0, expanded: all };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hush_ops::reference::Reference;

    use super::*;

    #[test]
    fn every_device_gets_all() {
        let batch = |words: &[u32]| RlweBatch { ciphertext_words: 2, words: words.to_vec().into() };
        let expanded = |word| Expanded {
            selectors: batch(&[word, 1]),
            bits: vec![batch(&[word, 2]), batch(&[word, 3, 4, 5])],
        };
        let all: Vec<_> = (10..14).map(expanded).collect();
        let own = |queries: Range<usize>| Expansions::new(queries.start, all[queries].to_vec());
        // The last device has expanded nothing.
        let mut devices = [own(0..3), own(3..4), own(4..4)];
        gather(&[&Reference; 3], &mut devices.each_mut()).unwrap();
        for device in &devices {
            assert!(device.all().iter().map(|expanded| &**expanded).eq(&all));
            assert!(device.narrow(&(1..3)).all().iter().map(|expanded| &**expanded).eq(&all[1..3]));
        }
        assert!(own(2..4).narrow(&(3..4)).all().iter().map(|expanded| &**expanded).eq(&all[3..]));
    }
}
