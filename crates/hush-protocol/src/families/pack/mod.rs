//! Protocols whose answers are packed with a client's uploaded evaluation keys. The crate exports the page helper as
//! `pack_page` and the table as `pack_table`; `host.rs` has the steps that its pages share.

pub mod host;
pub mod page;
pub mod table;
