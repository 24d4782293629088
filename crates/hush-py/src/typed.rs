//! Fields of a table as arrays of Arrow, of the types of its columns.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray,
    FixedSizeBinaryArray, FixedSizeListArray, LargeBinaryArray, LargeListArray, LargeStringArray, ListArray,
    MapArray, NullArray, PrimitiveArray, StringArray, StringViewArray, StructArray,
    types::{
        ArrowDictionaryKeyType, ArrowTimestampType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
        Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
        Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
        Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, i256};
use arrow_schema::{ArrowError, DataType};
use base64::{Engine, engine::general_purpose::STANDARD};
use hush_ingest::{arrow_field, days_of, nanos_of, nanos_of_day};
use hush_protocol::{
    column_type::{Layout, PlainType, Unit},
    fields::Field,
    schema::{Column, ColumnType, NestedType},
};
use serde::{
    Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A field that is not null: its text, which of nested ones is JSON, or its bytes.
#[derive(Clone)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Content<'a> {
    /// Creates the content of a field of a record.
    pub(crate) fn of(field: Field<'a>) -> Option<Self> {
        match field {
            Field::Null => None,
            Field::Text(text) | Field::Json(text) => Some(Self::Text(text.into())),
            Field::Binary(bytes) => Some(Self::Bytes(bytes.into())),
        }
    }

    /// Creates the content of a key's column: text if it is UTF-8, else bytes.
    pub(crate) fn of_bytes(bytes: &'a [u8]) -> Self {
        std::str::from_utf8(bytes).map_or(Self::Bytes(bytes.into()), |text| Self::Text(text.into()))
    }

    /// Returns the content of a part of a nested field.
    fn of_json(json: &'a RawValue, own: &ColumnType) -> Option<Option<Self>> {
        let text = json.get();
        Some(match text.as_bytes().first()? {
            b'n' => None,
            b'"' => {
                let text: Cow<'a, str> = serde_json::from_str::<String>(text).ok()?.into();
                match own.plain() {
                    Some(PlainType::Binary(_) | PlainType::FixedBinary(_)) => {
                        Some(Self::Bytes(STANDARD.decode(&*text).ok()?.into()))
                    }
                    _ => Some(Self::Text(text)),
                }
            }
            _ => Some(Self::Text(text.into())),
        })
    }

    /// Returns the content with its own copy of the bytes.
    pub(crate) fn into_owned(self) -> Content<'static> {
        match self {
            Self::Text(text) => Content::Text(text.into_owned().into()),
            Self::Bytes(bytes) => Content::Bytes(bytes.into_owned().into()),
        }
    }

    /// Returns whether it is not text.
    pub(crate) fn is_bytes(&self) -> bool {
        self.text().is_none()
    }

    fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => (&**text).into(),
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Most elements or bytes that the nulls of a column take.
const MAX_NULLS: u64 = 1 << 24;

/// The fields of a column, null where there is none.
type Cells<'a> = [Option<Content<'a>>];

/// Returns an array of a column's type.
///
/// # Errors
/// If a field is not of the type: the table is damaged.
pub(crate) fn array(own: &ColumnType, cells: &Cells<'_>) -> Result<ArrayRef, ArrowError> {
    match own {
        ColumnType::Plain(own) => plain(own, cells),
        ColumnType::Nested(nested) => self::nested(nested, own, cells),
    }
}

fn other(own: &(impl std::fmt::Display + ?Sized)) -> ArrowError {
    ArrowError::ParseError(format!(
        "a field is not of its column's type, which is {own}: the table is damaged"
    ))
}

/// Reads the text of every field with `read`; null stays null.
fn each<T>(
    own: &PlainType,
    cells: &Cells<'_>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Option<T>>, ArrowError> {
    let values = cells.iter().map(|cell| {
        let value = cell.as_ref().map(|cell| cell.text().and_then(&read).ok_or_else(|| other(own)));
        value.transpose()
    });
    values.collect()
}

