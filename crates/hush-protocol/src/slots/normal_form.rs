//! The normal form of keys. Texts that differ in case, in composition or in surrounding white space can become one key.
//!
//! The descriptor names the steps. Everyone who builds, changes or asks a table executes them, so a table has keys in
//! normal form alone. The steps always have the same order, whatever the order in which a command names them.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
};
use thiserror::Error;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use zeroize::Zeroizing;

/// The most bytes that one byte of UTF-8 becomes in NFC or in lower case.
const MOST_GROWTH: usize = 3;
/// The number of characters of an unknown name that an error shows.
const SHOWN_CHARS: usize = 40;

/// A step to the normal form. The variants are in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Normalization {
    /// Removes white space around the text: characters with the Unicode property White_Space.
    Trim,
    /// Converts the text to lower case, by the full mapping of Unicode.
    Lower,
    /// Composes characters: Unicode normalization form C.
    Nfc,
}

impl Normalization {
    const ALL: [(Self, &'static str); 3] = [(Self::Trim, "trim"), (Self::Lower, "lower"), (Self::Nfc, "nfc")];
}

/// The error for a text that names no step.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected some of: lower, nfc, trim")]
pub struct UnknownNormalization;

impl FromStr for Normalization {
    type Err = UnknownNormalization;

    fn from_str(name: &str) -> Result<Self, UnknownNormalization> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == name);
        found.map(|(step, _)| step).ok_or(UnknownNormalization)
    }
}

/// The set of steps that are applied to the text columns of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NormalForm {
    is_step: [bool; Normalization::ALL.len()],
}

impl NormalForm {
    /// Returns whether there are no steps, so that text remains unchanged.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the names of the steps, in the order of execution.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        Normalization::ALL.into_iter().filter(|&(step, _)| self.has(step)).map(|(_, name)| name)
    }

    fn has(&self, step: Normalization) -> bool {
        self.is_step[step as usize]
    }

    /// Returns the normal form of a text.
    pub fn of(&self, text: &str) -> Zeroizing<String> {
        let text = if self.has(Normalization::Trim) { text.trim() } else { text };
        let mut out = Zeroizing::new(text.to_owned());
        // ASCII is changed in place. Other text may grow, and leaves copies of a key in memory that are never wiped.
        if self.has(Normalization::Lower) {
            if out.is_ascii() {
                out.make_ascii_lowercase();
            } else {
                out = Zeroizing::new(out.to_lowercase());
            }
        }
        if self.has(Normalization::Nfc) && is_nfc_quick(out.chars()) != IsNormalized::Yes {
            let mut composed = Zeroizing::new(String::with_capacity(MOST_GROWTH * out.len()));
            composed.extend(out.nfc());
            out = composed;
        }
        out
    }
}

impl FromIterator<Normalization> for NormalForm {
    fn from_iter<I: IntoIterator<Item = Normalization>>(steps: I) -> Self {
        let mut form = Self::default();
        steps.into_iter().for_each(|step| form.is_step[step as usize] = true);
        form
    }
}

impl fmt::Display for NormalForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

impl Serialize for NormalForm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for NormalForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(StepsVisitor)
    }
}

/// A visitor that reads the names of steps. It stops with an error at the first name that is unknown or out of order.
struct StepsVisitor;

impl<'de> Visitor<'de> for StepsVisitor {
    type Value = NormalForm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of steps to the normal form of keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<NormalForm, A::Error> {
        let mut form = NormalForm::default();
        let mut last = None;
        while let Some(name) = names.next_element::<String>()? {
            let Ok(step) = name.parse::<Normalization>() else {
                let shown: String = name.chars().take(SHOWN_CHARS).collect();
                return Err(A::Error::custom(format_args!(
                    "the keys of the table are normalized by {shown:?}, which this program cannot do: update it"
                )));
            };
            if last >= Some(step) {
                return Err(A::Error::custom(
                    "the steps of a normal form are trim, lower and nfc, in this order, each at most once",
                ));
            }
            form.is_step[step as usize] = true;
            last = Some(step);
        }
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(steps: &str) -> NormalForm {
        steps.split(',').map(|step| step.parse::<Normalization>().unwrap()).collect()
    }

    #[test]
    fn each_step_does_its_part() {
        for (steps, text, expected) in [
            ("trim", " \t\u{a0}\u{3000}a b\u{2028}\r\n", "a b"),
            ("trim", "\u{1f}a\u{200b}", "\u{1f}a\u{200b}"),
            ("lower", "Alice@EXAMPLE.org", "alice@example.org"),
            ("lower", "ÀÉÎ ẞ \u{130}", "àéî ß i\u{307}"),
            // A sigma at the end of a word becomes another letter.
            ("lower", "ΟΔΟΣ ΣΑΣ", "οδος σας"),
            ("nfc", "e\u{301} \u{212b} \u{ac00}\u{11a8}", "é Å \u{ac01}"),
            ("trim,lower", "E\u{301} ", "e\u{301}"),
            // Combining marks are sorted.
            ("nfc", "a\u{301}\u{323}", "ạ\u{301}"),
            // A character without a composed form becomes longer.
            ("nfc", "\u{fb2c}", "\u{5e9}\u{5bc}\u{5c1}"),
            ("lower,nfc", "\u{212b} E\u{301}", "å é"),
            ("nfc,lower,trim", "  E\u{301} \u{2003}", "é"),
            ("trim", "", ""),
        ] {
            assert_eq!(*form(steps).of(text), expected, "{steps} of {text:?}");
        }
        assert_eq!(*NormalForm::default().of(" É "), " É ");
    }

    #[test]
    fn a_descriptor_names_steps_in_their_order() {
        let json = r#"["trim","lower","nfc"]"#;
        assert_eq!(serde_json::to_string(&form("nfc,trim,lower")).unwrap(), json);
        assert_eq!(serde_json::from_str::<NormalForm>(json).unwrap(), form("lower,nfc,trim"));
        assert_eq!(form("lower,nfc").to_string(), "lower, nfc");
        for (bad, said) in [
            (r#"["trim","casefold"]"#, "normalized by \"casefold\", which this program cannot do: update it"),
            (r#"["lower","trim"]"#, "in this order, each at most once"),
            (r#"["lower","lower"]"#, "in this order, each at most once"),
            (r#"["LOWER"]"#, "\"LOWER\""),
            (r#""lower""#, "invalid type"),
            (r#"[1]"#, "invalid type"),
        ] {
            let error = serde_json::from_str::<NormalForm>(bad).unwrap_err().to_string();
            assert!(error.contains(said), "{bad}: {error}");
        }
        let long = serde_json::to_string(&["x".repeat(1 << 20)]).unwrap();
        assert!(serde_json::from_str::<NormalForm>(&long).unwrap_err().to_string().len() < 200);
    }

    proptest! {
        /// The normal form of a normal form is itself: clients look up keys and change records with keys read from a table.
        #[test]
        fn a_normal_form_is_its_own(text in any::<String>(), steps in 0usize..8) {
            let steps = Normalization::ALL.into_iter().filter(|&(step, _)| steps >> step as usize & 1 == 1);
            let form: NormalForm = steps.map(|(step, _)| step).collect();
            let once = form.of(&text);
            prop_assert_eq!(&*form.of(&once), &*once);
            prop_assert!(once.len() <= MOST_GROWTH * MOST_GROWTH * text.len());
        }
    }
}
