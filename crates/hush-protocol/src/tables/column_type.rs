//! Types of columns, with Arrow's names, and the canonical text of a field of each type, which serves as its key.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::fields::append_float;

/// The longest name of a time zone, in bytes.
const MAX_ZONE_BYTES: usize = 64;
/// The most bytes of a `fixed_size_binary`, and the most elements of a `fixed_size_list`.
pub(crate) const MAX_FIXED: u32 = 1 << 24;
/// The most digits of a decimal number.
const MAX_PRECISION: u8 = 76;

/// The layout of text or bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Offsets of 32 bits.
    Short,
    /// Offsets of 64 bits.
    Large,
    /// Views.
    View,
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Milli,
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl Unit {
    const ALL: [(Self, &str); 4] =
        [(Self::Second, "s"), (Self::Milli, "ms"), (Self::Micro, "us"), (Self::Nano, "ns")];

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the number of digits of a fraction of a second. A [`Unit::Second`] has 3, as a millisecond does.
    fn digits(self) -> usize {
        [3, 3, 6, 9][self as usize]
    }
}

/// The type of a column whose fields are not composed of other fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum PlainType {
    /// Any JSON value, from an input without types.
    Any,
    /// Nothing but null.
    Null,
    /// A boolean.
    Bool,
    /// A signed integer of 8, 16, 32 or 64 bits.
    Int(u8),
    /// An unsigned integer of 8, 16, 32 or 64 bits.
    Uint(u8),
    /// A floating-point number of 16, 32 or 64 bits.
    Float(u8),
    /// A decimal number.
    Decimal {
        /// The size in bits: 32, 64, 128 or 256.
        bits: u16,
        /// The number of digits.
        precision: u8,
        /// The number of digits behind the decimal point. A negative scale stands for zeros before the point.
        scale: i8,
    },
    /// Text in UTF-8.
    Text(Layout),
    /// Bytes.
    Binary(Layout),
    /// Bytes of a fixed length, which is the number here.
    FixedBinary(u32),
    /// A day, in 32 or 64 bits.
    Date(u8),
    /// A time of the day.
    Time(Unit),
    /// A point in time, and its time zone if the column has one.
    Timestamp(Unit, Option<String>),
    /// A UUID: the extension `arrow.uuid` of 16 bytes.
    Uuid,
}

impl PlainType {
    /// The most common type of text, which has 32-bit offsets.
    pub const TEXT: Self = Self::Text(Layout::Short);

    /// Returns whether the type is an integer.
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_))
    }

    /// Returns the canonical form of `text` as a field of this type, or `None` if `text` is not of this type.
    /// Numbers lose insignificant characters: `+07` becomes `7`. A decimal with two digits behind the point
    /// gets both: `1.5` becomes `1.50`. A fraction of a second that is not 0 has all digits of its unit.
    pub fn canonical<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let as_is = |fits: bool| fits.then_some(Cow::Borrowed(text));
        let written = |text: String| Some(Cow::Owned(text.into_bytes()));
        match self {
            Self::Any | Self::Binary(_) => return as_is(true),
            &Self::FixedBinary(bytes) => return as_is(text.len() == bytes as usize),
            _ => {}
        }
        let plain = std::str::from_utf8(text).ok()?;
        match *self {
            Self::Text(_) => as_is(true),
            Self::Null => as_is(text.is_empty()),
            Self::Bool => as_is(matches!(plain, "true" | "false")),
            Self::Int(bits) => {
                let number: i64 = plain.parse().ok()?;
                let limit = i64::MAX >> (64 - u32::from(bits));
                if (-limit - 1..=limit).contains(&number) { written(number.to_string()) } else { None }
            }
            Self::Uint(bits) => {
                let number: u64 = plain.parse().ok()?;
                if number <= u64::MAX >> (64 - u32::from(bits)) { written(number.to_string()) } else { None }
            }
            Self::Float(bits) => {
                let mut out = Vec::new();
                match bits {
                    64 => append_float(&mut out, plain.parse::<f64>().ok()?),
                    _ => append_float(&mut out, plain.parse::<f32>().ok()?),
                }
                Some(out.into())
            }
            Self::Decimal { precision, scale, .. } => written(decimal(plain, precision, scale)?),
            Self::Date(_) => as_is(is_date(plain)),
            Self::Time(unit) => written(time(plain, unit.digits())?),
            Self::Timestamp(unit, ref zone) => {
                let local = if zone.is_some() { plain.strip_suffix('Z')? } else { plain };
                let (date, clock) = local.split_once('T')?;
                let end = if zone.is_some() { "Z" } else { "" };
                if !is_date(date) {
                    return None;
                }
                written(format!("{date}T{}{end}", time(clock, unit.digits())?))
            }
            Self::Uuid => {
                let lower = plain.to_ascii_lowercase();
                let fits = lower.len() == 36
                    && lower.bytes().enumerate().all(|(at, byte)| match at {
                        8 | 13 | 18 | 23 => byte == b'-',
                        _ => byte.is_ascii_hexdigit(),
                    });
                if fits { written(lower) } else { None }
            }
            Self::Any | Self::Binary(_) | Self::FixedBinary(_) => unreachable!("it is done"),
        }
    }

    /// Returns an example of a field of this type, for an error message.
    pub fn example(&self) -> String {
        match self {
            Self::Any | Self::Text(_) => "text".into(),
            Self::Null => "nothing".into(),
            Self::Bool => "true or false".into(),
            Self::Int(bits) => format!("a whole number of {bits} bits, such as -42"),
            Self::Uint(bits) => format!("a whole number of {bits} bits from 0, such as 42"),
            Self::Float(_) => "a number, such as 0.25".into(),
            Self::Decimal { scale, .. } => {
                format!("a number with at most {} digits behind the point", (*scale).max(0))
            }
            Self::Binary(_) => "bytes".into(),
            Self::FixedBinary(bytes) => format!("{bytes} bytes"),
            Self::Date(_) => "a date, such as 2024-02-29".into(),
            Self::Time(_) => "a time, such as 12:00:00".into(),
            Self::Timestamp(_, None) => "a time, such as 2024-02-29T12:00:00".into(),
            Self::Timestamp(_, Some(_)) => "a time in UTC, such as 2024-02-29T12:00:00Z".into(),
            Self::Uuid => "a UUID, such as 00112233-4455-6677-8899-aabbccddeeff".into(),
        }
    }
}

