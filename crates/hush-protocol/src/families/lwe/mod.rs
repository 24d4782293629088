//! Protocols over LWE: the page helper (the crate names it `lwe_page`) and the table (`lwe_table`).

pub mod page;
pub mod table;
