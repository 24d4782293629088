//! The options of a look-up in a sorted table.

use hush_protocol::sorted::found::RowMatch;

/// The rows that a look-up in a sorted table finds, in place of the value of the key. They are printed as JSON.
#[derive(clap::Args)]
#[group(multiple = false, conflicts_with = "index")]
pub(super) struct MatchArgs {
    /// In a sorted table: find the last row at or before each KEY.
    #[arg(long)]
    at_or_below: bool,
    /// In a sorted table: find the first row at or behind each KEY.
    #[arg(long)]
    at_or_above: bool,
    /// In a sorted table: find the rows whose keys begin with each KEY.
    #[arg(long)]
    prefix: bool,
    /// In a sorted table of ranges: find the smallest range that has each KEY.
    #[arg(long)]
    in_range: bool,
}

impl MatchArgs {
    /// Returns the match; without an option, it is the value of the key.
    pub(super) fn row_match(&self) -> RowMatch {
        match self {
            Self { at_or_below: true, .. } => RowMatch::AtOrBelow,
            Self { at_or_above: true, .. } => RowMatch::AtOrAbove,
            Self { prefix: true, .. } => RowMatch::Prefix,
            Self { in_range: true, .. } => RowMatch::InRange,
            _ => RowMatch::Exact,
        }
    }
}
