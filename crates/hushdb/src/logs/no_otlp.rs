//! The substitute for telemetry in programs without the feature `otlp`.

use super::BoxedLayer;

/// The exporters, which do not exist in this program.
pub(crate) enum Exporters {}

impl Exporters {
    pub(super) fn to(_: &str) -> Result<Self, String> {
        Err("this program was made without the feature otlp: leave --otlp out, or build it with --features otlp".into())
    }

    pub(super) fn layers(&self) -> Vec<BoxedLayer> {
        match *self {}
    }
}
