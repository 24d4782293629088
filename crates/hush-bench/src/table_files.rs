//! Operands of steps that are the files of a table.

use std::error::Error;

use hush_cpu::Cpu;
use hush_engine::planner::operands::{self, Operands};
use hush_he::params::RingParams;
use hush_ops::{
    contract::{BatchWords, LweOps, RingOps, TfheOps},
    ntt_tiling::{NttTiledDb, NttTiling},
    path::Content,
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{DbBytes, TiledDb, Tiling},
};
use hush_protocol::facts::FileSpec;

/// The files of a table; what is in none of them is random.
pub(crate) struct TableFiles<'a> {
    /// The files.
    pub(crate) specs: &'a [FileSpec],
    /// Their bytes, by name.
    pub(crate) bytes: &'a [(&'static str, DbBytes)],
}

impl TableFiles<'_> {
    /// The bytes of a file that holds `content`, if there is one.
    fn of(&self, content: Content) -> Option<DbBytes> {
        let spec = self.specs.iter().find(|spec| spec.content == content)?;
        self.bytes.iter().find(|(name, _)| *name == spec.name).map(|(_, bytes)| bytes.clone())
    }
}

impl Operands<Cpu> for TableFiles<'_> {
    fn db(&self, cpu: &Cpu, tiling: Tiling) -> Result<<Cpu as LweOps>::Db, Box<dyn Error>> {
        let db = match self.of(Content::Bytes(tiling)) {
            Some(bytes) => TiledDb::new(tiling, bytes)?,
            None => operands::random_db(tiling)?,
        };
        Ok(cpu.open_db(db)?)
    }

    fn ntt_db(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        tiling: NttTiling,
    ) -> Result<<Cpu as RingOps>::NttDb, Box<dyn Error>> {
        let polys = || operands::residues(cpu.context(ring), tiling.rows() * tiling.columns());
        let db = match self.of(Content::Eval(tiling)) {
            Some(bytes) => NttTiledDb::new(tiling, bytes)?,
            None => NttTiledDb::from_polys(tiling, &polys()),
        };
        Ok(cpu.open_ntt_db(ring, db)?)
    }

    fn symbols(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        set: RingParams,
        tiling: SymbolTiling,
    ) -> Result<<Cpu as TfheOps>::Symbols, Box<dyn Error>> {
        let bytes = self.of(Content::Symbols { ring: set, db: tiling }).ok_or("a table kept as symbols")?;
        Ok(cpu.open_symbols(ring, SymbolDb::new(tiling, bytes)?)?)
    }

    fn polys(
        &self,
        cpu: &Cpu,
        ring: &<Cpu as RingOps>::Ring,
        count: usize,
    ) -> Result<BatchWords, Box<dyn Error>> {
        Ok(operands::residues(cpu.context(ring), count).into())
    }
}
