//! Arithmetic modulo a prime, with the vectors of a level.
//!
//! * [`montgomery`]: Montgomery's form. [`residues`]: vectors of residues.
//! * [`vector_loop`]: loops over words, compiled for every level. [`words`]: loops over polynomials in evaluation form.

pub(super) mod montgomery;
pub(super) mod residues;
pub(crate) mod vector_loop;
pub(super) mod words;