/// Returns a decimal number with exactly `scale` digits behind the point, or `None` if `text` does not fit.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let places = usize::try_from(scale).unwrap_or(0);
    let zeros = usize::from(scale.min(0).unsigned_abs());
    let is_round = whole.is_empty() || whole.len() - whole.trim_end_matches('0').len() >= zeros;
    if fraction.len() > places || whole.len() + places > usize::from(precision) + zeros || !is_round {
        return None;
    }
    let sign = if whole.is_empty() && fraction.is_empty() { "" } else { sign };
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if places > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{fraction:0<places$}"))
}

/// Returns whether `text` is a date `YYYY-MM-DD`. The year may have a sign and more digits.
fn is_date(text: &str) -> bool {
    // A year before 1 is a leap year if the year without its sign is.
    let mut parts = text.strip_prefix('-').unwrap_or(text).split('-');
    let mut part = |at_least: usize, at_most: usize| {
        let part = parts.next().filter(|part| (at_least..=at_most).contains(&part.len()))?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<i64>().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (part(3, 12), part(2, 2), part(2, 2)) else { return false };
    parts.next().is_none() && (1..=days_in(year, month)).contains(&day)
}

/// Returns the number of days in a month of the proleptic Gregorian calendar; 0 if there is no such month.
fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Returns a time `hh:mm:ss`, with a fraction of `digits` digits unless it is 0. Returns `None` if `text` is no time.
fn time(text: &str, digits: usize) -> Option<String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = seconds.split(':').collect();
    let fraction = fraction.trim_end_matches('0');
    let fits = parts.len() == 3
        && parts.iter().zip([24, 60, 60]).all(|(part, limit): (&&str, u8)| {
            part.len() == 2 && is_digits(part) && part.parse::<u8>().is_ok_and(|number| number < limit)
        });
    if !fits || !is_digits(fraction) || fraction.len() > digits {
        return None;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let digits = if fraction.is_empty() { 0 } else { digits };
    Some(format!("{seconds}{point}{fraction:0<digits$}"))
}

impl fmt::Display for PlainType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::Uint(bits) => write!(f, "uint{bits}"),
            Self::Float(bits) => write!(f, "float{bits}"),
            Self::Decimal { bits, precision, scale } => write!(f, "decimal{bits}[{precision},{scale}]"),
            Self::Text(layout) => f.write_str(["string", "large_string", "string_view"][*layout as usize]),
            Self::Binary(layout) => f.write_str(["binary", "large_binary", "binary_view"][*layout as usize]),
            Self::FixedBinary(bytes) => write!(f, "fixed_size_binary[{bytes}]"),
            Self::Date(bits) => write!(f, "date{bits}"),
            Self::Time(unit) => {
                let bits = if matches!(unit, Unit::Second | Unit::Milli) { 32 } else { 64 };
                write!(f, "time{bits}[{}]", unit.name())
            }
            Self::Timestamp(unit, None) => write!(f, "timestamp[{}]", unit.name()),
            Self::Timestamp(unit, Some(zone)) => write!(f, "timestamp[{},{zone}]", unit.name()),
            Self::Uuid => f.write_str("uuid"),
        }
    }
}

