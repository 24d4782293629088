//! The halves of a table in parts as plain data: what each holds, does and sends, for those who plan which machine
//! has which part.
//!
//! [`crate::page::Page::opening`], [`crate::page::Page::part`] and [`crate::page::Page::head`] say it of every table.

use hush_ops::path::Step;

use crate::facts::FileSpec;

/// A part: some units of a table ([`crate::page::Page::open_part`], [`crate::page::Page::scan`]).
#[derive(Clone, Debug, PartialEq)]
pub struct PartFacts {
    /// The files that the half holds: its share of the files that a server holds, each as if it were the whole file.
    pub files: Vec<FileSpec>,
    /// The steps of a pass over it.
    pub steps: Vec<Step>,
    /// Words of 32 bits that it contributes to the answer of each query.
    pub words: usize,
}

/// The head, which finishes the answers ([`crate::page::Page::open_head`], [`crate::page::Page::finish`]).
#[derive(Clone, Debug, PartialEq)]
pub struct HeadFacts {
    /// The files that the head holds.
    pub files: Vec<FileSpec>,
    /// The steps from the partials of all parts to the answers.
    pub steps: Vec<Step>,
}