fn primitive<T: ArrowPrimitiveType>(
    own: &PlainType,
    cells: &Cells<'_>,
    read: impl Fn(&str) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>, ArrowError> {
    Ok(each(own, cells, read)?.into_iter().collect())
}

/// Returns the numbers as Rust reads them.
fn numbers<T: ArrowPrimitiveType<Native: std::str::FromStr>>(
    own: &PlainType,
    cells: &Cells<'_>,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(primitive::<T>(own, cells, |text| text.parse().ok())?))
}

fn plain(own: &PlainType, cells: &Cells<'_>) -> Result<ArrayRef, ArrowError> {
    let texts = || each(own, cells, |text| Some(text.to_owned()));
    let bytes = || cells.iter().map(|cell| cell.as_ref().map(Content::bytes));
    let half = |text: &str| {
        let number: f32 = text.parse().ok()?;
        Some(<Float16Type as ArrowPrimitiveType>::Native::from_f32(number))
    };
    Ok(match own {
        PlainType::Null => Arc::new(NullArray::new(cells.len())),
        PlainType::Bool => Arc::new(BooleanArray::from(each(own, cells, |text| text.parse().ok())?)),
        PlainType::Int(8) => numbers::<Int8Type>(own, cells)?,
        PlainType::Int(16) => numbers::<Int16Type>(own, cells)?,
        PlainType::Int(32) => numbers::<Int32Type>(own, cells)?,
        PlainType::Int(_) => numbers::<Int64Type>(own, cells)?,
        PlainType::Uint(8) => numbers::<UInt8Type>(own, cells)?,
        PlainType::Uint(16) => numbers::<UInt16Type>(own, cells)?,
        PlainType::Uint(32) => numbers::<UInt32Type>(own, cells)?,
        PlainType::Uint(_) => numbers::<UInt64Type>(own, cells)?,
        PlainType::Float(16) => Arc::new(primitive::<Float16Type>(own, cells, half)?),
        PlainType::Float(32) => numbers::<Float32Type>(own, cells)?,
        PlainType::Float(_) => numbers::<Float64Type>(own, cells)?,
        &PlainType::Decimal { bits, precision, scale } => decimals(own, cells, (bits, precision, scale))?,
        // As in JSON.
        PlainType::Any => {
            Arc::new(cells.iter().map(|cell| cell.as_ref().map(Content::shown)).collect::<StringArray>())
        }
        PlainType::Text(Layout::Short) => Arc::new(texts()?.into_iter().collect::<StringArray>()),
        PlainType::Text(Layout::Large) => Arc::new(texts()?.into_iter().collect::<LargeStringArray>()),
        PlainType::Text(Layout::View) => Arc::new(texts()?.into_iter().collect::<StringViewArray>()),
        PlainType::Binary(Layout::Short) => Arc::new(bytes().collect::<BinaryArray>()),
        PlainType::Binary(Layout::Large) => Arc::new(bytes().collect::<LargeBinaryArray>()),
        PlainType::Binary(Layout::View) => Arc::new(bytes().collect::<BinaryViewArray>()),
        PlainType::FixedBinary(length) => {
            check_nulls(cells, *length)?;
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), *length as i32)?)
        }
        PlainType::Uuid => {
            let all = each(own, cells, |text| {
                let digits = text.replace('-', "");
                hex::decode(digits).ok()
            })?;
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(all.into_iter(), 16)?)
        }
        PlainType::Date(32) => {
            Arc::new(primitive::<Date32Type>(own, cells, |text| days_of(text)?.try_into().ok())?)
        }
        PlainType::Date(_) => {
            Arc::new(primitive::<Date64Type>(own, cells, |text| days_of(text)?.checked_mul(86_400_000))?)
        }
        PlainType::Time(unit) => times(own, cells, *unit)?,
        PlainType::Timestamp(unit, zone) => timestamps(own, cells, *unit, zone.as_deref())?,
    })
}

