//! The answers of one request, which stay encrypted until a caller decodes them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use prost::bytes::Bytes;
use rayon::prelude::*;

use super::{KeptKeys, SessionError};
use crate::{Decoded, Found, PendingLookup, Table};

/// The answers of one request, with the state that decrypts them, the table of the epoch that answered, and the keys.
pub(super) struct Answered {
    pub(super) table: Arc<Table>,
    pub(super) keys: Option<KeptKeys>,
    pub(super) answers: Vec<(PendingLookup, Bytes)>,
}

impl Answered {
    pub(super) fn decode(&self) -> Vec<Decoded> {
        self.answers.par_iter().map(|(pending, answer)| self.table.decoded(pending, answer)).collect()
    }
}

/// The answers of one request, not decoded yet, as [`Session::look_up_each`](super::Session::look_up_each) gives them. The
/// time of decoding depends on the results. Clones share the decoded results.
#[derive(Clone)]
pub struct Answers(Arc<SharedAnswers>);

struct SharedAnswers {
    /// The encrypted answers. `None` for records that needed no request.
    sealed: Option<Answered>,
    decoded: OnceLock<Vec<Decoded>>,
}

impl Answers {
    pub(super) fn new(answered: Answered) -> Self {
        Self(Arc::new(SharedAnswers { sealed: Some(answered), decoded: OnceLock::new() }))
    }

    /// Creates answers from records that were found without a request.
    pub(super) fn of(found: Vec<Found>) -> Self {
        let decoded: Vec<_> =
            found.into_iter().map(|found| Decoded { found: Ok(found), is_sound: true }).collect();
        Self(Arc::new(SharedAnswers { sealed: None, decoded: OnceLock::from(decoded) }))
    }

    /// Returns the number of answers.
    pub fn len(&self) -> usize {
        self.sealed().map_or_else(|| self.decoded().len(), |answered| answered.answers.len())
    }

    /// Returns whether there are no answers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes the answers at the first call. Returns one result for each look-up, in order: the record, or
    /// [`SessionError::Client`] if the answer does not decode.
    pub fn found(&self) -> impl Iterator<Item = Result<&Found, SessionError>> {
        self.decoded().iter().map(|one| one.found.as_ref().map_err(|error| error.clone().into()))
    }

    pub(super) fn decoded(&self) -> &[Decoded] {
        let SharedAnswers { sealed, decoded } = &*self.0;
        decoded.get_or_init(|| sealed.as_ref().map_or_else(Vec::new, Answered::decode))
    }

    pub(super) fn sealed(&self) -> Option<&Answered> {
        self.0.sealed.as_ref()
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answers of {} look-ups", self.len())
    }
}
