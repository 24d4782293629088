//! The meaning of arrays of a Parquet file, where their Arrow types do not state it.

use std::borrow::Cow;

use arrow_array::{ArrowPrimitiveType, types::Float16Type};

use crate::record::{
    calendar::{SecondFraction, date, time},
    cell::Cell,
};

/// The most bytes of a decimal number that is converted to digits; a longer one stays binary.
const MAX_DECIMAL_BYTES: usize = 512;

/// The reason why a value has no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    OutOfRange,
    BadUtf8,
}

/// The meaning of the values of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A value of the array's Arrow type.
    Typed,
    /// Text in UTF-8.
    Text,
    /// An integer divided by ten to this power.
    Decimal(usize),
    /// Nanoseconds of the day in eight bytes, then the Julian day in four.
    Int96,
    Uuid,
    Float16,
    /// A struct that means what its first field means.
    Inner(Box<Form>),
    /// A struct with fields of these forms.
    Object(Vec<Form>),
    /// A list of elements of this form.
    Array(Box<Form>),
    /// A list of structs, each of a key and a value, or of a key.
    Map(Vec<Form>),
}

impl Form {
    /// Returns the form of a part of a nested array: of a field, or of the elements.
    pub(crate) fn part(&self, number: usize) -> &Self {
        match self {
            Self::Inner(part) | Self::Array(part) => part,
            Self::Object(parts) | Self::Map(parts) => parts.get(number).unwrap_or(&Self::Typed),
            _ => &Self::Typed,
        }
    }

    /// Converts a stored value to what it means.
    ///
    /// # Errors
    /// The value is text that is not UTF-8.
    pub(crate) fn apply<'a>(&self, stored: Cell<'a>) -> Result<Cell<'a>, NoValue> {
        Ok(match (self, stored) {
            (Self::Text, Cell::Binary(Cow::Borrowed(bytes))) => {
                Cell::Text(str::from_utf8(bytes).map_err(|_| NoValue::BadUtf8)?.into())
            }
            (Self::Decimal(scale), Cell::Int(value)) => {
                Cell::Json(decimal_text(&value.to_be_bytes(), *scale).into())
            }
            (Self::Decimal(scale), Cell::Binary(bytes)) if bytes.len() <= MAX_DECIMAL_BYTES => {
                Cell::Json(decimal_text(&bytes, *scale).into())
            }
            (Self::Int96, Cell::Binary(bytes)) => match int96_text(&bytes) {
                Some(text) => Cell::Text(text.into()),
                None => Cell::Binary(bytes),
            },
            (Self::Uuid, Cell::Binary(bytes)) => Cell::Text(uuid_text(&bytes).into()),
            (Self::Float16, Cell::Binary(bytes)) => match bytes[..] {
                [low, high] => Cell::Float32(
                    <Float16Type as ArrowPrimitiveType>::Native::from_le_bytes([low, high]).to_f32(),
                ),
                _ => Cell::Binary(bytes),
            },
            (_, stored) => stored,
        })
    }
}

/// Returns the time of an INT96. Spark and Impala write it without a zone.
fn int96_text(bytes: &[u8]) -> Option<String> {
    const JULIAN_DAY_1970: i64 = 2_440_588;
    let (nanos, day) = bytes.split_first_chunk()?;
    let day = u32::from_le_bytes(day.try_into().ok()?);
    let time = time(i64::from_le_bytes(*nanos), SecondFraction::Nanos);
    Some(format!("{}T{time}", date(i64::from(day) - JULIAN_DAY_1970)))
}

/// Returns the big-endian two's-complement integer `bytes`, divided by `10^scale`, with `scale` decimals.
fn decimal_text(bytes: &[u8], scale: usize) -> String {
    let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; size_of::<i128>()];
    let digits = match wide.len().checked_sub(bytes.len()) {
        Some(start) => {
            wide[start..].copy_from_slice(bytes);
            i128::from_be_bytes(wide).unsigned_abs().to_string()
        }
        None => long_digits(bytes, is_negative),
    };
    let sign = if is_negative { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Returns the digits of an integer of any length, without its sign.
fn long_digits(bytes: &[u8], is_negative: bool) -> String {
    let mut magnitude = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while digits.is_empty() || magnitude.iter().any(|&byte| byte != 0) {
        let mut rest = 0;
        for byte in &mut magnitude {
            let part = rest << 8 | u32::from(*byte);
            (*byte, rest) = ((part / 10) as u8, part % 10);
        }
        digits.push(char::from(b'0' + rest as u8));
    }
    digits.into_iter().rev().collect()
}

/// Returns the bytes of a UUID as `8-4-4-4-12` hexadecimal digits.
pub(crate) fn uuid_text(bytes: &[u8]) -> String {
    let mut text = hex::encode(bytes);
    for hyphen in [20, 16, 12, 8] {
        if hyphen < text.len() {
            text.insert(hyphen, '-');
        }
    }
    text
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
        // 2^254 and its negative.
        let mut wide = [0u8; 32];
        wide[0] = 0x40;
        let text = "28948022309329048855892746252171976963317496166410141009864396001978282409984";
        assert_eq!(decimal_text(&wide, 0), text);
        wide[0] = 0xc0;
        assert_eq!(decimal_text(&wide, 76), format!("-{}.{}", &text[..1], &text[1..]));
        assert_eq!(decimal_text(&[0; 17], 2), "0.00");
    }

    #[test]
    fn halves_are_exact() {
        for (bits, value) in [
            (0x0000u16, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
            (0x0400, 6.103_515_6e-5),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            let stored = Cell::Binary(bits.to_le_bytes().to_vec().into());
            assert_eq!(Form::Float16.apply(stored), Ok(Cell::Float32(value)));
        }
    }

    #[test]
    fn int96_is_a_time_of_a_julian_day() {
        let of = |nanos: i64, day: u32| int96_text(&[&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat());
        assert_eq!(of(1_000_000_000, 2_440_588 + 19_782).unwrap(), "2024-02-29T00:00:01");
        // These years are out of range for nanoseconds since 1970.
        assert_eq!(of(0, 1_721_426).unwrap(), "0001-01-01T00:00:00");
        assert_eq!(of(1, 5_373_484).unwrap(), "9999-12-31T00:00:00.000000001");
        assert_eq!(int96_text(&[0; 11]), None);
    }
}
