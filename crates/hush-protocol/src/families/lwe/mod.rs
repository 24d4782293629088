//! Protocols over LWE. The crate exports the page helper as `lwe_page` and the table as `lwe_table`.

pub mod page;
pub mod table;
