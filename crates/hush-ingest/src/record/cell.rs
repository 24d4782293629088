//! A field of a row, and its two forms: bytes for a key or a single value, JSON among several values.

use std::{borrow::Cow, fmt::Display, io::Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use hush_protocol::fields::{Field, append_float, append_json_string};

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Float32(f32),
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
    /// Text that is JSON already: a number, or a compact array or object.
    Json(Cow<'a, str>),
}

impl Cell<'_> {
    /// Appends the field as bytes: text in UTF-8, numbers in decimal, binary as it is, nothing for null.
    pub(crate) fn append_bytes(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Bool(value) => append(out, value),
            Self::Int(value) => append(out, value),
            Self::Uint(value) => append(out, value),
            Self::Float(value) => append_float(out, *value),
            Self::Float32(value) => append_float(out, *value),
            Self::Text(text) | Self::Json(text) => out.extend_from_slice(text.as_bytes()),
            Self::Binary(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Appends the field as JSON; binary becomes base64, and a float that is not finite a string.
    pub(crate) fn append_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            _ if !self.is_finite() => self.append_quoted(out),
            Self::Text(text) => append_json_string(text, out),
            Self::Binary(bytes) => append_json_string(&STANDARD.encode(bytes), out),
            _ => self.append_bytes(out),
        }
    }

    /// Appends the field as one of several fields of a value.
    pub(crate) fn append_field(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => Field::Null.append(out),
            Self::Text(text) => Field::Text(text).append(out),
            Self::Json(text) => Field::Json(text).append(out),
            Self::Binary(bytes) => Field::Binary(bytes).append(out),
            _ => {
                let mut bytes = Vec::new();
                self.append_bytes(&mut bytes);
                let text = std::str::from_utf8(&bytes).expect("numbers are ASCII");
                if self.is_finite() { Field::Json(text) } else { Field::Text(text) }.append(out);
            }
        }
    }

    /// Returns whether JSON has the number: false for a float that is not finite.
    fn is_finite(&self) -> bool {
        match self {
            Self::Float(value) => value.is_finite(),
            Self::Float32(value) => value.is_finite(),
            _ => true,
        }
    }

    /// Appends the field as the name of a member of a JSON object: its bytes as a string, binary as base64.
    pub(crate) fn append_name(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) | Self::Json(text) => append_json_string(text, out),
            Self::Binary(_) => self.append_json(out),
            _ => self.append_quoted(out),
        }
    }

    fn append_quoted(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        self.append_bytes(out);
        out.push(b'"');
    }
}

/// Appends the JSON in `text` without the white space between its tokens.
pub(crate) fn append_compact_json(text: &str, out: &mut String) {
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if matches!(c, ' ' | '\t' | '\r' | '\n') {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
}

fn append(out: &mut Vec<u8>, value: impl Display) {
    write!(out, "{value}").expect("a Vec takes any bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(cell: Cell) -> String {
        let mut out = Vec::new();
        cell.append_bytes(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn json(cell: Cell) -> String {
        let mut out = Vec::new();
        cell.append_json(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_laid_out_as_in_rfc_8785() {
        // This is the table of RFC 8785 appendix B, except for a tie between two shortest forms.
        let table = [
            (0x0000000000000000, "0"),
            (0x8000000000000000, "0"),
            (0x0000000000000001, "5e-324"),
            (0x8000000000000001, "-5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0xffefffffffffffff, "-1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x44b52d02c7e14af6, "1e+23"),
            (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef4f, "999999999999999900000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x41b3de4355555557, "333333333.33333343"),
            (0xbecbf647612f3696, "-0.0000033333333333333333"),
        ];
        for (bits, text) in table {
            assert_eq!(bytes(Cell::Float(f64::from_bits(bits))), text);
        }
        assert_eq!(bytes(Cell::Float32(0.1)), "0.1");
        assert_eq!(bytes(Cell::Float(f64::NAN)), "NaN");
        assert_eq!(json(Cell::Float(f64::NEG_INFINITY)), "\"-Infinity\"");
        assert_eq!(json(Cell::Float32(f32::INFINITY)), "\"Infinity\"");
        assert_eq!(json(Cell::Float(-1.5)), "-1.5");
    }

    #[test]
    fn json_escapes_text_and_encodes_binary() {
        assert_eq!(json(Cell::Text("a\"\n\u{1f}é".into())), "\"a\\\"\\n\\u001fé\"");
        assert_eq!(json(Cell::Binary((&[0xff, 0, 1][..]).into())), "\"/wAB\"");
        assert_eq!(json(Cell::Null), "null");
        assert_eq!(bytes(Cell::Null), "");
        assert_eq!(json(Cell::Uint(u64::MAX)), "18446744073709551615");
        assert_eq!(json(Cell::Bool(true)), "true");
    }

    #[test]
    fn compact_json_keeps_strings_as_they_are() {
        let mut out = String::new();
        append_compact_json(" { \"a b\\\" \\\\\" : [ 1 ,\t2.50 , \"  \" ] ,\r\n \"é\" : null } ", &mut out);
        assert_eq!(out, r#"{"a b\" \\":[1,2.50,"  "],"é":null}"#);
    }
}
