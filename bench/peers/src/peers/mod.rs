//! The peers, and the groups of schemes that are measured on the same records.

mod chalamet;
mod inspire_packing;
mod ipir;
mod ipir_native;
mod ypir;

use clap::ValueEnum;
use hush_peers_common::{Error, Records, Row};
use hush_protocol::{Protocol, keyword::FilterKind};

use crate::{Args, ours, shape::RowTable};

/// The bytes of a record of tables by key, unless the caller chooses.
const KEYED_RECORD_BYTES: usize = 256;

/// A peer.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// The crate `ipir-sp`.
    IpirSp,
    /// The crate `valar-ypir`.
    ValarYpir,
    /// The crates `chalametpir_client` and `chalametpir_server`.
    Chalametpir,
    /// The crate `inspire`: one shard, because its queries name the shard. Takes minutes, so it must be named.
    Inspire,
}

/// Peers that are measured on the same records.
pub(crate) enum Group {
    /// Look-ups by index in tables of rows.
    Rows(Vec<Peer>),
    /// Look-ups by key.
    Keyed,
    /// A shard of `inspire`.
    Shard,
}

/// The rows of a group, or the errors in their places.
type Measured = Vec<Result<Row, Error>>;

/// Returns the groups of the chosen peers, or of all peers but `inspire` if none is chosen.
pub(crate) fn groups(chosen: &[Peer]) -> Vec<Group> {
    let is_chosen = |peer: &Peer| chosen.is_empty() || chosen.contains(peer);
    let of_rows: Vec<_> = [Peer::IpirSp, Peer::ValarYpir].into_iter().filter(is_chosen).collect();
    let mut groups = Vec::new();
    if !of_rows.is_empty() {
        groups.push(Group::Rows(of_rows));
    }
    if is_chosen(&Peer::Chalametpir) {
        groups.push(Group::Keyed);
    }
    if chosen.contains(&Peer::Inspire) {
        groups.push(Group::Shard);
    }
    groups
}

impl Group {
    /// Measures HushDB and then the peers of the group.
    pub(crate) fn measure(&self, args: &Args) -> Measured {
        match self {
            Self::Rows(peers) => measure_rows(peers, &RowTable::new(args.size, args.record_bytes), args.runs),
            Self::Keyed => {
                let record_bytes = args.record_bytes.unwrap_or(KEYED_RECORD_BYTES);
                measure_keyed(&Records::new((args.keyed_size / record_bytes).max(1), record_bytes), args.runs)
            }
            Self::Shard => {
                let records = inspire_packing::records();
                vec![
                    ours::run(Protocol::ColpackS, None, &records, args.runs),
                    inspire_packing::run(&records, args.runs),
                ]
            }
        }
    }
}

/// Measures a table of rows.
fn measure_rows(peers: &[Peer], table: &RowTable, runs: usize) -> Measured {
    let ours = [Protocol::Colpack, Protocol::ColpackS];
    let mut measured: Vec<_> =
        ours.into_iter().map(|protocol| ours::run(protocol, None, &table.records, runs)).collect();
    if peers.contains(&Peer::IpirSp) {
        measured.extend(ipir::run(table, runs));
        measured.push(ipir_native::run(table, runs));
    }
    if peers.contains(&Peer::ValarYpir) {
        measured.push(ypir::run(table, runs));
    }
    measured
}

/// Measures a table with keys.
fn measure_keyed(records: &Records, runs: usize) -> Measured {
    let ours = [Protocol::Frodo, Protocol::Simple];
    let mut measured: Vec<_> = ours
        .into_iter()
        .map(|protocol| ours::run(protocol, Some(FilterKind::Fuse3), records, runs))
        .collect();
    measured.push(chalamet::run(records, runs));
    measured
}
