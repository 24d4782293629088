//! The conversion of Arrow types to types of columns, and back.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use hush_protocol::{
    column_type::{Layout, PlainType, Unit},
    schema::{Column, ColumnType, MAX_DEPTH, NestedType},
};

/// The key of the metadata of a field under which its extension type is stored.
const EXTENSION: &str = "ARROW:extension:name";
const UUID: &str = "arrow.uuid";

/// Returns the type of a column of Arrow, or `any` if a table has no such type.
pub fn column_type(field: &Field) -> ColumnType {
    of_field(field, MAX_DEPTH).unwrap_or(ColumnType::ANY)
}

fn of_field(field: &Field, depth: usize) -> Option<ColumnType> {
    if field.extension_type_name() == Some(UUID) && *field.data_type() == DataType::FixedSizeBinary(16) {
        return Some(PlainType::Uuid.into());
    }
    of_type(field.data_type(), depth)
}

fn of_type(own: &DataType, depth: usize) -> Option<ColumnType> {
    use DataType as T;
    let column = |field: &Field| Some(Column(field.name().clone(), of_field(field, depth.checked_sub(1)?)?));
    let nested = match own {
        T::List(element) => NestedType::List(column(element)?),
        T::LargeList(element) => NestedType::LargeList(column(element)?),
        T::FixedSizeList(element, elements) => {
            NestedType::FixedSizeList((*elements).try_into().ok()?, column(element)?)
        }
        T::Struct(members) => {
            NestedType::Struct(members.iter().map(|member| column(member)).collect::<Option<_>>()?)
        }
        T::Map(entries, _) => {
            let T::Struct(members) = entries.data_type() else { return None };
            let [key, value] = &members[..] else { return None };
            NestedType::Map(column(key)?, column(value)?)
        }
        T::Dictionary(numbers, values) => {
            NestedType::Dictionary(of_plain(numbers)?, of_type(values, depth.checked_sub(1)?)?)
        }
        _ => return of_plain(own).map(ColumnType::Plain),
    };
    Some(ColumnType::Nested(Box::new(nested)))
}

/// The types that have no parameters.
static SAME: [(DataType, PlainType); 21] = [
    (DataType::Null, PlainType::Null),
    (DataType::Boolean, PlainType::Bool),
    (DataType::Int8, PlainType::Int(8)),
    (DataType::Int16, PlainType::Int(16)),
    (DataType::Int32, PlainType::Int(32)),
    (DataType::Int64, PlainType::Int(64)),
    (DataType::UInt8, PlainType::Uint(8)),
    (DataType::UInt16, PlainType::Uint(16)),
    (DataType::UInt32, PlainType::Uint(32)),
    (DataType::UInt64, PlainType::Uint(64)),
    (DataType::Float16, PlainType::Float(16)),
    (DataType::Float32, PlainType::Float(32)),
    (DataType::Float64, PlainType::Float(64)),
    (DataType::Utf8, PlainType::Text(Layout::Short)),
    (DataType::LargeUtf8, PlainType::Text(Layout::Large)),
    (DataType::Utf8View, PlainType::Text(Layout::View)),
    (DataType::Binary, PlainType::Binary(Layout::Short)),
    (DataType::LargeBinary, PlainType::Binary(Layout::Large)),
    (DataType::BinaryView, PlainType::Binary(Layout::View)),
    (DataType::Date32, PlainType::Date(32)),
    (DataType::Date64, PlainType::Date(64)),
];
const UNITS: [(TimeUnit, Unit); 4] = [
    (TimeUnit::Second, Unit::Second),
    (TimeUnit::Millisecond, Unit::Milli),
    (TimeUnit::Microsecond, Unit::Micro),
    (TimeUnit::Nanosecond, Unit::Nano),
];

fn of_plain(own: &DataType) -> Option<PlainType> {
    use DataType as T;
    let decimal = |bits, precision: u8, scale: i8| PlainType::Decimal { bits, precision, scale };
    let unit = |own: TimeUnit| Some(UNITS.into_iter().find(|(arrow, _)| *arrow == own)?.1);
    let own = match own {
        &T::Decimal32(precision, scale) => decimal(32, precision, scale),
        &T::Decimal64(precision, scale) => decimal(64, precision, scale),
        &T::Decimal128(precision, scale) => decimal(128, precision, scale),
        &T::Decimal256(precision, scale) => decimal(256, precision, scale),
        T::FixedSizeBinary(bytes) => PlainType::FixedBinary((*bytes).try_into().ok()?),
        T::Time32(own) | T::Time64(own) => PlainType::Time(unit(*own)?),
        T::Timestamp(own, zone) => {
            PlainType::Timestamp(unit(*own)?, zone.as_ref().map(|zone| zone.to_string()))
        }
        own => return Some(SAME.iter().find(|(arrow, _)| arrow == own)?.1.clone()),
    };
    // The name is parsed again, since a descriptor does not allow every time zone or number of digits.
    own.to_string().parse().ok()
}

