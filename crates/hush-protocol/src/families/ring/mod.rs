//! Protocols over rings: the page helper (the crate names it `ring_page`), the table (`ring_table`), the client's keys
//! (`ring_keys`), the answers (`ring_answer`) and the whitening of the database.

pub(crate) mod answer;
pub mod keys;
pub mod page;
pub mod table;
pub mod whitening;
