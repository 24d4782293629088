//! Operands of steps that are the files of a table.

use std::error::Error;

use hush_build::planner::operands::Random;
use hush_cpu::{Cpu, CpuRing};
use hush_he::params::RingParams;
use hush_ops::{
    contract::{BatchWords, LweOps, RingOps, TfheOps},
    ntt_tiling::{NttTiledDb, NttTiling},
    path::Content,
    steps::sample::Operands,
    symbol_tiling::{SymbolDb, SymbolTiling},
    tiling::{DbBytes, TiledDb, Tiling},
};
use hush_protocol::facts::FileSpec;

/// The files of a table.
pub(crate) struct TableFiles<'a> {
    /// The files.
    pub(crate) specs: &'a [FileSpec],
    /// The bytes of the files, by name.
    pub(crate) bytes: &'a [(&'static str, DbBytes)],
    /// The operands that are in none of the files.
    pub(crate) others: Random,
}

impl TableFiles<'_> {
    /// Returns the bytes of a file that holds `content`, if there is one.
    fn of(&self, content: Content) -> Option<DbBytes> {
        let spec = self.specs.iter().find(|spec| spec.content == content)?;
        self.bytes.iter().find(|(name, _)| *name == spec.name).map(|(_, bytes)| bytes.clone())
    }
}

impl Operands<Cpu> for TableFiles<'_> {
    fn db(&self, cpu: &Cpu, tiling: Tiling) -> Result<TiledDb, Box<dyn Error>> {
        match self.of(Content::Bytes(tiling)) {
            Some(bytes) => Ok(cpu.open_db(TiledDb::new(tiling, bytes)?)?),
            None => self.others.db(cpu, tiling),
        }
    }

    fn ntt_db(&self, cpu: &Cpu, ring: &CpuRing, tiling: NttTiling) -> Result<NttTiledDb, Box<dyn Error>> {
        match self.of(Content::Eval(tiling)) {
            Some(bytes) => Ok(cpu.open_ntt_db(ring, NttTiledDb::new(tiling, bytes)?)?),
            None => self.others.ntt_db(cpu, ring, tiling),
        }
    }

    fn symbols(
        &self,
        cpu: &Cpu,
        ring: &CpuRing,
        set: RingParams,
        tiling: SymbolTiling,
    ) -> Result<SymbolDb, Box<dyn Error>> {
        match self.of(Content::Symbols { ring: set, db: tiling }) {
            Some(bytes) => Ok(cpu.open_symbols(ring, SymbolDb::new(tiling, bytes)?)?),
            None => self.others.symbols(cpu, ring, set, tiling),
        }
    }

    fn polys(&self, cpu: &Cpu, ring: &CpuRing, count: usize) -> Result<BatchWords, Box<dyn Error>> {
        self.others.polys(cpu, ring, count)
    }
}
