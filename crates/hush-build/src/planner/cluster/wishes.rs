//! Wishes for a table in parts, and why none meets them.

use thiserror::Error;

use super::node::Node;
use crate::builder::BuildError;

/// The wishes for a table in parts, beside [`Wishes`](crate::planner::Wishes).
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterWishes {
    /// A machine like all of them, or the machine of each part.
    pub nodes: Vec<Node>,
    /// The shares of the parts; as their cores if not given.
    pub weights: Option<Vec<u32>>,
    /// The number of parts; if neither this nor the above say it, as few as will do.
    pub parts: Option<usize>,
    /// Machines that have the same part, at least.
    pub replicas: usize,
    /// Look-ups a second.
    pub rate: Option<f64>,
}

/// Why no table has a layout.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum LayoutError {
    /// There is no table, or none meets the wishes.
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(
        "the numbers of machines, parts and weights differ: give one machine for all parts, or each once for each part"
    )]
    Counts,
    #[error(
        "the machines have no room: {options} in {parts} parts lacks {lacking} on one of them; give more parts, or more memory"
    )]
    NoRoom { options: String, parts: usize, lacking: String },
    #[error("no table of these records can be cut into {parts} parts")]
    Units { parts: usize },
}

impl ClusterWishes {
    /// Returns the number of parts, if it is given.
    pub(super) fn count(&self) -> Result<Option<usize>, LayoutError> {
        let nodes = (self.nodes.len() != 1).then_some(self.nodes.len());
        let given = [nodes, self.weights.as_ref().map(Vec::len), self.parts];
        let mut given = given.into_iter().flatten();
        let count = given.next();
        if given.any(|other| Some(other) != count) || count == Some(0) {
            Err(LayoutError::Counts)
        } else {
            Ok(count)
        }
    }

    /// Returns the machines of so many parts.
    pub(super) fn of_parts(&self, count: usize) -> Vec<Node> {
        if let [node] = self.nodes[..] { vec![node; count] } else { self.nodes.clone() }
    }
}
