//! Protocols over rings. The crate exports the page helper as `ring_page`, the table as `ring_table`, the client's keys as
//! `ring_keys` and the answers as `ring_answer`. The whitening of the database is here too.

pub(crate) mod answer;
pub mod keys;
pub mod page;
pub mod table;
pub mod whitening;
