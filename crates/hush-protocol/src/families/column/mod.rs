//! Protocols whose answers are packed by keys that travel with the query: the page helper (the crate names it `column_page`) and
//! the table (`column_table`).

pub mod page;
pub mod table;
