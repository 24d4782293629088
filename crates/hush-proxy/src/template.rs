//! Texts with parts to fill in: `{name}`, or `{name:function:..}`. Braces are doubled: `{{`, `}}`.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

/// A text with parts to fill in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    Text(String),
    Filled { name: String, functions: Vec<TextFunction> },
}

/// A function of the bytes that are filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TextFunction {
    Upper,
    Lower,
    Trim,
    /// Hexadecimal digits in lower case.
    Hex,
    Sha1,
    Sha256,
    /// A string of JSON, with its quotes.
    Json,
}

/// The error of a text that is no template.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum TemplateError {
    #[error("a brace is not closed; write {{{{ for a brace itself")]
    Open,
    #[error("there is no function '{0}': use upper, lower, trim, hex, sha1, sha256 or json")]
    Function(String),
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        let mut pieces = vec![TemplatePart::Text(String::new())];
        let mut rest = &text[..];
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            let text = match pieces.last_mut() {
                Some(TemplatePart::Text(text)) => text,
                _ => {
                    pieces.push(TemplatePart::Text(String::new()));
                    continue;
                }
            };
            text.push_str(before);
            if from.starts_with("{{") || from.starts_with("}}") {
                text.push_str(&from[..1]);
                rest = &from[2..];
                continue;
            }
            let (filled, after) =
                from.strip_prefix('{').and_then(|from| from.split_once('}')).ok_or(TemplateError::Open)?;
            let mut words = filled.split(':');
            let name = words.next().unwrap_or_default().trim().to_owned();
            let functions = words.map(|word| TextFunction::named(word.trim())).collect::<Result<_, _>>()?;
            pieces.push(TemplatePart::Filled { name, functions });
            rest = after;
        }
        pieces.push(TemplatePart::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != TemplatePart::Text(String::new()));
        Ok(Self(pieces))
    }
}

impl Template {
    /// Returns the template `{value}`.
    pub(crate) fn value() -> Self {
        Self(vec![TemplatePart::Filled { name: "value".into(), functions: Vec::new() }])
    }

    /// Returns the names of the parts that are filled in.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Text(_) => None,
            TemplatePart::Filled { name, .. } => Some(&name[..]),
        })
    }

    /// Returns the text with `find(name)` in each part. Returns the first name that nothing is found for, if there is one.
    pub(crate) fn fill<'t, 'v>(
        &'t self,
        find: impl Fn(&'t str) -> Option<Filling<'v>>,
    ) -> Result<Zeroizing<Vec<u8>>, &'t str> {
        let mut filled = Zeroizing::new(Vec::new());
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(text) => filled.extend_from_slice(text.as_bytes()),
                TemplatePart::Filled { name, functions } => {
                    let found = find(name).ok_or(&name[..])?;
                    let (bytes, others) = match (&functions[..], found) {
                        // A field of a record is JSON already, whatever its type.
                        ([TextFunction::Json, others @ ..], Filling::Json(json)) => {
                            (json.into_bytes(), others)
                        }
                        (functions, found) => (found.into_text(), functions),
                    };
                    let bytes =
                        others.iter().fold(Zeroizing::new(bytes), |bytes, function| function.of(&bytes));
                    filled.extend_from_slice(&bytes);
                }
            }
        }
        Ok(filled)
    }
}

/// The meaning of a name.
pub(crate) enum Filling<'v> {
    /// Text or bytes.
    Text(Cow<'v, [u8]>),
    /// A value of JSON, as it was written.
    Json(String),
}

impl Filling<'_> {
    /// Returns the content of a string, or the text of any other value.
    fn into_text(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Json(json) => match serde_json::from_str::<String>(&json) {
                Ok(text) => text.into_bytes(),
                Err(_) => json.into_bytes(),
            },
        }
    }

    /// Returns itself if it can be a key: text, a number or a truth value.
    pub(crate) fn if_key(self) -> Option<Self> {
        match &self {
            Self::Json(json) if json == "null" || json.starts_with(['[', '{']) => None,
            _ => Some(self),
        }
    }
}

