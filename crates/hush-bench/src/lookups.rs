//! Batches of look-ups whose answers are known.

use std::error::Error;

use hush_client::{PendingLookup, Table as ClientTable};
use hush_protocol::wire;

use super::{
    subject::{Subject, value},
    timing::timed,
};

/// A batch of queries, with the state that decodes each answer and the index of the record that it asks for.
pub(crate) struct Lookups<'a> {
    client: &'a ClientTable,
    /// The bytes of a value.
    length: usize,
    pub(crate) queries: Vec<wire::Query>,
    pending: Vec<(usize, PendingLookup)>,
}

impl<'a> Lookups<'a> {
    /// Creates look-ups of `batch` records, spread over the table of `subject`. Fails if the client cannot make a query.
    pub(crate) fn new(
        client: &'a ClientTable,
        subject: &Subject,
        batch: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let mut queries = Vec::new();
        let mut pending = Vec::new();
        for index in (0..batch).map(|index| index * 7919 % subject.records) {
            let (query, state) = client.query(&subject.wanted(index))?;
            queries.push(query);
            pending.push((index, state));
        }
        Ok(Self { client, length: subject.value_bytes, queries, pending })
    }

    /// Returns the seconds that `answer` takes for the batch.
    ///
    /// # Errors
    /// The error of `answer`, or an error if any answer is wrong: a wrong fast answer is a failure.
    pub(crate) fn timed<E: Into<Box<dyn Error>>>(
        &self,
        mut answer: impl FnMut(&[wire::Query]) -> Result<Vec<Vec<u8>>, E>,
    ) -> Result<f64, Box<dyn Error>> {
        let (seconds, answers) = timed(|| answer(&self.queries)).map_err(Into::into)?;
        let mut right = answers.len() == self.pending.len();
        for ((index, pending), answer) in self.pending.iter().zip(answers) {
            right &= self.client.decode(pending, &answer)? == Some(value(*index, self.length));
        }
        if right { Ok(seconds) } else { Err("an answer is wrong: nothing of this counts".into()) }
    }

    /// Returns the seconds in which the client decodes `answer`, the answer to the first query.
    pub(crate) fn decode_seconds(&self, answer: &[u8]) -> Result<f64, Box<dyn Error>> {
        let (seconds, _) = timed(|| self.client.decode(&self.pending[0].1, answer))?;
        Ok(seconds)
    }
}
