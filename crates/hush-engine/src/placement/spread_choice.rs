//! The choice of how tables are spread over several GPUs.

use crate::named::named;

/// A user's choice of how each table is spread over the GPUs of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpreadChoice {
    /// Copies if they leave room for another epoch, else shares if a batch then takes less time, else one GPU.
    #[default]
    Auto,
    /// A single GPU, unless only several have room.
    One,
    /// A copy on every GPU that has room: a batch goes to the GPU that is free first.
    Replicate,
    /// A share on every GPU: each batch takes less time, as all GPUs scan for it.
    Shard,
}

named!(
    SpreadChoice,
    "a way to spread tables over GPUs",
    [Auto = "auto", One = "one", Replicate = "replicate", Shard = "shard"]
);
