//! The targets of look-ups, and the bytes that a look-up finds.
//!
//! * [`target`]: the target of a look-up, before encryption. [`normal_form`]: the normal form of keys.
//! * [`slot`]: the bytes of a slot. [`changes`]: the bytes of a slot of changes. [`fields`]: the fields of a value.
//! * [`symbols`]: bytes as plaintext symbols of k bits.

pub mod changes;
pub mod fields;
pub mod normal_form;
pub mod slot;
pub mod symbols;
pub(crate) mod target;
