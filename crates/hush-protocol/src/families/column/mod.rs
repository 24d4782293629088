//! Protocols whose answers are packed with keys that are part of the query. The crate exports the page helper as
//! `column_page` and the table as `column_table`.

pub mod page;
pub mod table;
