//! Machines that parts of a table may be put on.

use std::sync::Arc;

use super::super::Machine;

/// Machines of one kind.
#[derive(Clone, Debug)]
pub struct MachineKind {
    /// What it is called; parts are placed by this name.
    pub name: String,
    /// How many there are.
    pub count: usize,
    /// Cores of each.
    pub cores: usize,
    /// Bytes of memory of each.
    pub memory: u64,
    /// Bytes a second that each sends, and as many that it receives.
    pub network: f64,
    /// What steps take on `machine.threads` cores of it, but for `speed`.
    pub profile: Arc<Machine>,
    /// How many times as fast a core is as one of the profile.
    pub speed: f64,
    /// What an hour of one costs.
    pub price_hour: Option<f64>,
    /// Whether heads run on these machines, and no parts.
    pub heads: bool,
}

impl MachineKind {
    /// How many times as long a step takes on one of them as its profile says. Cores are reckoned to share all work evenly.
    pub(super) fn slowness(&self) -> f64 {
        self.profile.threads as f64 / (self.cores as f64 * self.speed)
    }
}

/// What carries messages between the processes of a table in parts: Ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// Seconds of a call of all parts, there and back, beside what its bytes take.
    pub call: f64,
    /// Bytes a second at which a process passes messages on: they are copied and laid out anew.
    pub copy: f64,
}

impl Default for Transport {
    /// Two calls on a busy machine of two cores, of 150 KB in 4 ms and of 5 MB in 15 ms, and a straight line through both.
    fn default() -> Self {
        let ((few, short), (many, long)) = ((150e3, 4e-3), (5e6, 15e-3));
        let copy = (many - few) / (long - short);
        Self { call: short - few / copy, copy }
    }
}

/// All machines.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The kinds, in the order in which their parts follow each other.
    pub kinds: Vec<MachineKind>,
    /// What is between them.
    pub transport: Transport,
}

impl Cluster {
    /// Where heads run: the kind that is for them, or else the fastest, beside parts.
    pub(super) fn head_kind(&self) -> &MachineKind {
        let own = self.kinds.iter().find(|kind| kind.heads);
        let fastest = || self.kinds.iter().min_by(|a, b| a.slowness().total_cmp(&b.slowness()));
        own.or_else(fastest).expect("a cluster has machines")
    }

    /// Machines that parts are put on.
    pub(super) fn machines(&self) -> usize {
        self.kinds.iter().filter(|kind| !kind.heads).map(|kind| kind.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_calls_that_were_measured_are_on_the_line() {
        let Transport { call, copy } = Transport::default();
        for (bytes, seconds) in [(150e3, 4e-3), (5e6, 15e-3)] {
            assert!((call + bytes / copy - seconds).abs() < 1e-9);
        }
        assert!(call > 0.0);
    }
}
