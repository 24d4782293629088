//! One column of a Parquet row group: a batch of its values, and their form as cells.

use std::{borrow::Cow, ops::Range, str::Utf8Error};

use hush_protocol::{
    column_type::{Layout, PlainType, Unit},
    schema::ColumnType,
};
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType, FixedLenByteArray, Int96},
    errors::ParquetError,
    schema::types::ColumnDescriptor,
};

use super::{
    calendar::{SecondFraction, date, time, timestamp},
    cell::Cell,
    parquet_pages::Allowance,
};

/// The most decimals of a decimal number; 76 is the most that is in use.
const MAX_DECIMAL_SCALE: usize = 1000;
/// The most bytes of a decimal number that become digits; longer ones stay binary.
const MAX_DECIMAL_BYTES: usize = 512;

/// The most entries of a batch that the pages of a column with lists may have: a value of so many elements would be too long.
const MAX_ENTRIES: usize = 1 << 21;

/// How the stored values of a column are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    meaning: Meaning,
    /// The definition level of a value that is not null.
    max_level: i16,
    /// Whether a row may have many values.
    is_repeated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// As the physical type says.
    Plain,
    Unsigned,
    /// An integer divided by `10^scale`.
    Decimal {
        scale: usize,
    },
    Date,
    Time(SecondFraction),
    Timestamp {
        fraction: SecondFraction,
        utc: bool,
    },
    Text,
    Uuid,
    Float16,
}

impl Kind {
    /// The kind of a column, or in words what it is that has no form as a value.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let meaning = match column.logical_type_ref() {
            Some(logical) => Meaning::of_logical(logical, column)?,
            None => Meaning::of_converted(column)?,
        };
        let is_repeated = column.max_rep_level() > 0;
        Ok(Self { meaning, max_level: column.max_def_level(), is_repeated })
    }
}

/// The type of a column; any, if it is of no type that a table has.
pub(super) fn column_type(column: &ColumnDescriptor) -> ColumnType {
    let kind = Kind::of(column).ok().filter(|kind| !kind.is_repeated);
    let own = kind.and_then(|kind| plain_type(column, kind.meaning));
    // Only what is read back: no number of digits that a descriptor may not have.
    own.and_then(|own| own.to_string().parse().ok()).map_or(ColumnType::ANY, ColumnType::Plain)
}

fn plain_type(column: &ColumnDescriptor, meaning: Meaning) -> Option<PlainType> {
    let unit = |fraction| match fraction {
        SecondFraction::Millis => Unit::Milli,
        SecondFraction::Micros => Unit::Micro,
        SecondFraction::Nanos => Unit::Nano,
    };
    let bits = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(kind)), _) => u8::try_from(kind.bit_width).ok()?,
        (_, ConvertedType::INT_8 | ConvertedType::UINT_8) => 8,
        (_, ConvertedType::INT_16 | ConvertedType::UINT_16) => 16,
        _ if column.physical_type() == Type::INT32 => 32,
        _ => 64,
    };
    Some(match meaning {
        Meaning::Plain => match column.physical_type() {
            Type::BOOLEAN => PlainType::Bool,
            Type::INT32 | Type::INT64 => PlainType::Int(bits),
            Type::FLOAT => PlainType::Float(32),
            Type::DOUBLE => PlainType::Float(64),
            Type::BYTE_ARRAY => PlainType::Binary(Layout::Short),
            Type::FIXED_LEN_BYTE_ARRAY => PlainType::FixedBinary(column.type_length().try_into().ok()?),
            Type::INT96 => return None,
        },
        Meaning::Unsigned => PlainType::Uint(bits),
        Meaning::Decimal { scale } => {
            let (precision, scale) = (column.type_precision().try_into().ok()?, scale.try_into().ok()?);
            PlainType::Decimal { bits: if precision <= 38 { 128 } else { 256 }, precision, scale }
        }
        Meaning::Date => PlainType::Date(32),
        Meaning::Time(fraction) => PlainType::Time(unit(fraction)),
        Meaning::Timestamp { fraction, utc } => {
            PlainType::Timestamp(unit(fraction), utc.then(|| "UTC".into()))
        }
        Meaning::Text => PlainType::TEXT,
        Meaning::Uuid => PlainType::Uuid,
        Meaning::Float16 => PlainType::Float(16),
    })
}

