//! Values of several columns. A value is the concatenation of its fields; their names are in the descriptor's
//! [schema](crate::schema).
//!
//! A field begins with a head, `4 * length + kind` as LEB128, followed by `length` bytes ([`Field`]). Clients return a
//! value as a JSON object.

use std::{
    fmt::{Display, LowerExp},
    str::from_utf8,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::IgnoredAny;

/// The number of bits of a head that hold the kind.
const KIND_BITS: u32 = 2;

/// A field of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// Null: kind 0, no bytes.
    Null,
    /// A number, boolean, array or object as compact JSON text: kind 1.
    Json(&'a str),
    /// Text in UTF-8, which becomes a string in JSON: kind 2.
    Text(&'a str),
    /// Bytes, which become a string of base64 with padding in JSON: kind 3.
    Binary(&'a [u8]),
}

impl<'a> Field<'a> {
    /// Appends the field to a value.
    pub fn append(self, out: &mut Vec<u8>) {
        let (kind, bytes): (u64, &[u8]) = match self {
            Self::Null => (0, b""),
            Self::Json(text) => (1, text.as_bytes()),
            Self::Text(text) => (2, text.as_bytes()),
            Self::Binary(bytes) => (3, bytes),
        };
        let mut head = (bytes.len() as u64) << KIND_BITS | kind;
        while head >= 0x80 {
            out.push(head as u8 | 0x80);
            head >>= 7;
        }
        out.push(head as u8);
        out.extend_from_slice(bytes);
    }

    /// Reads the field at the start of `value`, and advances `value` behind it. Returns `None` if there is no valid field.
    pub(crate) fn read(value: &mut &'a [u8]) -> Option<Self> {
        let mut head = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let (&byte, rest) = value.split_first()?;
            *value = rest;
            head |= u64::from(byte & 0x7f) << shift;
            if byte == 0 && shift > 0 {
                return None; // A head is as short as it can be.
            }
            if byte & 0x80 == 0 {
                let (bytes, rest) = value.split_at_checked(usize::try_from(head >> KIND_BITS).ok()?)?;
                *value = rest;
                return Self::of(head & ((1 << KIND_BITS) - 1), bytes);
            }
        }
        None
    }

    fn of(kind: u64, bytes: &'a [u8]) -> Option<Self> {
        match kind {
            0 => bytes.is_empty().then_some(Self::Null),
            1 => {
                let text = from_utf8(bytes).ok()?;
                serde_json::from_str::<IgnoredAny>(text).ok().map(|_| Self::Json(text))
            }
            2 => from_utf8(bytes).ok().map(Self::Text),
            _ => Some(Self::Binary(bytes)),
        }
    }

    /// Appends the field as JSON.
    pub fn append_json(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Json(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(text) => append_json_string(text, out),
            Self::Binary(bytes) => append_json_string(&STANDARD.encode(bytes), out),
        }
    }
}

/// Appends `text` as a JSON string.
pub fn append_json_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string always has a JSON form, and a Vec takes any bytes");
}

/// Returns the value with these fields as a compact JSON object. Its members have the order of `fields`.
pub fn to_json(fields: &[Field<'_>], names: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, (field, name)) in fields.iter().zip(names).enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        append_json_string(name, &mut out);
        out.push(b':');
        field.append_json(&mut out);
    }
    out.push(b'}');
    out
}

/// Appends a float with the fewest digits that parse to the same float, in the format of RFC 8785 section 3.2.2.3 (that of
/// ECMAScript): `1`, `0.25`, `1e-7`, `1e+21`, and also `NaN`, `Infinity`, `-Infinity`.
pub fn append_float(out: &mut Vec<u8>, float: impl Copy + Display + LowerExp + Into<f64>) {
    let value: f64 = float.into();
    let magnitude = value.abs();
    let text = if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if magnitude == 0.0 {
        "0".into()
    } else if magnitude >= 1e21 {
        format!("{float:e}").replace('e', "e+")
    } else if magnitude < 1e-6 {
        format!("{float:e}")
    } else {
        float.to_string()
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ProtocolError,
        schema::{Column, ColumnType, Schema},
    };

    /// Returns the JSON of a value of `count` fields.
    fn json(count: usize, value: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let schema = Schema {
            value: (0..count).map(|index| Column(format!("f\"{index}"), ColumnType::ANY)).collect(),
            ..Schema::default()
        };
        Ok(to_json(&schema.read(value)?, &schema.fields().unwrap()))
    }

    fn value(fields: &[Field<'_>]) -> Vec<u8> {
        let mut value = Vec::new();
        fields.iter().for_each(|field| field.append(&mut value));
        value
    }

    #[test]
    fn fields_come_back_as_json() {
        let all = [
            Field::Null,
            Field::Json("[1,2.50]"),
            Field::Text("a\"\né"),
            Field::Binary(b"\xff\0"),
            Field::Text(""),
        ];
        let json = json(5, &value(&all)).unwrap();
        let expected = r#"{"f\"0":null,"f\"1":[1,2.50],"f\"2":"a\"\né","f\"3":"/wA=","f\"4":""}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }

    #[test]
    fn lengths_of_every_size_are_read_back() {
        for (length, head) in [(0, 1), (31, 1), (32, 2), (4095, 2), (4096, 3), (1 << 20, 4)] {
            let text = "x".repeat(length);
            let bytes = value(&[Field::Text(&text), Field::Null]);
            assert_eq!(bytes.len() - length, head + 1);
            let json = json(2, &bytes).unwrap();
            assert_eq!(json.len(), length + r#"{"f\"0":"","f\"1":null}"#.len());
        }
    }

    #[test]
    fn what_is_no_value_is_an_error() {
        let good = value(&[Field::Json("1"), Field::Text("a")]);
        assert!(json(2, &good).is_ok());
        let bad: [&[u8]; 9] = [
            b"",
            &good[..good.len() - 1],
            &[&good[..], b"\0"].concat(),
            &good[..2],
            // A null with a byte; invalid JSON; JSON followed by more; invalid UTF-8; a head without an end.
            &[4, b'x', 0],
            &[4 << 1 | 1, b'{', b'[', 0],
            &[4 << 1 | 1, b'1', b',', 0],
            &[4 | 2, 0xff, 0],
            &[0xff; 20],
        ];
        for value in bad {
            assert_eq!(json(2, value), Err(ProtocolError::Fields), "{value:?}");
        }
        let long = [&[0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0; 100]].concat();
        assert_eq!(json(2, &long), Err(ProtocolError::Fields));
    }
}