/// Makes decimal numbers of so many bits and digits, of which `scale` are behind the point.
fn decimals(
    own: &PlainType,
    cells: &Cells<'_>,
    (bits, precision, scale): (u16, u8, i8),
) -> Result<ArrayRef, ArrowError> {
    let digits = |text: &str| unscaled(text, scale);
    Ok(match bits {
        32 => {
            let all = primitive::<Decimal32Type>(own, cells, |text| digits(text)?.parse().ok())?;
            Arc::new(all.with_precision_and_scale(precision, scale)?)
        }
        64 => {
            let all = primitive::<Decimal64Type>(own, cells, |text| digits(text)?.parse().ok())?;
            Arc::new(all.with_precision_and_scale(precision, scale)?)
        }
        128 => {
            let all = primitive::<Decimal128Type>(own, cells, |text| digits(text)?.parse().ok())?;
            Arc::new(all.with_precision_and_scale(precision, scale)?)
        }
        _ => {
            let all = primitive::<Decimal256Type>(own, cells, |text| i256::from_string(&digits(text)?))?;
            Arc::new(all.with_precision_and_scale(precision, scale)?)
        }
    })
}

/// Makes times of a day.
fn times(own: &PlainType, cells: &Cells<'_>, unit: Unit) -> Result<ArrayRef, ArrowError> {
    let count = |text: &str| Some(nanos_of_day(text)? / nanos(unit) as i64);
    let short = |text: &str| count(text)?.try_into().ok();
    Ok(match unit {
        Unit::Second => Arc::new(primitive::<Time32SecondType>(own, cells, short)?),
        Unit::Milli => Arc::new(primitive::<Time32MillisecondType>(own, cells, short)?),
        Unit::Micro => Arc::new(primitive::<Time64MicrosecondType>(own, cells, count)?),
        Unit::Nano => Arc::new(primitive::<Time64NanosecondType>(own, cells, count)?),
    })
}

/// Makes timestamps in a time zone, if there is one.
fn timestamps(
    own: &PlainType,
    cells: &Cells<'_>,
    unit: Unit,
    zone: Option<&str>,
) -> Result<ArrayRef, ArrowError> {
    fn of<T: ArrowTimestampType>(
        own: &PlainType,
        cells: &Cells<'_>,
        unit: Unit,
        zone: Option<&str>,
    ) -> Result<ArrayRef, ArrowError> {
        let counts =
            primitive::<T>(own, cells, |text| nanos_of(text)?.div_euclid(nanos(unit)).try_into().ok())?;
        Ok(Arc::new(counts.with_timezone_opt(zone.map(Arc::<str>::from))))
    }
    match unit {
        Unit::Second => of::<TimestampSecondType>(own, cells, unit, zone),
        Unit::Milli => of::<TimestampMillisecondType>(own, cells, unit, zone),
        Unit::Micro => of::<TimestampMicrosecondType>(own, cells, unit, zone),
        Unit::Nano => of::<TimestampNanosecondType>(own, cells, unit, zone),
    }
}

/// Refuses nulls that take too much memory. Arrow has as many elements or bytes for a null as for a value of a fixed size, and the
/// server has named the size.
fn check_nulls(cells: &Cells<'_>, size: u32) -> Result<(), ArrowError> {
    let nulls = cells.iter().filter(|cell| cell.is_none()).count() as u64;
    if nulls * u64::from(size) <= MAX_NULLS {
        return Ok(());
    }
    Err(ArrowError::MemoryError(format!(
        "{nulls} fields of {size} elements or bytes are null, and each takes as much memory as a value: look fewer keys up at a time"
    )))
}

/// Nanoseconds of a unit.
fn nanos(unit: Unit) -> i128 {
    match unit {
        Unit::Second => 1_000_000_000,
        Unit::Milli => 1_000_000,
        Unit::Micro => 1_000,
        Unit::Nano => 1,
    }
}