impl Kind {
    /// Whether a row may have many values.
    pub(super) fn is_repeated(&self) -> bool {
        self.is_repeated
    }
}

impl Meaning {
    fn of_logical(logical: &LogicalType, column: &ColumnDescriptor) -> Result<Self, &'static str> {
        Ok(match logical {
            LogicalType::String | LogicalType::Enum | LogicalType::Json => Self::Text,
            LogicalType::Decimal(_) => return Self::decimal(column),
            LogicalType::Date => Self::Date,
            LogicalType::Time(kind) => Self::Time(fraction(kind.unit)),
            LogicalType::Timestamp(kind) => {
                Self::Timestamp { fraction: fraction(kind.unit), utc: kind.is_adjusted_to_u_t_c }
            }
            LogicalType::Integer(kind) if !kind.is_signed => Self::Unsigned,
            LogicalType::Uuid => Self::Uuid,
            LogicalType::Float16 => Self::Float16,
            _ => Self::Plain,
        })
    }

    /// For files written before logical types; their timestamps are in UTC.
    fn of_converted(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let timestamp = |fraction| Self::Timestamp { fraction, utc: true };
        Ok(match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Self::Text,
            ConvertedType::DECIMAL => return Self::decimal(column),
            ConvertedType::DATE => Self::Date,
            ConvertedType::TIME_MILLIS => Self::Time(SecondFraction::Millis),
            ConvertedType::TIME_MICROS => Self::Time(SecondFraction::Micros),
            ConvertedType::TIMESTAMP_MILLIS => timestamp(SecondFraction::Millis),
            ConvertedType::TIMESTAMP_MICROS => timestamp(SecondFraction::Micros),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Self::Unsigned,
            ConvertedType::INTERVAL => return Err("an interval"),
            // The only timestamps of their time; Spark and Impala write them without a zone.
            _ if column.physical_type() == Type::INT96 => {
                Self::Timestamp { fraction: SecondFraction::Nanos, utc: false }
            }
            _ => Self::Plain,
        })
    }

    fn decimal(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        match usize::try_from(column.type_scale()) {
            Ok(scale) if scale <= MAX_DECIMAL_SCALE => Ok(Self::Decimal { scale }),
            _ => Err("a decimal of too many digits"),
        }
    }
}

fn fraction(unit: TimeUnit) -> SecondFraction {
    match unit {
        TimeUnit::MILLIS => SecondFraction::Millis,
        TimeUnit::MICROS => SecondFraction::Micros,
        TimeUnit::NANOS => SecondFraction::Nanos,
    }
}

/// A column reader and the batch that it decoded last. An entry is what has a value or is null: a row, but where there are lists.
pub(super) struct ColumnValues {
    typed: TypedValues,
    kind: Kind,
    allowance: Allowance,
    /// For each entry, how much of its path is there; nothing if all of it always is.
    levels: Vec<i16>,
    /// For each entry, at which list it goes on; nothing without lists.
    repetitions: Vec<i16>,
    /// For each row of the batch, its first entry, and then the number of entries; nothing without lists.
    rows: Vec<usize>,
    /// For each entry of the batch, where its value is; `None` for null.
    positions: Vec<Option<usize>>,
}

enum TypedValues {
    Bool(Typed<parquet::data_type::BoolType>),
    Int32(Typed<parquet::data_type::Int32Type>),
    Int64(Typed<parquet::data_type::Int64Type>),
    Int96(Typed<parquet::data_type::Int96Type>),
    Float(Typed<parquet::data_type::FloatType>),
    Double(Typed<parquet::data_type::DoubleType>),
    Bytes(Typed<parquet::data_type::ByteArrayType>),
    FixedBytes(Typed<parquet::data_type::FixedLenByteArrayType>),
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new() }
    }

    /// Decodes `rows` rows; returns how many there were, and how many values that are not null.
    fn load(
        &mut self,
        rows: usize,
        levels: &mut Vec<i16>,
        repetitions: &mut Vec<i16>,
    ) -> Result<(usize, usize), ParquetError> {
        self.values.clear();
        let (rows, values, _) =
            self.reader.read_records(rows, Some(levels), Some(repetitions), &mut self.values)?;
        Ok((rows, values))
    }
}

