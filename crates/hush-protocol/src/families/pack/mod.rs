//! Protocols whose answers are packed by a client's evaluation keys: the page helper (the crate names it `pack_page`) and the table
//! (`pack_table`).

pub mod page;
pub mod table;