/// Returns the Arrow field of a column. A column of type `any` becomes text.
pub fn arrow_field(name: &str, own: &ColumnType) -> Field {
    let field = Field::new(name, data_type(own), true);
    if *own == ColumnType::Plain(PlainType::Uuid) {
        return field.with_metadata(HashMap::from([(EXTENSION.into(), UUID.into())]));
    }
    field
}

fn data_type(own: &ColumnType) -> DataType {
    let nested = match own {
        ColumnType::Plain(own) => return plain(own),
        ColumnType::Nested(nested) => nested,
    };
    let field = |Column(name, own): &Column| Arc::new(arrow_field(name, own));
    match &**nested {
        NestedType::List(element) => DataType::List(field(element)),
        NestedType::LargeList(element) => DataType::LargeList(field(element)),
        NestedType::FixedSizeList(elements, element) => {
            DataType::FixedSizeList(field(element), *elements as i32)
        }
        NestedType::Struct(members) => DataType::Struct(members.iter().map(field).collect()),
        NestedType::Map(Column(name, key), value) => {
            let key = Arc::new(arrow_field(name, key).with_nullable(false));
            let entries = Fields::from(vec![key, field(value)]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        NestedType::Dictionary(numbers, values) => {
            DataType::Dictionary(plain(numbers).into(), data_type(values).into())
        }
    }
}

fn plain(own: &PlainType) -> DataType {
    use DataType as T;
    let unit = |own: Unit| UNITS.into_iter().find(|(_, unit)| *unit == own).expect("every unit").0;
    match own {
        &PlainType::Decimal { bits: 32, precision, scale } => T::Decimal32(precision, scale),
        &PlainType::Decimal { bits: 64, precision, scale } => T::Decimal64(precision, scale),
        &PlainType::Decimal { bits: 128, precision, scale } => T::Decimal128(precision, scale),
        &PlainType::Decimal { precision, scale, .. } => T::Decimal256(precision, scale),
        PlainType::FixedBinary(bytes) => T::FixedSizeBinary(*bytes as i32),
        PlainType::Time(own @ (Unit::Second | Unit::Milli)) => T::Time32(unit(*own)),
        PlainType::Time(own) => T::Time64(unit(*own)),
        PlainType::Timestamp(own, zone) => T::Timestamp(unit(*own), zone.as_deref().map(Arc::from)),
        PlainType::Uuid => T::FixedSizeBinary(16),
        // A value of type `any` is text.
        own => SAME.iter().find(|(_, plain)| plain == own).map_or(T::Utf8, |(arrow, _)| arrow.clone()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::IntervalUnit;

    use super::*;

    #[test]
    fn types_of_arrow_come_back() {
        let item = |own| Arc::new(Field::new("item", own, true));
        let plain = [
            DataType::Null,
            DataType::Boolean,
            DataType::UInt64,
            DataType::Float16,
            DataType::Decimal128(38, 2),
            DataType::Decimal256(76, -2),
            DataType::Utf8View,
            DataType::LargeBinary,
            DataType::FixedSizeBinary(3),
            DataType::Date64,
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
            DataType::Dictionary(DataType::UInt32.into(), DataType::LargeUtf8.into()),
        ];
        let lists = plain.clone().map(|own| DataType::LargeList(item(own)));
        let structs = plain.clone().map(|own| DataType::Struct(vec![item(own)].into()));
        let fixed = plain.clone().map(|own| DataType::FixedSizeList(item(own), 2));
        for own in plain.into_iter().chain(lists).chain(structs).chain(fixed) {
            let field = Field::new("a", own, true);
            assert_eq!(arrow_field("a", &column_type(&field)), field);
        }
        let uuid = arrow_field("id", &PlainType::Uuid.into());
        assert_eq!(column_type(&uuid), PlainType::Uuid.into());
        let map =
            arrow_field("m", &serde_json::from_str(r#"{"map":[["k","string"],["v","int8"]]}"#).unwrap());
        assert_eq!(arrow_field("m", &column_type(&map)), map);
    }

    #[test]
    fn others_are_of_any_type() {
        let zone = DataType::Timestamp(TimeUnit::Second, Some("x".repeat(100).into()));
        for own in [zone, DataType::Interval(IntervalUnit::DayTime)] {
            assert_eq!(column_type(&Field::new("a", own, true)), ColumnType::ANY);
        }
        let deep = (0..=MAX_DEPTH)
            .fold(DataType::Int8, |own, _| DataType::List(Arc::new(Field::new("item", own, true))));
        assert_eq!(column_type(&Field::new("a", deep, true)), ColumnType::ANY);
    }
}
