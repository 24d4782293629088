//! The tables of a parameter set for the steps with evaluation keys, beside those of its rings.

use hush_he::params::RingContext;
use hush_math::{gadget::Gadget, ring::Ring};
use hush_ops::OpsError;

use super::{gadget::GadgetTables, montgomery_form};
use crate::device::{Buffer, Device};

/// The gadgets of a parameter set, and the tables of the expansion on the device.
pub(in crate::ring) struct ExpandTables {
    /// The gadgets of the levels of the expansion tree, the first level first, modulo Q_e.
    pub(in crate::ring) levels: Vec<GadgetTables>,
    /// The gadget of the key for s^2, modulo Q_e; `None` if queries are not expanded.
    pub(in crate::ring) square: Option<GadgetTables>,
    /// The gadget of external products, modulo Q_1.
    pub(in crate::ring) fold: GadgetTables,
    /// The gadget of the packing of pairs, modulo Q_1; `None` if pairs are not packed.
    pub(in crate::ring) pack: Option<GadgetTables>,
    /// The powers of psi, `[limb][N]` modulo Q_e: psi^-t is at position reverse(t), in Montgomery form.
    pub(in crate::ring) powers: Buffer<u32>,
    /// The inverse of P modulo each prime of Q_1, in Montgomery form; `None` if no prime is dropped.
    pub(in crate::ring) inverses: Option<Buffer<u32>>,
}

impl ExpandTables {
    /// Makes and uploads the tables.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if the kernels do not support a gadget or the dropped prime of the set, or the device has no memory.
    pub(in crate::ring) fn new(device: &Device, context: &RingContext) -> Result<Self, OpsError> {
        let params = context.params();
        let full = context.full();
        let kept = context.kept();
        let switch = |gadget: Gadget| GadgetTables::new(full, gadget, gadget.digits);
        let double = |gadget: Gadget| GadgetTables::new(kept, gadget, 2 * gadget.digits);
        let some = |gadget: Gadget| (gadget != Gadget::NONE).then_some(gadget);
        let powers = full.plans().iter().flat_map(|plan| {
            let powers = plan.inverse_twiddles().factors.iter();
            powers.map(|&power| montgomery_form(plan.modulus(), power))
        });
        Ok(Self {
            levels: params.levels().iter().map(|&gadget| switch(gadget)).collect::<Result<_, _>>()?,
            square: some(params.square_gadget()).map(switch).transpose()?,
            fold: double(params.fold_gadget())?,
            pack: some(params.pack_gadget()).map(double).transpose()?,
            powers: device.upload(&powers.collect::<Vec<_>>())?,
            inverses: (full.limbs() > kept.limbs()).then(|| inverses(device, full, kept)).transpose()?,
        })
    }
}

/// Computes the inverse of P modulo each prime of `kept`, and uploads the inverses.
fn inverses(device: &Device, full: &Ring, kept: &Ring) -> Result<Buffer<u32>, OpsError> {
    let dropped = full.moduli()[kept.limbs()].value();
    if full.limbs() != kept.limbs() + 1 || kept.moduli().iter().any(|p| p.value() <= dropped) {
        return Err(OpsError::Backend {
            reason: "there are kernels for one dropped prime, the smallest".into(),
        });
    }
    let inverses = kept.moduli().iter().map(|&p| montgomery_form(p, p.inverse(dropped)));
    Ok(device.upload(&inverses.collect::<Vec<_>>())?)
}
