//! Every parameter set as data.

use hush_he::params::{LatticeProblem, ParameterSet};

use crate::{
    page::Page,
    registry::{Protocol, Visitor},
};

/// A parameter set.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// The name of the set.
    pub name: &'static str,
    /// The claimed security, in bits.
    pub security_bits: f64,
    /// The lattice problems on which the security rests. Empty for a set without encryption.
    pub problems: Vec<LatticeProblem>,
    /// The protocols that use this set.
    pub protocols: Vec<Protocol>,
}

/// Returns each protocol's parameter sets once, without those that claim security but encrypt nothing.
pub fn presets() -> Vec<Preset> {
    let mut all: Vec<Preset> = Vec::new();
    for preset in Protocol::ALL.iter().copied().flat_map(presets_of) {
        // A protocol that sends nothing is secure without a lattice problem, so its set offers no choice.
        if preset.security_bits != 0.0 && preset.problems.is_empty() {
            continue;
        }
        match all.iter_mut().find(|known| known.name == preset.name) {
            Some(known) => known.protocols.extend(preset.protocols),
            None => all.push(preset),
        }
    }
    all
}

/// Returns the parameter sets of `protocol`. Their field `protocols` names `protocol` alone.
pub fn presets_of(protocol: Protocol) -> Vec<Preset> {
    protocol.visit(OfPage)
}

/// A visitor that returns the parameter sets of a page.
struct OfPage;

impl Visitor for OfPage {
    type Output = Vec<Preset>;

    fn visit<P: Page>(self) -> Vec<Preset> {
        P::Set::presets()
            .iter()
            .map(|set: &P::Set| Preset {
                name: set.name(),
                security_bits: set.security_bits(),
                problems: set.problems(),
                protocols: vec![P::PROTOCOL],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_takes_what_is_listed() {
        assert!(Protocol::ALL.iter().all(|&protocol| !presets_of(protocol).is_empty()));
        let sends = Protocol::ALL.iter().filter(|&&protocol| protocol != Protocol::Download);
        let mut sends =
            sends.map(|protocol| presets().iter().any(|preset| preset.protocols.contains(protocol)));
        assert!(sends.all(|has_a_set| has_a_set));
        for Preset { name, problems, protocols, .. } in presets() {
            for &protocol in Protocol::ALL {
                assert_eq!(
                    protocol.page().has_set(name),
                    protocols.contains(&protocol),
                    "{name}, {protocol}"
                );
            }
            assert_eq!(
                problems.is_empty(),
                name.ends_with("PLAIN") && name.starts_with("INSECURE"),
                "{name}"
            );
        }
    }
}