impl TextFunction {
    fn named(word: &str) -> Result<Self, TemplateError> {
        Ok(match word {
            "upper" => Self::Upper,
            "lower" => Self::Lower,
            "trim" => Self::Trim,
            "hex" => Self::Hex,
            "sha1" => Self::Sha1,
            "sha256" => Self::Sha256,
            "json" => Self::Json,
            other => return Err(TemplateError::Function(other.to_owned())),
        })
    }

    fn of(self, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
        let text = || String::from_utf8_lossy(bytes);
        Zeroizing::new(match self {
            Self::Upper => text().to_uppercase().into_bytes(),
            Self::Lower => text().to_lowercase().into_bytes(),
            Self::Trim => text().trim().as_bytes().to_vec(),
            Self::Hex => hex::encode(bytes).into_bytes(),
            Self::Sha1 => hex::encode(Sha1::digest(bytes)).into_bytes(),
            Self::Sha256 => hex::encode(Sha256::digest(bytes)).into_bytes(),
            Self::Json => Value::from(text()).to_string().into_bytes(),
        })
    }
}

/// Returns what a JSON text has at a path of names and numbers such as `0.address`, as it was written there.
pub(crate) fn at_path<'v>(json: &str, path: &str) -> Option<Filling<'v>> {
    let mut json: Box<RawValue> = serde_json::from_str(json).ok()?;
    for step in path.split('.') {
        let text = json.get();
        json = match text.as_bytes().first()? {
            b'[' => {
                serde_json::from_str::<Vec<Box<RawValue>>>(text).ok()?.into_iter().nth(step.parse().ok()?)?
            }
            b'{' => serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text).ok()?.remove(step)?,
            _ => return None,
        };
    }
    Some(Filling::Json(json.get().to_owned()))
}

/// Returns what a record has for a name: `value` is all of it, and `value.PATH` a field. Returns `None` if the name is another one,
/// or there is no such field.
pub(crate) fn of_record<'v>(record: &'v [u8], name: &str) -> Option<Filling<'v>> {
    match name.strip_prefix("value")? {
        "" => Some(Filling::Text(record.into())),
        path => at_path(str::from_utf8(record).ok()?, path.strip_prefix('.')?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, value: &[u8]) -> Result<String, String> {
        let template = Template::try_from(template.to_owned()).map_err(|error| error.to_string())?;
        let bytes = template.fill(|name| of_record(value, name)).map_err(str::to_owned)?;
        Ok(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn parts_are_filled_in() {
        for (template, value, expected) in [
            ("", "x", ""),
            ("{value}", "x", "x"),
            ("<{value:upper}>{value:lower}", "aB", "<AB>ab"),
            ("{{{value}}}", "x", "{x}"),
            ("{value : trim : sha1}", " password ", "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"),
            ("{value:hex}", "\u{1}z", "017a"),
            ("{value.a.1}", r#"{"a":[1,"two"]}"#, "two"),
            ("{value.a}", r#"{"a":[1,"two"]}"#, r#"[1,"two"]"#),
            (r#"{{"x":{value:json}}}"#, "a\"b", r#"{"x":"a\"b"}"#),
            // Fields are as they were written, and JSON of their own type.
            (
                "{value.a} {value.b:json} {value.c:json}",
                r#"{"a":1.10,"b":123456789012345678901234567890,"c":"x"}"#,
                "1.10 123456789012345678901234567890 \"x\"",
            ),
            ("{value.n} {value.n:json} {value.n:upper:json}", r#"{"n":null}"#, "null null \"NULL\""),
        ] {
            assert_eq!(filled(template, value.as_bytes()), Ok(expected.into()), "{template}");
        }
        let digest = filled("{value:sha256}", b"").unwrap();
        assert!(digest.starts_with("e3b0c44298fc1c14"), "{digest}");
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        assert!(filled("a{value", b"").unwrap_err().contains("not closed"));
        assert!(filled("a}b", b"").unwrap_err().contains("not closed"));
        assert!(filled("{value:rot13}", b"").unwrap_err().contains("'rot13'"));
        assert_eq!(filled("{value.b}", br#"{"a":1}"#), Err("value.b".into()));
        assert_eq!(filled("{value.b}", b"no JSON"), Err("value.b".into()));
        assert_eq!(filled("{key}", b""), Err("key".into()));
    }
}
