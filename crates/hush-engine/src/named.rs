//! Choices that users give by name.

use thiserror::Error;

/// A name that no choice of its kind has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{given}' is not {kind}: use {known}")]
pub struct UnknownName {
    given: String,
    kind: &'static str,
    known: String,
}

impl UnknownName {
    pub(crate) fn new(given: &str, kind: &'static str, known: &[&str]) -> Self {
        let (last, others) = known.split_last().expect("a choice");
        Self { given: given.to_owned(), kind, known: format!("{} or {last}", others.join(", ")) }
    }
}

/// Gives a choice its names: the list of all choices, `name`, `Display` and `FromStr`. `kind` is what a name stands for.
macro_rules! named {
    ($choice:ident, $kind:literal, [$($variant:ident = $name:literal),+]) => {
        impl $choice {
            /// All choices.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name that users give.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl ::std::fmt::Display for $choice {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $choice {
            type Err = $crate::UnknownName;

            fn from_str(given: &str) -> Result<Self, $crate::UnknownName> {
                let found = Self::ALL.into_iter().find(|choice| choice.name() == given);
                found.ok_or_else(|| $crate::UnknownName::new(given, $kind, &[$($name),+]))
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use crate::{BackendChoice, MemoryChoice, SpreadChoice};

    #[test]
    fn choices_have_names() {
        assert!(BackendChoice::ALL.iter().all(|choice| choice.to_string().parse() == Ok(*choice)));
        assert!(MemoryChoice::ALL.iter().all(|choice| choice.to_string().parse() == Ok(*choice)));
        assert!(SpreadChoice::ALL.iter().all(|choice| choice.to_string().parse() == Ok(*choice)));
        for name in ["", "gpu", "CUDA", "cpu "] {
            let error = name.parse::<BackendChoice>().unwrap_err();
            assert_eq!(error.to_string(), format!("'{name}' is not a backend: use auto, cpu or cuda"));
        }
        let error = "both".parse::<SpreadChoice>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'both' is not a way to spread tables over GPUs: use auto, one, replicate or shard"
        );
    }
}
