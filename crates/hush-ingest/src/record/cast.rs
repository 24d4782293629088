//! The conversion of records to the columns of another table: the types of changes may differ from those of the table.

use std::borrow::Cow;

use hush_protocol::{
    column_type::PlainType,
    fields::Field,
    schema::{Column, ColumnType, Schema, append_single},
};
use serde::de::IgnoredAny;

/// The error of a field that is invalid for the type of its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCast {
    /// The name of the column.
    pub column: String,
    /// The type of the column, and the form of its fields.
    pub expected: String,
}

/// Converts a value of the columns `from` to the columns `to`, which have the same names in the same order. Nothing is lost.
///
/// # Errors
/// The first field that is invalid for the type of its column.
pub fn cast_value<'a>(value: &'a [u8], from: &Schema, to: &Schema) -> Result<Cow<'a, [u8]>, NotCast> {
    if from.value == to.value {
        return Ok(value.into());
    }
    let fields = from.read(value).expect("the ingest wrote the fields");
    let mut out = Vec::new();
    for ((field, Column(_, own)), Column(name, wanted)) in fields.iter().zip(&from.value).zip(&to.value) {
        let bytes = content(*field, own, wanted).ok_or_else(|| not_cast(name, wanted))?;
        if to.value.len() == 1 {
            append_single((*field != Field::Null).then_some(&bytes), &mut out);
            continue;
        }
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        match (field, wanted.plain()) {
            (Field::Null, _) => Field::Null,
            (_, None | Some(PlainType::Any)) => *field,
            (_, Some(PlainType::Binary(_) | PlainType::FixedBinary(_))) => Field::Binary(&bytes),
            // JSON has neither NaN nor infinity.
            (_, Some(PlainType::Float(_))) if text.ends_with(['N', 'y']) => Field::Text(text),
            (_, Some(plain)) if is_json(plain) => Field::Json(text),
            _ => Field::Text(text),
        }
        .append(&mut out);
    }
    Ok(out.into())
}

fn not_cast(column: &str, wanted: &ColumnType) -> NotCast {
    let example = wanted.plain().map(|plain| format!(": {}", plain.example()));
    let expected = format!("{}{}", wanted.name(), example.unwrap_or_default());
    NotCast { column: column.into(), expected }
}

/// Converts the bytes of a field of the type `own` to the type `wanted`.
fn content<'a>(field: Field<'a>, own: &ColumnType, wanted: &ColumnType) -> Option<Cow<'a, [u8]>> {
    let bytes = match field {
        Field::Null => return Some(Cow::Borrowed(b"")),
        Field::Text(text) | Field::Json(text) => text.as_bytes(),
        Field::Binary(bytes) => bytes,
    };
    let is_binary = |plain: &PlainType| matches!(plain, PlainType::Binary(_) | PlainType::FixedBinary(_));
    match (own.of_fields(), wanted.of_fields()) {
        (own, wanted) if own == wanted => Some(bytes.into()),
        (_, ColumnType::Plain(PlainType::Any)) => Some(bytes.into()),
        (ColumnType::Plain(PlainType::Any), ColumnType::Nested(_)) => {
            // The field of a single column is text, whatever it is.
            let is_nested =
                |text: &str| text.starts_with(['[', '{']) && serde_json::from_str::<IgnoredAny>(text).is_ok();
            matches!(field, Field::Json(text) | Field::Text(text) if is_nested(text)).then_some(bytes.into())
        }
        (ColumnType::Plain(own), ColumnType::Plain(wanted)) => {
            let is_same = matches!(own, PlainType::Any) || is_binary(own) == is_binary(wanted);
            if is_same { wanted.canonical(bytes) } else { None }
        }
        _ => None,
    }
}

/// Returns whether fields of the type are JSON other than strings.
pub(crate) fn is_json(own: &PlainType) -> bool {
    matches!(
        own,
        PlainType::Bool
            | PlainType::Int(_)
            | PlainType::Uint(_)
            | PlainType::Float(_)
            | PlainType::Decimal { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(columns: &[(&str, &str)]) -> Schema {
        let column =
            |(name, own): &(&str, &str)| Column(name.to_string(), own.parse::<PlainType>().unwrap().into());
        Schema { value: columns.iter().map(column).collect(), ..Schema::default() }
    }

    #[test]
    fn text_becomes_what_the_table_has() {
        let from = schema(&[("a", "string"), ("b", "string"), ("c", "any"), ("d", "int8")]);
        let to = schema(&[("a", "int64"), ("b", "decimal128[5,2]"), ("c", "float64"), ("d", "int64")]);
        let value = |fields: [Field<'_>; 4]| {
            let mut out = Vec::new();
            fields.into_iter().for_each(|field| field.append(&mut out));
            out
        };
        let old = value([Field::Text("07"), Field::Text("1.5"), Field::Text("NaN"), Field::Json("-3")]);
        let new = value([Field::Json("7"), Field::Json("1.50"), Field::Text("NaN"), Field::Json("-3")]);
        assert_eq!(cast_value(&old, &from, &to).unwrap(), new);
        let nulls = value([Field::Null; 4]);
        assert_eq!(cast_value(&nulls, &from, &to).unwrap(), nulls);
        let bad = value([Field::Text(""), Field::Text("1.5"), Field::Null, Field::Null]);
        let error = cast_value(&bad, &from, &to).unwrap_err();
        assert_eq!(
            (&error.column[..], &error.expected[..]),
            ("a", "int64: a whole number of 64 bits, such as -42")
        );
    }

    #[test]
    fn a_single_field_keeps_null() {
        let from = schema(&[("a", "string")]);
        let to = schema(&[("a", "uint8")]);
        let value = |field: Option<&[u8]>| {
            let mut out = Vec::new();
            append_single(field, &mut out);
            out
        };
        assert_eq!(cast_value(&value(None), &from, &to).unwrap(), value(None));
        assert_eq!(cast_value(&value(Some(b"255")), &from, &to).unwrap(), &b"255"[..]);
        assert!(cast_value(&value(Some(b"256")), &from, &to).is_err());
        assert!(cast_value(&value(Some(b"1")), &schema(&[("a", "binary")]), &to).is_err());
        assert!(cast_value(&value(Some(b"1")), &from, &schema(&[("a", "binary")])).is_err());
    }
}
