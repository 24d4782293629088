//! Empty operands on the backends that others are compared with: empty or zero results.

use hush_ops::reference::Reference;
use hush_testkit::{conformance::empty_operands, plain::Plain};

#[test]
fn nothing_comes_of_nothing() {
    empty_operands(&Reference);
    empty_operands(&Plain);
}
