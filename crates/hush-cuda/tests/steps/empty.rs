//! Empty operands, in the emulator and on a GPU: empty or zero results.

use crate::devices::orderly;
use hush_cuda::Cuda;
use hush_testkit::conformance::empty_operands;

#[test]
fn nothing_comes_of_nothing() {
    orderly().into_iter().for_each(|device| empty_operands(&Cuda::new(device)));
}
