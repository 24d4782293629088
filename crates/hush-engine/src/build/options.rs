//! What a build can be told.

use hush_he::params::LweParams;
use hush_protocol::{keyword::FilterKind, layout, table::Protocol};

/// Choices of a build. `None` leaves the choice to the program.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The protocol; `None` is `auto`.
    pub protocol: Option<Protocol>,
    /// The parameter set.
    pub lwe: LweParams,
    /// The key filter.
    pub filter: FilterKind,
    /// Bytes of a fingerprint, 1 to 16: absent keys are taken for present with probability `256^-bytes`.
    pub fingerprint_bytes: u8,
    /// Columns (D0) to aim for.
    pub columns: Option<usize>,
}

impl BuildOptions {
    /// The protocol for a table of `slots` slots: as asked for; else `simple` if columns were asked for, which only it
    /// can vary; else what is cheapest.
    pub(super) fn protocol_for(&self, slots: usize, slot_bytes: usize) -> Protocol {
        match (self.protocol, self.columns) {
            (Some(protocol), _) => protocol,
            (None, Some(_)) => Protocol::Simple,
            (None, None) => layout::auto_protocol(&self.lwe, slots, slot_bytes),
        }
    }
}
