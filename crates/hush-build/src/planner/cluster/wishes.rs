//! The wishes for a table in parts, and the error if no layout meets them.

use thiserror::Error;

use super::node::Node;
use crate::builder::BuildError;

/// The wishes for a table in parts, beside [`Wishes`](crate::planner::Wishes).
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterWishes {
    /// The machine of each part, or a single machine if the parts are all on equal ones.
    pub nodes: Vec<Node>,
    /// The weights of the parts' shares; `None` is weights in proportion to the cores.
    pub weights: Option<Vec<u32>>,
    /// The number of parts. If neither `nodes` nor `weights` determine it either, it is the smallest that meets the wishes.
    pub parts: Option<usize>,
    /// The least number of machines that have the same part.
    pub replicas: usize,
    /// The look-ups a second that the cluster has to answer; `None` if any rate will do.
    pub rate: Option<f64>,
}

/// A reason why no table has a layout.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum LayoutError {
    /// There is no table, or no table meets the wishes.
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
    ///
    /// # Errors
    /// [`LayoutError::Counts`] if machines, weights and parts differ in number, or the number is 0.
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

    /// Returns the machines of `count` parts.
    pub(super) fn of_parts(&self, count: usize) -> Vec<Node> {
        if let [node] = self.nodes[..] { vec![node; count] } else { self.nodes.clone() }
    }
}
