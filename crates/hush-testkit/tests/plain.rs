//! The plain backend against the reference.

use hush_testkit::{conformance, plain::Plain};

#[test]
fn the_fold_equals_the_reference() {
    // Its other steps are the reference's own.
    conformance::lwe_fold(&Plain);
}
