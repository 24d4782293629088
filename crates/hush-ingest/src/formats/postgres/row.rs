//! A row in the text format of PostgreSQL's COPY (PostgreSQL 17, COPY, "Text Format"), and its fields as cells.

use std::{borrow::Cow, ops::Range};

use hush_protocol::{
    column_type::{Layout, PlainType, Unit},
    schema::ColumnType,
};
use serde_json::value::RawValue;
use tokio_postgres::types::{Kind as TypeKind, Type};

use crate::{formats::json::field_cell, record::cell::Cell};

/// The conversion of the text of a field to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellKind {
    Text,
    Bool,
    /// Decimal digits, or `NaN` or `Infinity`.
    Number,
    Float,
    Float32,
    Binary,
    Json,
    Time,
    Timestamp,
    /// An array or a row, which the server writes as JSON.
    Nested,
}

impl CellKind {
    pub(crate) fn of(own: &Type) -> Self {
        match *own {
            Type::BOOL => Self::Bool,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::NUMERIC => Self::Number,
            Type::FLOAT4 => Self::Float32,
            Type::FLOAT8 => Self::Float,
            Type::BYTEA => Self::Binary,
            Type::JSON | Type::JSONB => Self::Json,
            Type::TIME => Self::Time,
            Type::TIMESTAMP | Type::TIMESTAMPTZ => Self::Timestamp,
            _ if own.oid() == Type::RECORD.oid() => Self::Nested,
            _ => match own.kind() {
                TypeKind::Array(_) | TypeKind::Composite(_) => Self::Nested,
                TypeKind::Domain(base) => Self::of(base),
                _ => Self::Text,
            },
        }
    }
}

/// Returns the type of a column. `modifier` is the type modifier of PostgreSQL, which holds the digits of numbers.
pub(crate) fn column_type(own: &Type, modifier: i32) -> ColumnType {
    let plain = match *own {
        Type::BOOL => PlainType::Bool,
        Type::INT2 => PlainType::Int(16),
        Type::INT4 => PlainType::Int(32),
        Type::INT8 => PlainType::Int(64),
        Type::OID => PlainType::Uint(32),
        Type::FLOAT4 => PlainType::Float(32),
        Type::FLOAT8 => PlainType::Float(64),
        Type::NUMERIC => return decimal(modifier).map_or(ColumnType::ANY, ColumnType::Plain),
        Type::BYTEA => PlainType::Binary(Layout::Short),
        Type::DATE => PlainType::Date(32),
        Type::TIME => PlainType::Time(Unit::Micro),
        Type::TIMESTAMP => PlainType::Timestamp(Unit::Micro, None),
        Type::TIMESTAMPTZ => PlainType::Timestamp(Unit::Micro, Some("UTC".into())),
        Type::UUID => PlainType::Uuid,
        _ => match (own.kind(), CellKind::of(own)) {
            (TypeKind::Domain(base), _) => return column_type(base, modifier),
            (_, CellKind::Text) => PlainType::TEXT,
            _ => PlainType::Any,
        },
    };
    plain.into()
}

/// Returns the type of a `numeric`, if a table has one. The modifier holds precision and scale in one number, plus four.
fn decimal(modifier: i32) -> Option<PlainType> {
    let digits = modifier.checked_sub(4).filter(|digits| *digits >= 0)?;
    let precision = digits >> 16 & 0xffff;
    let scale = ((digits & 0x7ff) ^ 1024) - 1024;
    let bits = if precision <= 38 { 128 } else { 256 };
    format!("decimal{bits}[{precision},{scale}]").parse().ok()
}

/// The reason why a field has no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCell {
    Utf8,
    /// The text is not in the server's form of this type.
    Form,
}

/// The fields of a row.
#[derive(Default)]
pub(crate) struct PostgresRow {
    bytes: Vec<u8>,
    /// The range of each field in `bytes`; `None` is null.
    fields: Vec<Option<Range<usize>>>,
}

impl PostgresRow {
    /// Splits a line into its fields. Returns whether there are `fields` of them.
    pub(crate) fn read(&mut self, line: &[u8], fields: usize) -> bool {
        self.bytes.clear();
        self.fields.clear();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        for field in line.split(|&byte| byte == b'\t') {
            let start = self.bytes.len();
            if field == b"\\N" {
                self.fields.push(None);
                continue;
            }
            let mut escaped = false;
            for &byte in field {
                if escaped {
                    self.bytes.push(match byte {
                        b'b' => 0x08,
                        b'f' => 0x0c,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'v' => 0x0b,
                        byte => byte,
                    });
                    escaped = false;
                } else if byte == b'\\' {
                    escaped = true;
                } else {
                    self.bytes.push(byte);
                }
            }
            self.fields.push(Some(start..self.bytes.len()));
        }
        self.fields.len() == fields
    }

