//! The types of columns of inputs without types, JSONL and SQLite, inferred from all fields of a column.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::Relaxed},
};

use hush_protocol::{
    column_type::{Layout, PlainType},
    schema::{ColumnType, KEY_SEPARATOR},
};

use crate::record::cell::Cell;

/// The kinds of fields, a bit each. This one is a boolean.
const BOOL: u16 = 1;
/// A whole number from 0 to 2^63 - 1.
const NATURAL: u16 = 1 << 1;
const NEGATIVE: u16 = 1 << 2;
/// A whole number from 2^63 to 2^64 - 1.
const LARGE: u16 = 1 << 3;
/// A whole number beyond 2^53, which a float may not represent.
const EXACT: u16 = 1 << 4;
/// Another number, which a float represents without loss.
const FLOAT: u16 = 1 << 5;
const TEXT: u16 = 1 << 6;
const BINARY: u16 = 1 << 7;
/// An array, an object, or a number that no type represents without loss.
const OTHER: u16 = 1 << 8;

/// The number of decimal digits that a float keeps.
const FLOAT_DIGITS: usize = 15;

/// The kinds of fields that every column in use has had so far.
#[derive(Clone, Debug)]
pub(crate) struct Inferred(Arc<[AtomicU16]>);

impl Inferred {
    pub(crate) fn new(columns: usize) -> Self {
        Self((0..columns).map(|_| AtomicU16::new(0)).collect())
    }

    /// Records the kind of a field of a column. A number in a key counts as a float only in the canonical form of its type.
    pub(crate) fn note(&self, column: usize, cell: &Cell<'_>, is_key: bool) {
        let kind = match cell {
            Cell::Null => return,
            Cell::Bool(_) => BOOL,
            Cell::Int(number) => whole(&number.to_string()).unwrap_or(OTHER),
            Cell::Uint(number) => whole(&number.to_string()).unwrap_or(OTHER),
            Cell::Float(_) | Cell::Float32(_) => FLOAT,
            Cell::Text(text) if is_key && text.as_bytes().contains(&KEY_SEPARATOR) => OTHER,
            Cell::Text(_) => TEXT,
            Cell::Binary(_) => BINARY,
            Cell::Json(text) => {
                let is_form = !is_key
                    || PlainType::Float(64).canonical(text.as_bytes()).as_deref() == Some(text.as_bytes());
                whole(text).unwrap_or(if is_float(text) && is_form { FLOAT } else { OTHER })
            }
        };
        let seen = &self.0[column];
        if seen.load(Relaxed) & kind != kind {
            seen.fetch_or(kind, Relaxed);
        }
    }

    /// Returns the type of a column, or `any` if its fields have no common type.
    pub(crate) fn column_type(&self, column: usize) -> ColumnType {
        const INTEGERS: u16 = NATURAL | NEGATIVE | EXACT;
        let seen = self.0[column].load(Relaxed);
        let only = |kinds: u16| seen & !kinds == 0;
        let plain = match seen {
            0 => PlainType::Any,
            BOOL => PlainType::Bool,
            TEXT => PlainType::TEXT,
            BINARY => PlainType::Binary(Layout::Short),
            _ if only(INTEGERS) => PlainType::Int(64),
            _ if only(NATURAL | LARGE | EXACT) => PlainType::Uint(64),
            _ if only(FLOAT | NATURAL | NEGATIVE) => PlainType::Float(64),
            _ => PlainType::Any,
        };
        plain.into()
    }
}

/// Returns the kinds of a whole number in its canonical form.
fn whole(text: &str) -> Option<u16> {
    if let Ok(number) = text.parse::<i64>() {
        let sign = if number < 0 { NEGATIVE } else { NATURAL };
        let exact = if number.unsigned_abs() > 1 << 53 { EXACT } else { 0 };
        return (number.to_string() == text).then_some(sign | exact);
    }
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(LARGE | EXACT)
}

/// Returns whether a float represents a number without loss.
fn is_float(text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let is_short = digits.trim_matches('0').len() <= FLOAT_DIGITS;
    is_number
        && is_short
        && text.parse().is_ok_and(|float: f64| {
            float.is_finite() && (float != 0.0 || digits.trim_matches('0').is_empty())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str], is_key: bool) -> String {
        let own = Inferred::new(1);
        for field in fields {
            let cell = match field.as_bytes()[0] {
                b'"' => Cell::Text(field.trim_matches('"').into()),
                b'n' => Cell::Null,
                b't' => Cell::Bool(true),
                _ => Cell::Json((*field).into()),
            };
            own.note(0, &cell, is_key);
        }
        own.column_type(0).name()
    }

    #[test]
    fn fields_have_their_common_type() {
        for (fields, expected) in [
            (&["null"][..], "any"),
            (&["1", "null", "-5"], "int64"),
            (&["9223372036854775807", "-9223372036854775808"], "int64"),
            (&["9223372036854775808", "1"], "uint64"),
            (&["9223372036854775808", "-1"], "any"),
            (&["18446744073709551616"], "any"),
            (&["1", "1.50", "1e300"], "float64"),
            (&["9007199254740993", "0.5"], "any"),
            (&["0.12345678901234567"], "any"),
            (&["1e400"], "any"),
            (&["1e-400"], "any"),
            (&["-0"], "float64"),
            (&["true", "null"], "bool"),
            (&["true", "1"], "any"),
            (&["\"a\"", "\"\""], "string"),
            (&["\"a\"", "1"], "any"),
            (&["[1]"], "any"),
        ] {
            assert_eq!(of(fields, false), expected, "{fields:?}");
        }
        assert_eq!(of(&["1.50"], true), "any");
        assert_eq!(of(&["1.5"], true), "float64");
        assert_eq!(of(&["\"a\u{1f}b\""], true), "any");
    }
}
