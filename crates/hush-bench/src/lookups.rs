//! Batches of look-ups whose answers are known.

use std::error::Error;

use hush_client::{PendingLookup, Table as ClientTable, Wanted};
use hush_math::csprng::Csprng;
use hush_protocol::wire;

/// Queries, and what reads their answers, with the records asked for.
pub(super) struct Lookups {
    pub(super) queries: Vec<wire::Query>,
    pending: Vec<(usize, PendingLookup)>,
}

impl Lookups {
    /// Look-ups of `batch` records spread over the table; `wanted(i)` asks for record `i`.
    pub(super) fn new(
        client: &ClientTable,
        batch: usize,
        wanted: impl Fn(usize) -> Wanted,
    ) -> Result<Self, Box<dyn Error>> {
        let records = client.descriptor().records as usize;
        let (mut queries, mut pending) = (Vec::new(), Vec::new());
        for index in (0..batch).map(|index| index * 7919 % records) {
            let (query, state) = client.query(&wanted(index))?;
            queries.push(query);
            pending.push((index, state));
        }
        Ok(Self { queries, pending })
    }

    /// As [`Lookups::new`], in a table by index.
    pub(super) fn by_index(client: &ClientTable, batch: usize) -> Result<Self, Box<dyn Error>> {
        Self::new(client, batch, |index| Wanted::Index(index as u64))
    }

    /// A wrong fast answer is a failure. Records have [`value`]s of `length` bytes.
    pub(super) fn check(
        &self,
        client: &ClientTable,
        answers: &[Vec<u8>],
        length: usize,
    ) -> Result<(), Box<dyn Error>> {
        let mut right = answers.len() == self.pending.len();
        for ((index, pending), answer) in self.pending.iter().zip(answers) {
            right &= client.decode(pending, answer)? == Some(value(*index, length));
        }
        if right { Ok(()) } else { Err("an answer is wrong: nothing of this counts".into()) }
    }
}

/// Value `index` of a table of values of `length` bytes.
pub(super) fn value(index: usize, length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    Csprng::insecure_from_seed(index as u64).fill_bytes(&mut value);
    value
}
