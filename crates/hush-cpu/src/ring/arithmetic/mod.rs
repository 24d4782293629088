//! Arithmetic modulo a prime, with the vectors of a level.
//!
//! * [`montgomery`]: Montgomery's form. [`residues`]: vectors of residues.
//! * [`words`]: loops over polynomials in evaluation form.

pub(super) mod montgomery;
pub(super) mod residues;
pub(crate) use crate::lanes::vector_loop;
pub(super) mod words;
