//! Machines that serve parts of a table, and the cost of messages between them.

use super::super::Machine;

/// The seconds of a Ray call of all parts, there and back, beside the time for its bytes. Measured on a busy machine of two cores:
/// calls of 150 KB in 4 ms and of 5 MB in 15 ms. A straight line through both gives this and [`COPY`].
pub(super) const CALL: f64 = 4e-3 - 150e3 / COPY;
/// The bytes a second at which a process passes messages on: they are copied and reordered.
pub(super) const COPY: f64 = (5e6 - 150e3) / (15e-3 - 4e-3);

/// A machine for one part. Its cores are as fast as the profile's, and share work evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The number of cores, 1 or more.
    pub cores: usize,
    /// The bytes of memory.
    pub memory: u64,
    /// The bytes a second that the machine can send, and can receive.
    pub network: f64,
}

impl Node {
    /// Returns the ratio of a step's time on this machine to its time in `profile`.
    pub(super) fn slowness(&self, profile: &Machine) -> f64 {
        profile.threads as f64 / self.cores as f64
    }

    /// Returns the name of the machine's kind, by which parts are placed if machines differ.
    pub(super) fn kind(&self) -> String {
        format!("cores-{}", self.cores)
    }
}

/// Returns weights in proportion to the cores of machines: 2:2:1 for 16, 16 and 8 cores.
pub(super) fn weights(nodes: &[Node]) -> Vec<u32> {
    let divisor = nodes.iter().fold(0, |divisor, node| gcd(divisor, node.cores)).max(1);
    nodes.iter().map(|node| (node.cores / divisor) as u32).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_calls_that_were_measured_are_on_the_line() {
        for (bytes, seconds) in [(150e3, 4e-3), (5e6, 15e-3)] {
            assert!((CALL + bytes / COPY - seconds).abs() < 1e-9);
        }
        const { assert!(CALL > 0.0) };
    }

    #[test]
    fn weights_are_as_cores() {
        let of = |cores: &[usize]| {
            weights(
                &cores
                    .iter()
                    .map(|&cores: &usize| Node { cores, memory: 1, network: 1.0 })
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(&[16, 16, 8, 16, 8]), [2, 2, 1, 2, 1]);
        assert_eq!(of(&[7; 5]), [1; 5]);
        assert_eq!(of(&[96, 64]), [3, 2]);
    }
}
