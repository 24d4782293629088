//! The negative vectors of descriptors, evaluation keys and queries.

use std::fmt::Display;

use hush_he::{
    algorithms::{open_column_keys, open_ring_query},
    codec::unpack_scaled,
    params::{INSECURE_COLPACK_N256, INSECURE_PACK_N256, ONION_M31, RingContext},
};
use hush_protocol::{descriptor::Descriptor, ring_keys::open_upload};

use crate::negative_vectors::{Negative, negatives};

fn check<T, E: Display>(format: &str, decode: impl Fn(&Negative) -> Result<T, E>) {
    for negative in negatives(format) {
        let refused = decode(&negative).err().map(|error| error.to_string());
        negative.check(refused.is_none(), None, &refused.unwrap_or_default());
    }
}

#[test]
fn descriptors_get_the_verdicts_of_the_documents() {
    check("descriptor", |negative| Descriptor::from_json(&negative.input));
}

#[test]
fn keys_get_the_verdicts_of_the_documents() {
    let context = RingContext::new(*INSECURE_PACK_N256.ring());
    check("evaluation_keys", |negative| {
        assert_eq!(negative.text("preset"), Some(INSECURE_PACK_N256.name()));
        open_upload(&context, &negative.input)
    });
}

#[test]
fn queries_get_the_verdicts_of_the_documents() {
    let column = RingContext::new(*INSECURE_COLPACK_N256.ring());
    let ring = RingContext::new(ONION_M31);
    check("query", |negative| {
        let number = |name: &str| negative.number(name).expect("a number of the context");
        match negative.text("preset") {
            None => unpack_scaled(&negative.input, number("columns"), number("bits") as u32).map(drop),
            Some("ONION_M31") => {
                open_ring_query(&ring, number("selectors"), number("folds"), &negative.input).map(drop)
            }
            Some(_) => {
                open_column_keys(&INSECURE_COLPACK_N256, &column, number("folds") > 0, &negative.input)
                    .map(drop)
            }
        }
    });
}
