//! The normal form of keys: text that differs in case, in composition or in white space around it can be one key.
//!
//! The descriptor names the steps, and whoever builds, changes or asks a table takes them: a table has no other form of a key. The
//! steps are taken in one order, whatever the order in which a command names them.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
};
use thiserror::Error;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use zeroize::Zeroizing;

/// The most bytes that a byte of UTF-8 becomes in NFC or in lower case.
const MOST_GROWTH: usize = 3;
/// Characters of an unknown name that an error shows.
const SHOWN_CHARS: usize = 40;

/// A step to the normal form, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Normalization {
    /// White space around the text is removed: characters of the property White_Space of Unicode.
    Trim,
    /// The text is written in lower case, by the full mapping of Unicode.
    Lower,
    /// The text is composed: normalization form C of Unicode.
    Nfc,
}

impl Normalization {
    const ALL: [(Self, &'static str); 3] = [(Self::Trim, "trim"), (Self::Lower, "lower"), (Self::Nfc, "nfc")];
}

/// The text names no step.
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

/// The steps that the text columns of a key go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NormalForm {
    is_step: [bool; Normalization::ALL.len()],
}

impl NormalForm {
    /// Returns whether text is kept as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the names of the steps, in the order in which they are taken.
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
        // ASCII is changed in place. Other text, in which characters may grow, leaves copies in memory that nobody wipes.
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

/// Reads the names of steps. A list ends at the first name that is not of a step behind those before it.
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
            // A sigma at the end of a word is another letter.
            ("lower", "ΟΔΟΣ ΣΑΣ", "οδος σας"),
            ("nfc", "e\u{301} \u{212b} \u{ac00}\u{11a8}", "é Å \u{ac01}"),
            // Marks are put into their order.
            ("nfc", "a\u{301}\u{323}", "ạ\u{301}"),
            // What has no composed form is longer.
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
        /// A key of a table is looked up as it is in the table, and changed by what was read from it.
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
