//! Rings on the device: tables, transforms, and the steps over polynomials.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_ops::OpsError;

use crate::device::Device;

mod databases;
mod expand;
mod external_product;
mod keys;
mod mod_switch;
mod ntt;
mod ntt_db;
mod ops;
mod pack_pairs;
mod rgsw_fold;
mod rlwe_fold;
mod stages;
mod tables;
mod tfhe;
mod turn;

use self::tables::expand_tables::ExpandTables;

pub use self::{
    databases::{
        ntt_tiles::{CudaNttDb, STAGING_BYTES, TILE_ROWS},
        symbols::CudaSymbols,
    },
    external_product::{Ciphertexts, ExternalProducts, external_products},
    keys::CudaKeys,
    ntt::{forward, inverse},
    ntt_db::{Lift, lift_plaintexts},
    rlwe_fold::{MAX_PASS, RlweFoldKernel, fold_rows},
    stages::Stages,
    tables::{
        MAX_LIMBS, MixedRadix, Prime, RingTables, RingView, addresses::addresses, degree::Degree,
        gadget::GadgetTables,
    },
};

pub(crate) use self::{
    databases::{ntt_tiles::MAX_POLY_COLUMNS, symbols::columns_at_once},
    mod_switch::switch,
    rlwe_fold::QueryPointers,
    tables::montgomery_form,
};

/// A parameter set with its tables on the device: the ring of the CUDA backend.
pub struct CudaRing {
    context: Arc<RingContext>,
    full: RingTables,
    kept: RingTables,
    expansion: ExpandTables,
}

impl CudaRing {
    /// Makes and uploads the tables.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if the kernels do not support the degree, a prime or a gadget of the set, or the device has no memory
    /// for the tables.
    pub fn new(device: &Device, context: Arc<RingContext>) -> Result<Self, OpsError> {
        let full = RingTables::new(device, context.full())?;
        let kept = full.first_limbs(context.kept());
        let expansion = ExpandTables::new(device, &context)?;
        Ok(Self { context, full, kept, expansion })
    }

    /// Returns the parameter set.
    pub fn context(&self) -> &Arc<RingContext> {
        &self.context
    }

    /// Returns R modulo Q_e.
    pub fn full(&self) -> &RingTables {
        &self.full
    }

    /// Returns R modulo Q_1.
    pub fn kept(&self) -> &RingTables {
        &self.kept
    }

    /// Returns the gadget of external products and of column packing, modulo Q_1.
    pub(crate) fn fold_gadget(&self) -> &GadgetTables {
        &self.expansion.fold
    }

    fn expansion(&self) -> &ExpandTables {
        &self.expansion
    }
}
