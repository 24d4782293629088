//! The fields of an Arrow schema as columns, with the rules of Parquet. Flat fields and the fields of structs are columns. Lists,
//! maps and whole structs are one value each, as nested JSON.

use std::ops::Range;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, OffsetSizeTrait, StructArray,
    cast::AsArray,
    types::{
        ArrowDictionaryKeyType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
        Decimal256Type, DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
        UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use hush_protocol::fields::append_json_string;

use crate::{
    MAX_KEY_SIZE,
    formats::parquet::form::{Form, NoValue, uuid_text},
    record::{
        calendar::{self, SecondFraction},
        cell::Cell,
    },
};

/// A column of the input.
#[derive(Clone, Debug)]
pub(crate) struct ArrowColumn {
    /// The names on the path to the column, joined by dots.
    pub(crate) name: String,
    /// The number of the field in its schema, then those of the fields of structs below it.
    path: Vec<usize>,
    field: Field,
}

impl ArrowColumn {
    /// Returns the columns of a schema. A struct that `asked` names is also a column as a whole, beside its fields.
    pub(crate) fn all(schema: &Schema, asked: impl Fn(&str) -> bool) -> Vec<Self> {
        let mut all = Vec::new();
        collect(schema.fields(), "", &[], &asked, &mut all);
        all
    }

    /// Returns the number of the field of the schema that is the column or contains it.
    pub(crate) fn top(&self) -> usize {
        self.path[0]
    }

    /// Returns the field.
    pub(crate) fn field(&self) -> &Field {
        &self.field
    }

    /// Checks that the column has a form as a value.
    ///
    /// # Errors
    /// The kind of the column, if it has no such form.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        check(self.field.data_type())
    }

    /// Returns the field of a row of the array at [`ArrowColumn::top`]. A nested field longer than `most` bytes is cut off behind
    /// that length, so it is still too long.
    pub(crate) fn cell<'a>(&self, top: &'a ArrayRef, row: usize, most: usize) -> Result<Cell<'a>, NoValue> {
        let mut array = top.as_ref();
        for &member in &self.path[1..] {
            if array.is_null(row) {
                return Ok(Cell::Null);
            }
            array = array.as_struct().column(member).as_ref();
        }
        let is_uuid = self.field.extension_type_name() == Some("arrow.uuid");
        match cell(array, &Form::Typed, row, most)? {
            Cell::Binary(bytes) if is_uuid && bytes.len() == 16 => Ok(Cell::Text(uuid_text(&bytes).into())),
            cell => Ok(cell),
        }
    }
}

/// Returns the bytes of a field as a column of a key; `None` if it is null.
///
/// # Errors
/// The field is a time out of range or text that is not UTF-8.
pub fn key_field(field: &Field, array: &ArrayRef, row: usize) -> Result<Option<Vec<u8>>, &'static str> {
    let column = ArrowColumn { name: String::new(), path: vec![0], field: field.clone() };
    let cell = column.cell(array, row, MAX_KEY_SIZE).map_err(|reason| match reason {
        NoValue::OutOfRange => "the time is out of range",
        NoValue::BadUtf8 => "not valid UTF-8",
    })?;
    match cell {
        Cell::Null => Ok(None),
        cell => {
            let mut bytes = Vec::new();
            cell.append_bytes(&mut bytes);
            Ok(Some(bytes))
        }
    }
}

fn collect(
    fields: &Fields,
    prefix: &str,
    above: &[usize],
    asked: &impl Fn(&str) -> bool,
    all: &mut Vec<ArrowColumn>,
) {
    for (number, field) in fields.iter().enumerate() {
        let name = format!("{prefix}{}", field.name());
        let path = [above, &[number]].concat();
        let column = || ArrowColumn { name: name.clone(), path: path.clone(), field: field.as_ref().clone() };
        match field.data_type() {
            DataType::Struct(members) => {
                if asked(&name) {
                    all.push(column());
                }
                collect(members, &format!("{name}."), &path, asked, all);
            }
            _ => all.push(column()),
        }
    }
}

fn check(own: &DataType) -> Result<(), &'static str> {
    use DataType as T;
    match own {
        T::Interval(_) => Err("an interval"),
        T::Duration(_) => Err("a duration"),
        T::Union(..) => Err("a union"),
        T::RunEndEncoded(..) => Err("run-end encoded"),
        T::ListView(_) | T::LargeListView(_) => Err("a list view"),
        T::List(element) | T::LargeList(element) | T::FixedSizeList(element, _) | T::Map(element, _) => {
            check(element.data_type())
        }
        T::Struct(members) => members.iter().try_for_each(|member| check(member.data_type())),
        T::Dictionary(_, values) => check(values),
        _ => Ok(()),
    }
}