/// Returns the digits of a decimal number without its point; JSON may have it without zeros at its end.
fn unscaled(text: &str, scale: i8) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let places = usize::from(scale.unsigned_abs());
    if scale < 0 {
        return match whole.len().checked_sub(places) {
            None | Some(0) => Some("0".into()),
            // Of what is no number, the end may lie within a character.
            Some(end) => whole.get(..end).map(str::to_owned),
        };
    }
    (fraction.len() <= places).then(|| format!("{whole}{fraction:0<places$}"))
}

fn nested(nested: &NestedType, own: &ColumnType, cells: &Cells<'_>) -> Result<ArrayRef, ArrowError> {
    let name = own.name();
    let data_type = arrow_field("", own).data_type().clone();
    let nulls = Some(cells.iter().map(Option::is_some).collect::<NullBuffer>());
    Ok(match (nested, &data_type) {
        (NestedType::List(Column(_, element)), DataType::List(field)) => {
            let (lengths, values) = lists(element, cells, &name)?;
            Arc::new(ListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, nulls)?)
        }
        (NestedType::LargeList(Column(_, element)), DataType::LargeList(field)) => {
            let (lengths, values) = lists(element, cells, &name)?;
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(LargeListArray::try_new(field.clone(), offsets, values, nulls)?)
        }
        (NestedType::FixedSizeList(size, Column(_, element)), DataType::FixedSizeList(field, length)) => {
            let field = field.clone();
            let values = fixed_lists(*size, element, cells, &name)?;
            Arc::new(FixedSizeListArray::try_new_with_length(field, *length, values, nulls, cells.len())?)
        }
        (NestedType::Struct(members), DataType::Struct(fields)) => {
            let fields = fields.clone();
            let arrays = structs(members, cells, &name)?;
            Arc::new(StructArray::try_new_with_length(fields, arrays, nulls, cells.len())?)
        }
        (NestedType::Map(Column(_, key), Column(_, value)), DataType::Map(field, sorted)) => {
            let (lengths, [keys, values]) = maps((key, value), cells, &name)?;
            let DataType::Struct(fields) = field.data_type() else { return Err(other(&name)) };
            let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?)
        }
        (NestedType::Dictionary(numbers, values), _) => match numbers {
            PlainType::Int(8) => dictionary::<Int8Type>(values, cells)?,
            PlainType::Int(16) => dictionary::<Int16Type>(values, cells)?,
            PlainType::Int(32) => dictionary::<Int32Type>(values, cells)?,
            PlainType::Int(_) => dictionary::<Int64Type>(values, cells)?,
            PlainType::Uint(8) => dictionary::<UInt8Type>(values, cells)?,
            PlainType::Uint(16) => dictionary::<UInt16Type>(values, cells)?,
            PlainType::Uint(32) => dictionary::<UInt32Type>(values, cells)?,
            _ => dictionary::<UInt64Type>(values, cells)?,
        },
        _ => return Err(other(&name)),
    })
}

/// Reads the elements of a list in JSON.
fn elements<'c>(cell: &'c Content<'_>, name: &str) -> Result<Vec<&'c RawValue>, ArrowError> {
    let text = cell.text().ok_or_else(|| other(name))?;
    serde_json::from_str(text).map_err(|_| other(name))
}

/// Returns the lengths of lists, and all elements.
fn lists(element: &ColumnType, cells: &Cells<'_>, name: &str) -> Result<(Vec<usize>, ArrayRef), ArrowError> {
    let mut lengths = Vec::new();
    let mut all = Vec::new();
    for cell in cells {
        let elements = cell.as_ref().map_or(Ok(Vec::new()), |cell| elements(cell, name))?;
        lengths.push(elements.len());
        for json in elements {
            all.push(Content::of_json(json, element).ok_or_else(|| other(name))?);
        }
    }
    Ok((lengths, array(element, &all)?))
}

/// Returns the elements of lists of `size` elements; those of a null are null.
fn fixed_lists(
    size: u32,
    element: &ColumnType,
    cells: &Cells<'_>,
    name: &str,
) -> Result<ArrayRef, ArrowError> {
    check_nulls(cells, size)?;
    let mut all = Vec::new();
    for cell in cells {
        let Some(cell) = cell else {
            all.extend((0..size).map(|_| None));
            continue;
        };
        let elements = elements(cell, name)?;
        if elements.len() != size as usize {
            return Err(other(name));
        }
        for json in elements {
            all.push(Content::of_json(json, element).ok_or_else(|| other(name))?);
        }
    }
    array(element, &all)
}

