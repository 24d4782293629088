//! The choice of how tables are spread over several GPUs.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// A user's choice of how each table is spread over the GPUs of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpreadChoice {
    /// Copies if they leave room for another epoch, else shares if a batch then takes less time, else one GPU.
    #[default]
    Auto,
    /// One GPU, unless only several have room.
    One,
    /// A copy on every GPU that has room: a batch goes to the GPU that is free first.
    Replicate,
    /// A share on every GPU: each batch takes less time, as all GPUs scan for it.
    Shard,
}

/// An unknown choice.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{0}' is not a way to spread tables over GPUs: use auto, one, replicate or shard")]
pub struct UnknownSpread(String);

impl SpreadChoice {
    /// All choices.
    pub const ALL: [Self; 4] = [Self::Auto, Self::One, Self::Replicate, Self::Shard];

    /// Returns the name that users give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::One => "one",
            Self::Replicate => "replicate",
            Self::Shard => "shard",
        }
    }
}

impl fmt::Display for SpreadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SpreadChoice {
    type Err = UnknownSpread;

    fn from_str(name: &str) -> Result<Self, UnknownSpread> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| UnknownSpread(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_names() {
        for choice in SpreadChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let error = "both".parse::<SpreadChoice>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'both' is not a way to spread tables over GPUs: use auto, one, replicate or shard"
        );
    }
}
