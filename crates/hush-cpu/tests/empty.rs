//! Tests of empty operands at every level: results are empty or zero.

#![allow(clippy::print_stderr)]

mod ring_backends;

use hush_testkit::conformance::empty_operands;
use ring_backends::backends;

#[test]
fn nothing_comes_of_nothing() {
    for cpu in backends() {
        eprintln!("{}, {} threads", cpu.level(), cpu.threads());
        empty_operands(&cpu);
    }
}