/// Returns the members of structs; one that a row lacks is null.
fn structs(members: &[Column], cells: &Cells<'_>, name: &str) -> Result<Vec<ArrayRef>, ArrowError> {
    let rows = rows(cells, name)?;
    let member = |Column(member, own): &Column| {
        let mut cells = Vec::new();
        for row in &rows {
            let found = row.as_ref().and_then(|row| row.0.iter().find(|(name, _)| name == member));
            cells.push(match found {
                None => None,
                Some((_, json)) => {
                    let json: &RawValue = serde_json::from_str(json).map_err(|_| other(name))?;
                    Content::of_json(json, own).ok_or_else(|| other(name))?
                }
            });
        }
        array(own, &cells)
    };
    members.iter().map(member).collect()
}

/// Returns the lengths of maps, all keys and all values.
fn maps(
    (key, value): (&ColumnType, &ColumnType),
    cells: &Cells<'_>,
    name: &str,
) -> Result<(Vec<usize>, [ArrayRef; 2]), ArrowError> {
    let rows = rows(cells, name)?;
    let mut lengths = Vec::new();
    let mut keys = Vec::new();
    let mut values = Vec::new();
    for row in &rows {
        let entries = row.as_ref().map_or(&[][..], |row| &row.0[..]);
        lengths.push(entries.len());
        for (own, json) in entries {
            let quoted = serde_json::value::to_raw_value(own).map_err(|_| other(name))?;
            let content = Content::of_json(&quoted, key).ok_or_else(|| other(name))?;
            keys.push(content.map(Content::into_owned));
            let json: &RawValue = serde_json::from_str(json).map_err(|_| other(name))?;
            values.push(Content::of_json(json, value).ok_or_else(|| other(name))?);
        }
    }
    Ok((lengths, [array(key, &keys)?, array(value, &values)?]))
}

/// Values that are there once, and their numbers.
fn dictionary<K: ArrowDictionaryKeyType>(
    values: &ColumnType,
    cells: &Cells<'_>,
) -> Result<ArrayRef, ArrowError> {
    let mut places = HashMap::new();
    let mut distinct = Vec::new();
    let mut number = |cell: &Content<'_>| {
        let next = distinct.len();
        let place = *places.entry(cell.bytes().to_vec()).or_insert(next);
        if place == next {
            distinct.push(Some(cell.clone().into_owned()));
        }
        K::Native::from_usize(place).ok_or_else(|| other(&"a dictionary of so many values"))
    };
    let keys: PrimitiveArray<K> = cells
        .iter()
        .map(|cell| cell.as_ref().map(&mut number).transpose())
        .collect::<Result<Vec<_>, ArrowError>>()?
        .into_iter()
        .collect();
    Ok(Arc::new(DictionaryArray::try_new(keys, array(values, &distinct)?)?))
}

/// The members of a JSON object in their order, each with its JSON.
struct Members<'a>(Vec<(String, &'a str)>);

/// Returns the members of every field that is not null.
fn rows<'a>(cells: &'a Cells<'_>, name: &str) -> Result<Vec<Option<Members<'a>>>, ArrowError> {
    struct Order;
    impl<'de> Visitor<'de> for Order {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
            let mut members = Vec::new();
            while let Some((name, json)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, json.get()));
            }
            Ok(Members(members))
        }
    }
    let mut all = Vec::new();
    for cell in cells {
        all.push(match cell {
            None => None,
            Some(cell) => {
                let text = cell.text().ok_or_else(|| other(&name))?;
                let mut parser = serde_json::Deserializer::from_str(text);
                Some(parser.deserialize_map(Order).map_err(|_| other(&name))?)
            }
        });
    }
    Ok(all)
}
