//! Others that compute what takes a build longest: processes that see the folder of the unfinished table.
//!
//! Pack columns are computed a plaintext at a time, each from its own rows of the database. A [`Crew`] has [`chained`] do it
//! elsewhere, and brings what comes of it; the build writes it, and notes it in its journal like its own work. So a build that is
//! killed goes on behind what its crew has done, and the table is the same whoever computed it.

use std::{ops::Range, path::Path};

use hush_cpu::Cpu;
use hush_protocol::facts::{DB_FILE, HintProduct};
use hush_store::snapshot::{State, segment_file};
use prost::bytes::Bytes;

use super::{BuildError, chained::Chainer, hint::Source};
use crate::Silent;

/// Plaintexts, and the content of the files of each.
pub type Done = (Range<usize>, Vec<Bytes>);

/// Whoever has plaintexts computed elsewhere.
pub trait Crew: Send + Sync {
    /// Has [`chained`] compute all of some ranges of plaintexts of segment `segment` of the table in `dir`, in whichever pieces and
    /// order, and gives what comes of them to `take`.
    ///
    /// # Errors
    /// Those of `take`; [`BuildError::Crew`] if plaintexts are not computed.
    fn chain(
        &self,
        dir: &Path,
        segment: usize,
        plaintexts: &[Range<usize>],
        take: &mut dyn FnMut(Done) -> Result<(), BuildError>,
    ) -> Result<(), BuildError>;
}

/// For a [`Crew`]: the content of the files of some plaintexts of segment `segment`, whose database is laid out in `dir`. No more
/// is read than the database's rows of these plaintexts.
///
/// # Errors
/// [`BuildError::Crew`] if there is no such table, or it has no such plaintexts; [`BuildError::PackColumns`]; [`BuildError::Ops`].
pub fn chained(
    dir: &Path,
    segment: usize,
    plaintexts: Range<usize>,
    cpu: &Cpu,
) -> Result<Vec<Vec<u8>>, BuildError> {
    let none =
        || BuildError::Crew(format!("{} has no table of which these are to be computed", dir.display()));
    let state = State::read(dir).ok_or_else(none)?;
    let params = state.descriptor.params()?;
    let plan = params.segments().get(segment).and_then(|segment| segment.hint()).ok_or_else(none)?;
    let HintProduct::Chained { params, shape } = &plan.product else { return Err(none()) };
    if plaintexts.start > plaintexts.end || plaintexts.end > shape.plaintexts() {
        return Err(none());
    }
    let source = Source::open(cpu, &plan, &dir.join(segment_file(segment, DB_FILE)))?;
    Chainer::open(source, params, shape)?.contents(plaintexts, cpu, &Silent)
}