impl From<PlainType> for String {
    fn from(own: PlainType) -> Self {
        own.to_string()
    }
}

impl TryFrom<String> for PlainType {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl FromStr for PlainType {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        parsed(text).ok_or("a column has a type that this program does not know: update this program")
    }
}

fn parsed(text: &str) -> Option<PlainType> {
    let (name, inside) = match text.split_once('[') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
        None => (text, None),
    };
    let Some(inside) = inside else {
        return Some(match name {
            "any" => PlainType::Any,
            "null" => PlainType::Null,
            "bool" => PlainType::Bool,
            "int8" => PlainType::Int(8),
            "int16" => PlainType::Int(16),
            "int32" => PlainType::Int(32),
            "int64" => PlainType::Int(64),
            "uint8" => PlainType::Uint(8),
            "uint16" => PlainType::Uint(16),
            "uint32" => PlainType::Uint(32),
            "uint64" => PlainType::Uint(64),
            "float16" => PlainType::Float(16),
            "float32" => PlainType::Float(32),
            "float64" => PlainType::Float(64),
            "string" => PlainType::Text(Layout::Short),
            "large_string" => PlainType::Text(Layout::Large),
            "string_view" => PlainType::Text(Layout::View),
            "binary" => PlainType::Binary(Layout::Short),
            "large_binary" => PlainType::Binary(Layout::Large),
            "binary_view" => PlainType::Binary(Layout::View),
            "date32" => PlainType::Date(32),
            "date64" => PlainType::Date(64),
            "uuid" => PlainType::Uuid,
            _ => return None,
        });
    };
    let unit = |text: &str| Unit::ALL.iter().find(|(_, name)| *name == text).map(|(unit, _)| *unit);
    match name {
        "decimal32" => decimal_type(inside, 32, 9),
        "decimal64" => decimal_type(inside, 64, 18),
        "decimal128" => decimal_type(inside, 128, 38),
        "decimal256" => decimal_type(inside, 256, MAX_PRECISION),
        "fixed_size_binary" => {
            inside.parse().ok().filter(|&bytes| bytes <= MAX_FIXED).map(PlainType::FixedBinary)
        }
        "time32" => unit(inside).filter(|unit| unit.digits() == 3).map(PlainType::Time),
        "time64" => unit(inside).filter(|unit| unit.digits() > 3).map(PlainType::Time),
        "timestamp" => {
            let (own, zone) =
                inside.split_once(',').map_or((inside, None), |(unit, zone)| (unit, Some(zone)));
            let is_zone =
                |zone: &str| zone.len() <= MAX_ZONE_BYTES && zone.bytes().all(|c| c.is_ascii_graphic());
            if zone.is_some_and(|zone| !is_zone(zone)) {
                return None;
            }
            Some(PlainType::Timestamp(unit(own)?, zone.map(str::to_owned)))
        }
        _ => None,
    }
}

