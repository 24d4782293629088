//! The verbs of the scheme, one a file. The folder is flat with more than fifteen files, because a verb is found by its name.

mod column_query;
mod decompose;
mod decrypt_lwe;
mod decrypt_response;
mod encrypt_lwe;
mod encrypt_rlwe;
mod evaluation_keys;
mod external_product;
mod key_switch;
mod pack_query;
mod private_key_switch;
mod ring_mask;
mod ring_query;
mod ring_switch;
mod round_coefficients;
mod switch_modulus;
mod tlwe_query;

pub use column_query::{ROTATION, encrypt_column_query, open_column_keys};
pub use decompose::decompose;
pub use decrypt_lwe::{decrypt_byte, phase};
pub use decrypt_response::decrypt_response;
pub use encrypt_lwe::{PreparedLwe, encrypt_lwe};
pub use evaluation_keys::{SeededKeys, generate_keys, open_keys};
pub use external_product::external_product;
pub use key_switch::{key_switch, substitute};
pub use pack_query::{SparseVector, encrypt_pack_query};
pub use private_key_switch::private_key_switch;
pub use ring_query::{encrypt_ring_query, open_ring_query};
pub use ring_switch::{decrypt_switched, ring_switch};
pub use switch_modulus::{drop_primes, switch_to_power_of_two};
pub use tlwe_query::{encrypt_tlwe_query, open_tlwe_query};
