//! What a build can be told.

use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, LweParams, PACK_M31, PackParams, RingParams};
use hush_protocol::{
    ProtocolError,
    keyword::FilterKind,
    layout,
    table::{Family, Protocol, Scheme, TableParams, TableShape},
};

use super::BuildError;

/// Choices of a build. `None` leaves the choice to the program.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The protocol; `None` is `auto`: [`layout::auto_protocol`].
    pub protocol: Option<Protocol>,
    /// The parameter set of protocols over LWE.
    pub lwe: LweParams,
    /// The parameter set of protocols over rings; `None` is the one that suits the records.
    pub ring: Option<RingParams>,
    /// The parameter set of protocols that pack by evaluation keys; `None` is the default set.
    pub pack: Option<PackParams>,
    /// The parameter set of column packing; `None` is the default set, and keeps `auto` from taking it.
    pub column: Option<ColumnParams>,
    /// The key filter.
    pub filter: FilterKind,
    /// Bytes of a fingerprint, 1 to 16: absent keys are taken for present with probability `256^-bytes`.
    pub fingerprint_bytes: u8,
    /// Columns (D0) to aim for.
    pub columns: Option<usize>,
}

impl BuildOptions {
    /// The scheme of a table of `slots` slots: as asked for, or what is cheapest.
    pub(super) fn scheme_for(&self, slots: usize, slot_bytes: usize) -> Scheme {
        let auto = || layout::auto_protocol(&self.lwe, self.column.as_ref(), slots, slot_bytes, self.columns);
        let protocol = self.protocol.unwrap_or_else(auto);
        match protocol.family() {
            Family::Lwe => Scheme::Lwe(protocol, self.lwe),
            Family::Ring => Scheme::Ring(self.ring.unwrap_or_else(|| layout::auto_ring(slot_bytes))),
            Family::Pack => Scheme::Pack(protocol, self.pack.unwrap_or(PACK_M31)),
            Family::Column => Scheme::Column(protocol, self.column.unwrap_or(COLPACK_N2048_Q52)),
        }
    }

    /// The parameters of a table of `shape`. A limit that it exceeds has to do with the columns that were asked for, if any,
    /// and is named with them; what no number of columns would mend has errors of its own.
    pub(super) fn params(&self, scheme: Scheme, shape: TableShape) -> Result<TableParams, BuildError> {
        TableParams::new(scheme, shape).map_err(|error| match (error, self.columns) {
            (source @ ProtocolError::Limit { .. }, Some(columns)) => BuildError::Columns { columns, source },
            (error, _) => error.into(),
        })
    }
}
