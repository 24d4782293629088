//! Texts with parts to fill in: `{name}`, or `{name:function:..}`. Braces are doubled: `{{`, `}}`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
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
        find: impl Fn(&'t str) -> Option<Cow<'v, [u8]>>,
    ) -> Result<Zeroizing<Vec<u8>>, &'t str> {
        let mut filled = Zeroizing::new(Vec::new());
        for piece in &self.0 {
            match piece {
                TemplatePart::Text(text) => filled.extend_from_slice(text.as_bytes()),
                TemplatePart::Filled { name, functions } => {
                    let bytes = Zeroizing::new(find(name).ok_or(&name[..])?.into_owned());
                    let bytes = functions.iter().fold(bytes, |bytes, function| function.of(&bytes));
                    filled.extend_from_slice(&bytes);
                }
            }
        }
        Ok(filled)
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

/// Returns what a JSON value has at a path of names and numbers such as `0.address`: the content of a string, or compact JSON.
pub(crate) fn at_path(value: &Value, path: &str) -> Option<Vec<u8>> {
    let mut value = value;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        value = match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            Value::Object(members) => members.get(step)?,
            _ => return None,
        };
    }
    Some(match value {
        Value::String(text) => text.as_bytes().to_vec(),
        other => other.to_string().into_bytes(),
    })
}

/// Returns what a record has for a name: `value` is all of it, and `value.PATH` a field. Returns `None` if the name is another one,
/// or there is no such field.
pub(crate) fn of_record<'v>(record: &'v [u8], name: &str) -> Option<Cow<'v, [u8]>> {
    match name.strip_prefix("value")? {
        "" => Some(record.into()),
        path => at_path(&serde_json::from_slice(record).ok()?, path.strip_prefix('.')?).map(Cow::Owned),
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