    /// Takes fields as the server writes them, without the escapes of a line.
    pub(crate) fn take<'a>(&mut self, fields: impl IntoIterator<Item = Option<&'a [u8]>>) {
        self.bytes.clear();
        self.fields.clear();
        for field in fields {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(field.unwrap_or_default());
            self.fields.push(field.map(|_| start..self.bytes.len()));
        }
    }

    /// Converts a field to a cell.
    pub(crate) fn cell(&self, field: usize, kind: CellKind) -> Result<Cell<'_>, NoCell> {
        let Some(range) = self.fields[field].clone() else { return Ok(Cell::Null) };
        let bytes = &self.bytes[range];
        let text = std::str::from_utf8(bytes).map_err(|_| NoCell::Utf8)?;
        Ok(match kind {
            CellKind::Text => Cell::Text(text.into()),
            CellKind::Bool => match text {
                "t" => Cell::Bool(true),
                "f" => Cell::Bool(false),
                _ => return Err(NoCell::Form),
            },
            // JSON has neither NaN nor infinity.
            CellKind::Number if matches!(text, "NaN" | "Infinity" | "-Infinity") => Cell::Text(text.into()),
            CellKind::Number => Cell::Json(json(text)?.into()),
            CellKind::Float => Cell::Float(text.parse().map_err(|_| NoCell::Form)?),
            CellKind::Float32 => Cell::Float32(text.parse().map_err(|_| NoCell::Form)?),
            CellKind::Binary => {
                let digits = text.strip_prefix("\\x").ok_or(NoCell::Form)?;
                Cell::Binary(hex::decode(digits).map_err(|_| NoCell::Form)?.into())
            }
            CellKind::Json | CellKind::Nested => field_cell(json(text)?).map_err(|_| NoCell::Form)?,
            CellKind::Time => Cell::Text(micros(text)),
            CellKind::Timestamp => Cell::Text(timestamp(text)),
        })
    }
}

/// Refuses text that is not JSON.
fn json(text: &str) -> Result<&str, NoCell> {
    serde_json::from_str::<&RawValue>(text).map(RawValue::get).map_err(|_| NoCell::Form)
}

/// Returns a time with the six digits of microseconds, as other readers write them, or without a fraction.
fn micros(text: &str) -> Cow<'_, str> {
    const DIGITS: usize = 6;
    let Some((seconds, rest)) = text.split_once('.') else { return text.into() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(end);
    format!("{seconds}.{fraction:0<DIGITS$}{zone}").into()
}

/// Converts a timestamp in the ISO style, `2024-02-29 12:00:00.25+00`; one with a time zone is in UTC. Infinity, and years before
/// Christ, stay as PostgreSQL writes them.
fn timestamp(text: &str) -> Cow<'_, str> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) || text.ends_with("BC") {
        return text.into();
    }
    let (text, zone) = text.strip_suffix("+00").map_or((text, ""), |text| (text, "Z"));
    format!("{}{zone}", micros(&text.replacen(' ', "T", 1))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_apart() {
        let mut row = PostgresRow::default();
        assert!(row.read(b"a\\tb\\\\N\t\\N\t\t\\x\n", 4));
        assert_eq!(row.cell(0, CellKind::Text), Ok(Cell::Text("a\tb\\N".into())));
        assert_eq!(row.cell(1, CellKind::Binary), Ok(Cell::Null));
        assert_eq!(row.cell(2, CellKind::Text), Ok(Cell::Text("".into())));
        assert_eq!(row.cell(3, CellKind::Bool), Err(NoCell::Form));
        assert!(!row.read(b"a\tb\n", 1));
        assert!(row.read(b"\xff\t1e400\t\\\\x0\tyes", 4));
        assert_eq!(row.cell(0, CellKind::Text), Err(NoCell::Utf8));
        for (field, kind) in
            [(2, CellKind::Binary), (3, CellKind::Json), (3, CellKind::Number), (3, CellKind::Float)]
        {
            assert_eq!(row.cell(field, kind), Err(NoCell::Form), "{kind:?}");
        }
    }

    #[test]
    fn numbers_have_their_digits() {
        let name = |own, modifier| column_type(&own, modifier).name();
        assert_eq!(name(Type::NUMERIC, (10 << 16 | 2) + 4), "decimal128[10,2]");
        assert_eq!(name(Type::NUMERIC, (50 << 16) + 4), "decimal256[50,0]");
        assert_eq!(name(Type::NUMERIC, (5 << 16 | (-2 & 0x7ff)) + 4), "decimal128[5,-2]");
        assert_eq!(name(Type::NUMERIC, (100 << 16 | 2) + 4), "any");
        assert_eq!(name(Type::NUMERIC, -1), "any");
        assert_eq!(name(Type::TIMESTAMPTZ, -1), "timestamp[us,UTC]");
        assert_eq!(name(Type::VARCHAR, 24), "string");
        assert_eq!(name(Type::INT4_ARRAY, -1), "any");
    }

    #[test]
    fn times_have_six_digits_or_no_fraction() {
        for (text, expected) in [
            ("2024-02-29 12:00:00", "2024-02-29T12:00:00"),
            ("2024-02-29 12:00:00.25", "2024-02-29T12:00:00.250000"),
            ("2024-02-29 12:00:00.123456+00", "2024-02-29T12:00:00.123456Z"),
            ("12024-02-29 12:00:00+00", "12024-02-29T12:00:00Z"),
            ("infinity", "infinity"),
            ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC"),
        ] {
            assert_eq!(timestamp(text), expected);
        }
        assert_eq!(micros("12:00:00.5"), "12:00:00.500000");
    }
}