impl ColumnValues {
    /// The values of `reader`, whose pages have `allowance`.
    pub(super) fn new(reader: ColumnReader, kind: Kind, allowance: Allowance) -> Result<Self, ParquetError> {
        let typed = match reader {
            ColumnReader::BoolColumnReader(reader) => TypedValues::Bool(Typed::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => TypedValues::Int32(Typed::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => TypedValues::Int64(Typed::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => TypedValues::Int96(Typed::new(reader)),
            ColumnReader::FloatColumnReader(reader) => TypedValues::Float(Typed::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => TypedValues::Double(Typed::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => TypedValues::Bytes(Typed::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                TypedValues::FixedBytes(Typed::new(reader))
            }
        };
        let (levels, repetitions, rows, positions) = Default::default();
        Ok(Self { typed, kind, allowance, levels, repetitions, rows, positions })
    }

    /// Decodes the next `rows` rows.
    pub(super) fn load(&mut self, rows: usize) -> Result<(), ParquetError> {
        let (levels, repetitions) = (&mut self.levels, &mut self.repetitions);
        levels.clear();
        repetitions.clear();
        self.allowance.set(MAX_ENTRIES);
        let (loaded, values) = match &mut self.typed {
            TypedValues::Bool(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Int32(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Int64(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Int96(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Float(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Double(typed) => typed.load(rows, levels, repetitions),
            TypedValues::Bytes(typed) => typed.load(rows, levels, repetitions),
            TypedValues::FixedBytes(typed) => typed.load(rows, levels, repetitions),
        }?;
        let max_level = self.kind.max_level;
        self.positions.clear();
        if max_level == 0 {
            self.positions.extend((0..loaded).map(Some));
        } else {
            let mut next = 0..values;
            let position = |level: &i16| if *level == max_level { next.next() } else { None };
            self.positions.extend(self.levels.iter().map(position));
        }
        let is_whole =
            if self.kind.is_repeated { self.find_rows() == rows } else { self.positions.len() == rows };
        if loaded != rows || !is_whole {
            return Err(ParquetError::General(format!("a column has {loaded} of {rows} rows")));
        }
        Ok(())
    }

    /// Finds the first entry of each row; says how many rows there are.
    fn find_rows(&mut self) -> usize {
        let starts = self.repetitions.iter().enumerate().filter(|&(_, &level)| level == 0);
        self.rows.clear();
        self.rows.extend(starts.map(|(entry, _)| entry));
        let rows = self.rows.len();
        self.rows.push(self.positions.len());
        if self.rows[0] == 0 && self.repetitions.len() == self.positions.len() { rows } else { 0 }
    }

    /// The entries of row `row` of the batch.
    pub(super) fn entries(&self, row: usize) -> Range<usize> {
        if self.kind.is_repeated { self.rows[row]..self.rows[row + 1] } else { row..row + 1 }
    }

    /// The definition and the repetition level of an entry.
    pub(super) fn levels(&self, entry: usize) -> (i16, i16) {
        let level = |levels: &[i16]| levels.get(entry).copied().unwrap_or(0);
        (level(&self.levels), level(&self.repetitions))
    }

    /// The field at entry `at` of the batch; an error if it is text and not UTF-8.
    pub(super) fn cell(&self, at: usize) -> Result<Cell<'_>, Utf8Error> {
        let Some(position) = self.positions[at] else { return Ok(Cell::Null) };
        let meaning = self.kind.meaning;
        match &self.typed {
            TypedValues::Bool(typed) => Ok(Cell::Bool(typed.values[position])),
            TypedValues::Int32(typed) => {
                let value = typed.values[position];
                // The bits of a u32 are stored as an i32.
                let wide =
                    if meaning == Meaning::Unsigned { i64::from(value as u32) } else { i64::from(value) };
                Ok(integer_cell(wide, meaning))
            }
            TypedValues::Int64(typed) => Ok(integer_cell(typed.values[position], meaning)),
            TypedValues::Int96(typed) => Ok(Cell::Text(int96_text(&typed.values[position], meaning).into())),
            TypedValues::Float(typed) => Ok(Cell::Float32(typed.values[position])),
            TypedValues::Double(typed) => Ok(Cell::Float(typed.values[position])),
            TypedValues::Bytes(typed) => bytes_cell(ByteArray::data(&typed.values[position]), meaning),
            TypedValues::FixedBytes(typed) => {
                let value: &FixedLenByteArray = &typed.values[position];
                bytes_cell(value.data(), meaning)
            }
        }
    }
}

fn integer_cell(value: i64, meaning: Meaning) -> Cell<'static> {
    match meaning {
        Meaning::Unsigned => Cell::Uint(value as u64),
        Meaning::Decimal { scale } => Cell::Json(decimal_text(&value.to_be_bytes(), scale).into()),
        Meaning::Date => Cell::Text(date(value).into()),
        Meaning::Time(fraction) => Cell::Text(time(value, fraction).into()),
        Meaning::Timestamp { fraction, utc } => Cell::Text(timestamp(value, fraction, utc).into()),
        _ => Cell::Int(value),
    }
}

/// Nanoseconds of the day in two words, then the Julian day.
fn int96_text(value: &Int96, meaning: Meaning) -> String {
    const JULIAN_DAY_1970: i64 = 2_440_588;
    let [low, high, day] = [value.data()[0], value.data()[1], value.data()[2]];
    let nanos = (u64::from(high) << 32 | u64::from(low)) as i64;
    let zone = if matches!(meaning, Meaning::Timestamp { utc: true, .. }) { "Z" } else { "" };
    format!("{}T{}{zone}", date(i64::from(day) - JULIAN_DAY_1970), time(nanos, SecondFraction::Nanos))
}

fn bytes_cell(bytes: &[u8], meaning: Meaning) -> Result<Cell<'_>, Utf8Error> {
    Ok(match meaning {
        Meaning::Text => Cell::Text(Cow::Borrowed(std::str::from_utf8(bytes)?)),
        Meaning::Decimal { scale } if bytes.len() <= MAX_DECIMAL_BYTES => {
            Cell::Json(decimal_text(bytes, scale).into())
        }
        Meaning::Uuid if bytes.len() == 16 => Cell::Text(uuid_text(bytes).into()),
        Meaning::Float16 if bytes.len() == 2 => {
            Cell::Float32(float16(u16::from_le_bytes([bytes[0], bytes[1]])))
        }
        _ => Cell::Binary(bytes.into()),
    })
}

/// The big-endian two's-complement integer `bytes`, divided by `10^scale`, with `scale` decimals.
fn decimal_text(bytes: &[u8], scale: usize) -> String {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|&byte| byte != 0) || digits.len() <= scale {
        let mut rest = 0;
        for byte in &mut magnitude {
            let part = rest << 8 | u32::from(*byte);
            (*byte, rest) = ((part / 10) as u8, part % 10);
        }
        digits.push(char::from(b'0' + rest as u8));
    }
    if negative {
        digits.push('-');
    }
    let point = digits.len() - scale;
    let text: String = digits.into_iter().rev().collect();
    if scale == 0 { text } else { format!("{}.{}", &text[..point], &text[point..]) }
}

/// `8-4-4-4-12` hexadecimal digits.
pub(super) fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// An IEEE 754 half: 1 bit of sign, 5 of exponent, 10 of mantissa.
fn float16(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let magnitude = match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal_text(&12345i64.to_be_bytes(), 2), "123.45");
        assert_eq!(decimal_text(&(-5i32).to_be_bytes(), 3), "-0.005");
        assert_eq!(decimal_text(&[], 1), "0.0");
        assert_eq!(decimal_text(&[0x80], 0), "-128");
        assert_eq!(decimal_text(&i128::MIN.to_be_bytes(), 0), i128::MIN.to_string());
        assert_eq!(decimal_text(&i128::MAX.to_be_bytes(), 38), "1.70141183460469231731687303715884105727");
        let mut wide = [0u8; 32];
        wide[0] = 0x40;
        assert_eq!(decimal_text(&wide, 0).len(), 77);
    }

    #[test]
    fn halves_are_exact() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
            (0x0400, 6.103_515_6e-5),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(float16(bits), value);
        }
        assert!(float16(0x7e00).is_nan());
    }

    #[test]
    fn int96_is_a_time_of_a_julian_day() {
        let mut value = Int96::new();
        value.set_data(1_000_000_000, 0, 2_440_588 + 19_782);
        let meaning = Meaning::Timestamp { fraction: SecondFraction::Nanos, utc: false };
        assert_eq!(int96_text(&value, meaning), "2024-02-29T00:00:01");
    }
}
