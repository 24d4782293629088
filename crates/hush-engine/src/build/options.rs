//! What a build can be told.

use hush_he::params::{LweParams, RingParams};
use hush_protocol::{
    ProtocolError,
    keyword::FilterKind,
    layout,
    table::{Protocol, Scheme, TableParams, TableShape},
};

use super::BuildError;

/// Choices of a build. `None` leaves the choice to the program.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The protocol; `None` is `auto`.
    pub protocol: Option<Protocol>,
    /// The parameter set of protocols over LWE.
    pub lwe: LweParams,
    /// The parameter set of protocols over rings; `None` is the one that suits the records.
    pub ring: Option<RingParams>,
    /// The key filter.
    pub filter: FilterKind,
    /// Bytes of a fingerprint, 1 to 16: absent keys are taken for present with probability `256^-bytes`.
    pub fingerprint_bytes: u8,
    /// Columns (D0) to aim for.
    pub columns: Option<usize>,
}

impl BuildOptions {
    /// The scheme of a table of `slots` slots: as asked for; else `simple` if columns were asked for, which only it
    /// can vary; else what is cheapest.
    pub(super) fn scheme_for(&self, slots: usize, slot_bytes: usize) -> Scheme {
        match (self.protocol, self.columns) {
            (Some(Protocol::Onion), _) => {
                Scheme::Ring(self.ring.unwrap_or_else(|| layout::auto_ring(slot_bytes)))
            }
            (Some(protocol), _) => Scheme::Lwe(protocol, self.lwe),
            (None, Some(_)) => Scheme::Lwe(Protocol::Simple, self.lwe),
            (None, None) => Scheme::Lwe(layout::auto_protocol(&self.lwe, slots, slot_bytes), self.lwe),
        }
    }

    /// The parameters of a table of `shape`. An error out of the columns that were asked for names them.
    pub(super) fn params(&self, scheme: Scheme, shape: TableShape) -> Result<TableParams, BuildError> {
        TableParams::new(scheme, shape).map_err(|error| match (error, self.columns) {
            (source @ ProtocolError::Limit { .. }, Some(columns)) => BuildError::Columns { columns, source },
            (error, _) => error.into(),
        })
    }
}