fn decimal_type(inside: &str, bits: u16, most: u8) -> Option<PlainType> {
    let (precision, scale) = inside.split_once(',')?;
    let (precision, scale): (u8, i8) = (precision.parse().ok()?, scale.parse().ok()?);
    let fits = (1..=most).contains(&precision) && scale.unsigned_abs() <= precision;
    fits.then_some(PlainType::Decimal { bits, precision, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in [
            "any",
            "null",
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "decimal32[9,2]",
            "decimal64[18,0]",
            "decimal128[38,38]",
            "decimal256[76,-3]",
            "string",
            "large_string",
            "string_view",
            "binary",
            "large_binary",
            "binary_view",
            "fixed_size_binary[16]",
            "date32",
            "date64",
            "time32[s]",
            "time32[ms]",
            "time64[us]",
            "time64[ns]",
            "timestamp[s]",
            "timestamp[us,Europe/Berlin]",
            "uuid",
        ] {
            assert_eq!(name.parse::<PlainType>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "int7",
            "string[1]",
            "decimal128[39,2]",
            "decimal32[9,10]",
            "decimal128[2]",
            "fixed_size_binary[99999999]",
            "time32[us]",
            "time64[s]",
            "timestamp[us,a b]",
            "timestamp[]",
            "timestamp[us",
            "date32]",
        ] {
            assert!(name.parse::<PlainType>().is_err(), "{name}");
        }
        let long = format!("timestamp[us,{}]", "x".repeat(MAX_ZONE_BYTES + 1));
        assert!(long.parse::<PlainType>().is_err());
    }

    #[test]
    fn keys_have_one_form() {
        for (kind, text, expected) in [
            ("int8", "-128", Some("-128")),
            ("int8", "128", None),
            ("int64", "+007", Some("7")),
            ("int64", "1.0", None),
            ("int64", "", None),
            ("uint8", "255", Some("255")),
            ("uint8", "256", None),
            ("uint8", "-1", None),
            ("uint64", "18446744073709551615", Some("18446744073709551615")),
            ("float64", "1.0", Some("1")),
            ("float64", "0.123456789012345678", Some("0.12345678901234568")),
            ("float32", "0.123456789012345678", Some("0.12345679")),
            ("float32", "0.10", Some("0.1")),
            ("float64", "1e-6", Some("0.000001")),
            ("float64", "-0.00000099", Some("-9.9e-7")),
            ("float64", "inf", Some("Infinity")),
            ("float64", "-inf", Some("-Infinity")),
            ("float64", "-0.0", Some("0")),
            ("float64", "NaN", Some("NaN")),
            ("float64", "one", None),
            ("bool", "true", Some("true")),
            ("bool", "True", None),
            ("decimal128[5,2]", "1.5", Some("1.50")),
            ("decimal128[5,2]", "-0", Some("0.00")),
            ("decimal128[5,2]", "-0.05", Some("-0.05")),
            ("decimal128[5,2]", "123.456", None),
            ("decimal128[5,2]", "1234", None),
            ("decimal128[5,0]", "00123", Some("123")),
            ("decimal128[5,-2]", "12300", Some("12300")),
            ("decimal128[5,-2]", "12310", None),
            ("decimal128[5,2]", ".5", None),
            ("date32", "2024-02-29", Some("2024-02-29")),
            ("date32", "2023-02-29", None),
            ("date32", "1900-02-29", None),
            ("date32", "2000-02-29", Some("2000-02-29")),
            ("date32", "2024-04-31", None),
            ("date32", "2024-13-01", None),
            ("date32", "2024-00-10", None),
            ("date32", "2024-01-00", None),
            ("date32", "-004-02-29", Some("-004-02-29")),
            ("timestamp[ms]", "2024-02-30T12:00:00", None),
            ("timestamp[ms]", "2024-02-29T24:00:00", None),
            ("time32[s]", "12:60:00", None),
            ("time32[s]", "12:00:60", None),
            ("time32[s]", "+1:00:00", None),
            ("time32[s]", "23:59:59", Some("23:59:59")),
            ("date32", "-0044-03-15", Some("-0044-03-15")),
            ("date32", "29.2.2024", None),
            ("time64[us]", "12:00:00.250000", Some("12:00:00.250000")),
            ("time64[us]", "12:00:00.25", Some("12:00:00.250000")),
            ("time64[us]", "12:00:00.000000", Some("12:00:00")),
            ("time64[us]", "12:00:00.0000001", None),
            ("time64[us]", "12:00", None),
            ("timestamp[ms]", "2024-02-29T12:00:00", Some("2024-02-29T12:00:00")),
            ("timestamp[ms]", "2024-02-29T12:00:00Z", None),
            ("timestamp[ms,UTC]", "2024-02-29T12:00:00.250Z", Some("2024-02-29T12:00:00.250Z")),
            ("timestamp[ms,UTC]", "2024-02-29 12:00:00Z", None),
            ("uuid", "00112233-4455-6677-8899-AABBCCDDEEFF", Some("00112233-4455-6677-8899-aabbccddeeff")),
            ("uuid", "00112233445566778899aabbccddeeff", None),
            ("fixed_size_binary[2]", "ab", Some("ab")),
            ("fixed_size_binary[2]", "abc", None),
            ("string", "é", Some("é")),
        ] {
            let own: PlainType = kind.parse().unwrap();
            let found = own.canonical(text.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{kind} {text}");
            assert!(!own.example().is_empty());
        }
        assert_eq!(PlainType::TEXT.canonical(b"\xff"), None);
    }
}
