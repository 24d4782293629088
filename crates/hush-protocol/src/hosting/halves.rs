//! The files, the steps and the contribution of each half of a table in parts, as plain data. A planner uses them to choose
//! the machine of each part.
//!
//! [`crate::page::Page::opening`], [`crate::page::Page::part`] and [`crate::page::Page::head`] return them for any table.

use hush_ops::path::Step;

use crate::facts::FileSpec;

/// A part: some units of a table ([`crate::page::Page::open_part`], [`crate::page::Page::scan`]).
#[derive(Clone, Debug, PartialEq)]
pub struct PartFacts {
    /// The files that the part holds. Each has the size of the part's share of it.
    pub files: Vec<FileSpec>,
    /// The steps of a scan of the part.
    pub steps: Vec<Step>,
    /// The number of 32-bit words that the part contributes to the answer of each query.
    pub words: usize,
}

/// The head, which finishes the answers ([`crate::page::Page::open_head`], [`crate::page::Page::finish`]).
#[derive(Clone, Debug, PartialEq)]
pub struct HeadFacts {
    /// The files that the head holds, if it runs apart from the parts.
    pub files: Vec<FileSpec>,
    /// The steps from the partials of all parts to the answers.
    pub steps: Vec<Step>,
}