/// Returns a field of an array of this form. A nested field longer than `most` bytes is cut off behind that length, so it is still
/// too long.
pub(crate) fn cell<'a>(
    array: &'a dyn Array,
    form: &Form,
    row: usize,
    most: usize,
) -> Result<Cell<'a>, NoValue> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    // Most values take this path without a detour.
    if *form == Form::Text
        && let Some(texts) = array.as_binary_view_opt()
    {
        return form.apply(Cell::Binary(texts.value(row).into()));
    }
    match form {
        Form::Inner(inner) => cell(array.as_struct().column(0), inner, row, most),
        Form::Typed | Form::Object(_) | Form::Array(_) | Form::Map(_) => stored(array, form, row, most),
        Form::Text | Form::Decimal(_) | Form::Int96 | Form::Uuid | Form::Float16 => {
            form.apply(stored(array, form, row, most)?)
        }
    }
}

/// Returns a field that is not null, by the type of its array.
fn stored<'a>(array: &'a dyn Array, form: &Form, row: usize, most: usize) -> Result<Cell<'a>, NoValue> {
    use DataType as T;
    Ok(match array.data_type() {
        T::Boolean => Cell::Bool(array.as_boolean().value(row)),
        T::Int8 => Cell::Int(number::<Int8Type>(array, row).into()),
        T::Int16 => Cell::Int(number::<Int16Type>(array, row).into()),
        T::Int32 => Cell::Int(number::<Int32Type>(array, row).into()),
        T::Int64 => Cell::Int(number::<Int64Type>(array, row)),
        T::UInt8 => Cell::Uint(number::<UInt8Type>(array, row).into()),
        T::UInt16 => Cell::Uint(number::<UInt16Type>(array, row).into()),
        T::UInt32 => Cell::Uint(number::<UInt32Type>(array, row).into()),
        T::UInt64 => Cell::Uint(number::<UInt64Type>(array, row)),
        T::Float16 => Cell::Float32(number::<Float16Type>(array, row).to_f32()),
        T::Float32 => Cell::Float32(number::<Float32Type>(array, row)),
        T::Float64 => Cell::Float(number::<Float64Type>(array, row)),
        T::Decimal32(..) => decimal::<Decimal32Type>(array, row),
        T::Decimal64(..) => decimal::<Decimal64Type>(array, row),
        T::Decimal128(..) => decimal::<Decimal128Type>(array, row),
        T::Decimal256(..) => decimal::<Decimal256Type>(array, row),
        T::Utf8 => Cell::Text(array.as_string::<i32>().value(row).into()),
        T::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).into()),
        T::Utf8View => Cell::Text(array.as_string_view().value(row).into()),
        T::Binary => Cell::Binary(array.as_binary::<i32>().value(row).into()),
        T::LargeBinary => Cell::Binary(array.as_binary::<i64>().value(row).into()),
        T::BinaryView => Cell::Binary(array.as_binary_view().value(row).into()),
        T::FixedSizeBinary(_) => Cell::Binary(array.as_fixed_size_binary().value(row).into()),
        T::Date32 => text(calendar::date(number::<Date32Type>(array, row).into())),
        T::Date64 => text(calendar::date(number::<Date64Type>(array, row).div_euclid(86_400_000))),
        T::Time32(TimeUnit::Second) => {
            let seconds: i64 = number::<Time32SecondType>(array, row).into();
            text(calendar::time(1000 * seconds, SecondFraction::Millis))
        }
        T::Time32(_) => {
            text(calendar::time(number::<Time32MillisecondType>(array, row).into(), SecondFraction::Millis))
        }
        T::Time64(TimeUnit::Microsecond) => {
            text(calendar::time(number::<Time64MicrosecondType>(array, row), SecondFraction::Micros))
        }
        T::Time64(_) => {
            text(calendar::time(number::<Time64NanosecondType>(array, row), SecondFraction::Nanos))
        }
        T::Timestamp(unit, zone) => {
            let (count, fraction) = match unit {
                TimeUnit::Second => {
                    let seconds = number::<TimestampSecondType>(array, row);
                    (seconds.checked_mul(1000).ok_or(NoValue::OutOfRange)?, SecondFraction::Millis)
                }
                TimeUnit::Millisecond => {
                    (number::<TimestampMillisecondType>(array, row), SecondFraction::Millis)
                }
                TimeUnit::Microsecond => {
                    (number::<TimestampMicrosecondType>(array, row), SecondFraction::Micros)
                }
                TimeUnit::Nanosecond => {
                    (number::<TimestampNanosecondType>(array, row), SecondFraction::Nanos)
                }
            };
            text(calendar::timestamp(count, fraction, zone.is_some()))
        }
        T::Dictionary(key, _) => match key.as_ref() {
            T::Int8 => in_dictionary::<Int8Type>(array, row, most)?,
            T::Int16 => in_dictionary::<Int16Type>(array, row, most)?,
            T::Int32 => in_dictionary::<Int32Type>(array, row, most)?,
            T::Int64 => in_dictionary::<Int64Type>(array, row, most)?,
            T::UInt8 => in_dictionary::<UInt8Type>(array, row, most)?,
            T::UInt16 => in_dictionary::<UInt16Type>(array, row, most)?,
            T::UInt32 => in_dictionary::<UInt32Type>(array, row, most)?,
            _ => in_dictionary::<UInt64Type>(array, row, most)?,
        },
        T::Null => Cell::Null,
        _ => {
            let mut json = Vec::new();
            append_nested(array, form, row, most, &mut json)?;
            Cell::Json(String::from_utf8_lossy(&json).into_owned().into())
        }
    })
}

