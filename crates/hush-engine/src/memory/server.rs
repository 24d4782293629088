//! The bytes of a server's memory that a table takes.

use hush_cpu::Cpu;
use hush_ops::path::Footprint;
use hush_protocol::any_page::TableParams;

/// Returns the bytes of a table that a server has in memory: its files, but for those that clients download, and the evaluation
/// keys of so many clients, ready for look-ups.
pub fn server_bytes(table: &TableParams, clients: usize) -> u64 {
    let keys = table.facts().keys.map_or(0, |ring| clients * <Cpu as Footprint>::keys(&ring));
    table.held_bytes() + keys as u64
}
