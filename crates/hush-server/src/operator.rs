//! What a server is told to do by who runs it.

use thiserror::Error;

/// Why it was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OperatorError {
    /// No table of this name.
    #[error("no table of this name is served here")]
    UnknownTable,
    /// It cannot be done: why, for who runs the server.
    #[error("{0}")]
    Refused(String),
}

/// Does it: the program around the server, which knows where tables come from.
pub trait Operator: Send + Sync {
    /// Takes up what has taken a table's place. Returns the epoch that is served.
    ///
    /// # Errors
    /// [`OperatorError`]. The table is then served as it was.
    fn reload(&self, table: &str) -> Result<[u8; 32], OperatorError>;

    /// Begins to fold the changes of a table into a new base, in the background.
    ///
    /// # Errors
    /// [`OperatorError`].
    fn compact(&self, table: &str) -> Result<(), OperatorError>;
}