fn number<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

fn decimal<T: DecimalType + ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Cell<'_> {
    Cell::Json(array.as_primitive::<T>().value_as_string(row).into())
}

fn text(text: String) -> Cell<'static> {
    Cell::Text(text.into())
}

fn in_dictionary<K: ArrowDictionaryKeyType>(
    array: &dyn Array,
    row: usize,
    most: usize,
) -> Result<Cell<'_>, NoValue> {
    let dictionary: &DictionaryArray<K> = array.as_dictionary();
    match dictionary.key(row) {
        Some(key) => cell(dictionary.values().as_ref(), &Form::Typed, key, most),
        None => Ok(Cell::Null),
    }
}

/// Appends a list, a map or a struct that is not null.
fn append_nested(
    array: &dyn Array,
    form: &Form,
    row: usize,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), NoValue> {
    use DataType as T;
    let (elements, range) = match array.data_type() {
        T::List(_) => {
            let list = array.as_list::<i32>();
            (list.values(), elements_of(list.value_offsets(), row))
        }
        T::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.values(), elements_of(list.value_offsets(), row))
        }
        T::FixedSizeList(_, elements) => {
            let list = array.as_fixed_size_list();
            let first = list.value_offset_at(row);
            (list.values(), first..first + *elements as usize)
        }
        T::Map(..) => {
            let map = array.as_map();
            return append_map(map.entries(), elements_of(map.value_offsets(), row), form, most, out);
        }
        _ => {
            let whole = array.as_struct();
            out.push(b'{');
            for (number, (field, member)) in whole.fields().iter().zip(whole.columns()).enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                append_json_string(field.name(), out);
                out.push(b':');
                append(member, form.part(number), row, most, out)?;
            }
            out.push(b'}');
            return Ok(());
        }
    };
    if let Form::Map(_) = form {
        return append_map(elements.as_struct(), range, form, most, out);
    }
    out.push(b'[');
    for element in range.clone() {
        if out.len() > most {
            break;
        }
        if element > range.start {
            out.push(b',');
        }
        append(elements, form.part(0), element, most, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Returns the range of the elements of a list among those of all lists.
fn elements_of<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Range<usize> {
    offsets[row].as_usize()..offsets[row + 1].as_usize()
}

/// Appends a map of the entries in `range`. An entry is a key and a value, or only a key.
fn append_map(
    entries: &StructArray,
    range: Range<usize>,
    form: &Form,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), NoValue> {
    out.push(b'{');
    for entry in range.clone() {
        if out.len() > most {
            break;
        }
        if entry > range.start {
            out.push(b',');
        }
        cell(entries.column(0), form.part(0), entry, most)?.append_name(out);
        out.push(b':');
        match entries.columns().get(1) {
            Some(values) => append(values, form.part(1), entry, most, out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    Ok(())
}

fn append(array: &dyn Array, form: &Form, row: usize, most: usize, out: &mut Vec<u8>) -> Result<(), NoValue> {
    cell(array, form, row, most)?.append_json(out);
    Ok(())
}
