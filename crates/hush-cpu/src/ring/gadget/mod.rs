//! Gadget digits of polynomials, and their products with rows of keys.
//!
//! * [`digits`]: from residues to digits. [`gadget_rows`]: the rows that meet digits. [`gadget_product`]: the products.
//! * [`external_product`]: external products of RGSW and RLWE. [`scratch`]: the scratch memory of all of these.

pub(super) mod digits;
pub(super) mod external_product;
pub(super) mod gadget_product;
pub(super) mod gadget_rows;
pub(super) mod scratch;
