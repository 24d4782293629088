//! The columns of a table: their names and types, and the keys and values that consist of their fields.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    column_type::{MAX_FIXED, PlainType},
    fields::{Field, to_json},
    keyword::MAX_KEY_BYTES,
    normal_form::NormalForm,
    table::invalid_descriptor,
};

/// The most columns of a table, including columns nested in other columns.
pub const MAX_COLUMNS: usize = 1 << 16;
/// The deepest nesting of types.
pub const MAX_DEPTH: usize = 16;
/// The byte between the columns of a key of several columns (the ASCII unit separator). Neither a field of such a key nor a
/// key that is one text contains it, so different columns never give the same key.
pub const KEY_SEPARATOR: u8 = 0x1f;
/// The value of a single column that is null. UTF-8 text never contains this byte.
const NULL_VALUE: u8 = 0xff;

/// The columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The columns of the key, in order. Empty if records are looked up by position.
    pub key: Vec<Column>,
    /// The columns of the value, in order.
    pub value: Vec<Column>,
    /// The normal form of the key columns that are text.
    #[serde(default, skip_serializing_if = "NormalForm::is_empty")]
    pub normalize: NormalForm,
}

/// A column: its name and its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column(pub String, pub ColumnType);

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnType {
    /// A type that is not composed of others, by its name.
    Plain(PlainType),
    /// A type composed of other types.
    Nested(Box<NestedType>),
}

/// A type composed of other types. A field is a JSON array or object; a field of a dictionary is one of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NestedType {
    /// A list of elements.
    List(Column),
    /// A list with offsets of 64 bits.
    LargeList(Column),
    /// A list with a fixed number of elements.
    FixedSizeList(u32, Column),
    /// Members in a fixed order.
    Struct(Vec<Column>),
    /// A map from the first column to the second.
    Map(Column, Column),
    /// Values that are each stored once: the integer type of their indices, and the type of the values.
    Dictionary(PlainType, ColumnType),
}

impl From<PlainType> for ColumnType {
    fn from(own: PlainType) -> Self {
        Self::Plain(own)
    }
}

impl ColumnType {
    /// Any JSON value, from an input without types.
    pub const ANY: Self = Self::Plain(PlainType::Any);

    /// Returns the type of the fields. For a dictionary, that is the type of its values.
    pub fn of_fields(&self) -> &Self {
        match self {
            Self::Nested(nested) => match &**nested {
                NestedType::Dictionary(_, values) => values.of_fields(),
                _ => self,
            },
            Self::Plain(_) => self,
        }
    }

    /// Returns whether the fields are text.
    pub fn is_text(&self) -> bool {
        self.plain().is_some_and(|own| matches!(own, PlainType::Text(_)))
    }

    /// Returns the type of the fields, or `None` if it is composed of other types.
    pub fn plain(&self) -> Option<&PlainType> {
        match self.of_fields() {
            Self::Plain(own) => Some(own),
            Self::Nested(_) => None,
        }
    }

    /// Returns the name of the type, for an error message.
    pub fn name(&self) -> String {
        match self {
            Self::Plain(own) => own.to_string(),
            Self::Nested(nested) => match &**nested {
                NestedType::List(_) | NestedType::LargeList(_) | NestedType::FixedSizeList(..) => {
                    "list".into()
                }
                NestedType::Struct(_) => "struct".into(),
                NestedType::Map(..) => "map".into(),
                NestedType::Dictionary(_, values) => format!("dictionary of {}", values.name()),
            },
        }
    }

    /// Checks the type and everything nested in it. `depth` levels and `left` columns are still allowed.
    fn check(&self, depth: usize, left: &mut usize) -> Result<(), ProtocolError> {
        let Self::Nested(nested) = self else { return Ok(()) };
        if depth == 0 {
            return Err(invalid_descriptor("the type of a column is nested too deeply"));
        }
        match &**nested {
            NestedType::FixedSizeList(elements, _) if *elements > MAX_FIXED => {
                Err(invalid_descriptor("a column has lists of too many elements"))
            }
            NestedType::Dictionary(numbers, _) if !numbers.is_integer() => {
                Err(invalid_descriptor("a dictionary is numbered by integers"))
            }
            NestedType::Dictionary(_, values) => values.check(depth - 1, left),
            NestedType::List(element)
            | NestedType::LargeList(element)
            | NestedType::FixedSizeList(_, element) => check(std::slice::from_ref(element), depth - 1, left),
            NestedType::Struct(members) => check(members, depth - 1, left),
            NestedType::Map(name, value) => {
                check(std::slice::from_ref(name), depth - 1, left)?;
                check(std::slice::from_ref(value), depth - 1, left)
            }
        }
    }
}

/// Refuses more than `left` columns and more than `depth` levels of nesting. Subtracts the columns from `left`.
fn check(columns: &[Column], depth: usize, left: &mut usize) -> Result<(), ProtocolError> {
    *left = left
        .checked_sub(columns.len())
        .ok_or_else(|| invalid_descriptor("a table has more columns than any has"))?;
    columns.iter().try_for_each(|Column(_, own)| own.check(depth, left))
}

impl Schema {
    /// Checks the schema of a descriptor. `by_key` is whether the table is looked up by key.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if the schema is invalid.
    pub fn check(&self, by_key: bool) -> Result<(), ProtocolError> {
        if by_key == self.key.is_empty() {
            return Err(invalid_descriptor("a table has columns of a key if it is looked up by key"));
        }
        let mut left = MAX_COLUMNS;
        check(&self.key, MAX_DEPTH, &mut left)?;
        check(&self.value, MAX_DEPTH, &mut left)
    }

    /// Returns the columns of the key for an error message: `email (string), year (int64)`.
    pub fn key_text(&self) -> String {
        self.key
            .iter()
            .map(|Column(name, own): &Column| format!("{} ({})", name.escape_debug(), own.name()))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Splits a key into its columns. A key of one column that is not text is returned whole.
    pub fn key_parts<'a>(&self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        // Text never contains the separator. Other bytes may contain it, and are allowed only as the single column of a key.
        match &self.key[..] {
            [Column(_, own)] if !own.is_text() => vec![bytes],
            _ => bytes.split(|&byte| byte == KEY_SEPARATOR).collect(),
        }
    }

    /// Joins columns to a key, each in its canonical and normal form.
    ///
    /// # Errors
    /// [`ProtocolError::KeyColumns`] if the number of columns is wrong. [`ProtocolError::KeyForm`] if a column is not of
    /// its type. [`ProtocolError::KeyTooLong`] if the normal form is too long.
    pub fn key(&self, parts: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        // A key that was already joined is not accepted as a single column.
        let given = if let [whole] = parts { self.key_parts(whole).len() } else { parts.len() };
        if given != self.key.len() || given != parts.len() {
            return Err(ProtocolError::KeyColumns { given, key: self.key_text() });
        }
        let mut columns = Vec::with_capacity(given);
        for (part, Column(name, own)) in parts.iter().zip(&self.key) {
            let form = |form| ProtocolError::KeyForm { column: name.clone(), kind: own.name(), form };
            let part = match own.plain() {
                Some(plain) => plain
                    .canonical(part)
                    .or_else(|| out_of_range(plain, part))
                    .ok_or_else(|| form(plain.example()))?,
                None => Cow::Borrowed(*part),
            };
            let mut part = Zeroizing::new(part.into_owned());
            if own.is_text()
                && !self.normalize.is_empty()
                && let Ok(text) = str::from_utf8(&part)
            {
                part = Zeroizing::new(self.normalize.of(text).as_bytes().to_vec());
            }
            if given > 1 && part.contains(&KEY_SEPARATOR) {
                return Err(form("text without the byte 0x1f".into()));
            }
            columns.push(part);
        }
        // `join` allocates the whole key at once: a growing buffer would leave copies of the secret key in freed memory.
        let columns: Vec<&[u8]> = columns.iter().map(|column| &column[..]).collect();
        let key = Zeroizing::new(columns.join(&KEY_SEPARATOR));
        if key.len() > MAX_KEY_BYTES {
            return Err(ProtocolError::KeyTooLong { actual: key.len(), max: MAX_KEY_BYTES });
        }
        Ok(key)
    }

    /// Returns the value that clients are shown: the bytes of a single field (none for null), or a JSON object of several fields.
    ///
    /// # Errors
    /// [`ProtocolError::Fields`] if the value does not consist of the fields of the columns.
    pub fn readable(&self, value: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let fields = self.read(value)?;
        Ok(match (self.fields(), &fields[..]) {
            (Some(names), fields) => to_json(fields, &names),
            (None, [Field::Text(text)]) => text.as_bytes().to_vec(),
            (None, [Field::Binary(bytes)]) => bytes.to_vec(),
            (None, _) => Vec::new(),
        })
    }

    /// Returns the names of the value's columns if there are several. Such a value is stored as [fields](crate::fields).
    pub fn fields(&self) -> Option<Vec<&str>> {
        (self.value.len() > 1).then(|| self.value.iter().map(|Column(name, _)| &name[..]).collect())
    }

    /// Returns the fields of a value, one for each column. The field of a single column is text or bytes, whatever its type.
    ///
    /// # Errors
    /// [`ProtocolError::Fields`] if the value does not consist of the fields of the columns.
    pub fn read<'a>(&self, mut value: &'a [u8]) -> Result<Vec<Field<'a>>, ProtocolError> {
        match self.value.len() {
            0 => Ok(Vec::new()),
            1 => Ok(vec![single(value)]),
            columns => {
                let fields = (0..columns).map(|_| Field::read(&mut value)).collect::<Option<Vec<_>>>();
                fields.filter(|_| value.is_empty()).ok_or(ProtocolError::Fields)
            }
        }
    }
}

/// Returns an integer that is out of the type's range, in canonical form. Such a key is valid, but no table has it.
fn out_of_range(own: &PlainType, text: &[u8]) -> Option<Cow<'static, [u8]>> {
    let number: i128 = std::str::from_utf8(text).ok()?.parse().ok()?;
    own.is_integer().then(|| Cow::Owned(number.to_string().into_bytes()))
}

/// Decodes the value of a table with one column. [`append_single`] is the inverse.
fn single(value: &[u8]) -> Field<'_> {
    match value {
        [NULL_VALUE] => Field::Null,
        [NULL_VALUE, rest @ ..] if rest.iter().all(|&byte| byte == NULL_VALUE) => Field::Binary(rest),
        _ => std::str::from_utf8(value).map_or(Field::Binary(value), Field::Text),
    }
}

/// Appends the value whose single field is `field`. Null becomes one byte 0xff, and bytes that are all 0xff get one more.
pub fn append_single(field: Option<&[u8]>, out: &mut Vec<u8>) {
    let bytes = field.unwrap_or_default();
    out.extend_from_slice(bytes);
    if field.is_none() || (!bytes.is_empty() && bytes.iter().all(|&byte| byte == NULL_VALUE)) {
        out.push(NULL_VALUE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(json: &str) -> Schema {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn types_are_short_json() {
        let json = r#"{"key":[["id","int64"],["day","date32"]],"value":[["tags",{"list":["item","string"]}],["at",{"struct":[["x","float32"]]}],["kind",{"dictionary":["uint8","string"]}],["all",{"map":[["key","string"],["value","any"]]}],["two",{"fixed_size_list":[2,["item","bool"]]}]]}"#;
        let own = schema(json);
        own.check(true).unwrap();
        assert_eq!(serde_json::to_string(&own).unwrap(), json);
        assert_eq!(own.key_text(), "id (int64), day (date32)");
        assert_eq!(own.value[2].1.plain(), Some(&PlainType::TEXT));
        assert!(own.check(false).is_err() && Schema::default().check(true).is_err());
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let value = |kind: &str| format!(r#"{{"key":[],"value":[["v",{kind}]]}}"#);
        for kind in ["\"int7\"", "{}", "[]", "{\"list\":[]}", "{\"dictionary\":[\"int8\"]}", "7"] {
            assert!(serde_json::from_str::<Schema>(&value(kind)).is_err(), "{kind}");
        }
        let nested =
            |depth: usize| format!("{}\"bool\"{}", r#"{"list":["i","#.repeat(depth), "]}".repeat(depth));
        schema(&value(&nested(MAX_DEPTH))).check(false).unwrap();
        assert!(schema(&value(&nested(MAX_DEPTH + 1))).check(false).is_err());
        for around in [
            r#"{"list":["i",@]}"#,
            r#"{"large_list":["i",@]}"#,
            r#"{"fixed_size_list":[2,["i",@]]}"#,
            r#"{"struct":[["i",@]]}"#,
            r#"{"map":[["k",@],["v","bool"]]}"#,
            r#"{"map":[["k","bool"],["v",@]]}"#,
            r#"{"dictionary":["int8",@]}"#,
        ] {
            let check = |depth| schema(&value(&around.replace('@', &nested(depth - 1)))).check(false);
            check(MAX_DEPTH).unwrap();
            check(MAX_DEPTH + 1).expect_err(around);
        }
        assert!(serde_json::from_str::<Schema>(&value(&nested(10_000))).is_err());
        for kind in
            [r#"{"dictionary":["string","string"]}"#, r#"{"fixed_size_list":[999999999,["i","bool"]]}"#]
        {
            assert!(schema(&value(kind)).check(false).is_err(), "{kind}");
        }
        let members = vec![r#"["m","bool"]"#; MAX_COLUMNS].join(",");
        assert!(schema(&value(&format!(r#"{{"struct":[{members}]}}"#))).check(false).is_err());
    }

    #[test]
    fn keys_have_the_columns_of_the_table() {
        let one = schema(r#"{"key":[["email","string"]],"value":[]}"#);
        assert_eq!(one.key(&one.key_parts(b"a")), Ok(Zeroizing::new(b"a".to_vec())));
        let wrong = ProtocolError::KeyColumns { given: 2, key: "email (string)".into() };
        assert_eq!(one.key(&one.key_parts(b"a\x1fextra")), Err(wrong));
        assert!(matches!(one.key(&[b"a\x1fb"]), Err(ProtocolError::KeyColumns { given: 2, .. })));
        let two = schema(r#"{"key":[["name","string"],["id","int64"]],"value":[]}"#);
        assert_eq!(two.key(&two.key_parts(b"a\x1f07")), Ok(Zeroizing::new(b"a\x1f7".to_vec())));
        assert!(matches!(two.key(&two.key_parts(b"a")), Err(ProtocolError::KeyColumns { given: 1, .. })));
        assert!(matches!(two.key(&two.key_parts(b"a\x1fb")), Err(ProtocolError::KeyForm { .. })));
        assert!(matches!(two.key(&[b"a\x1fb", b"7"]), Err(ProtocolError::KeyForm { .. })));
        let bytes = schema(r#"{"key":[["hash","binary"]],"value":[]}"#);
        assert_eq!(
            bytes.key(&bytes.key_parts(b"\xff\x1f\x00")),
            Ok(Zeroizing::new(b"\xff\x1f\x00".to_vec()))
        );
    }

    #[test]
    fn text_of_keys_is_normalized() {
        let own =
            schema(r#"{"key":[["name","string"],["id","binary"]],"value":[],"normalize":["trim","lower"]}"#);
        own.check(true).unwrap();
        assert_eq!(own.key(&[b" Alice ", b" A "]), Ok(Zeroizing::new(b"alice\x1f A ".to_vec())));
        // Characters of two bytes become three, so only the normal form is too long. A client sends its query even then:
        // the server chooses the normal form, and a missing query would tell it something of the key.
        let one = schema(r#"{"key":[["name","string"]],"value":[],"normalize":["lower"]}"#);
        let long = "\u{130}".repeat(MAX_KEY_BYTES / 2);
        let key = one.key(&[long.as_bytes()]);
        assert_eq!(key, Err(ProtocolError::KeyTooLong { actual: MAX_KEY_BYTES / 2 * 3, max: MAX_KEY_BYTES }));
        let bad = r#"{"key":[["name","string"]],"value":[],"normalize":["rot13"]}"#;
        assert!(
            serde_json::from_str::<Schema>(bad)
                .unwrap_err()
                .to_string()
                .contains("\"rot13\", which this program cannot do")
        );
    }

    #[test]
    fn null_is_not_the_empty_text() {
        let own = schema(r#"{"key":[],"value":[["v","binary"]]}"#);
        for field in [
            None,
            Some(&b""[..]),
            Some(b"a"),
            Some(b"\xff"),
            Some(b"\xff\xff"),
            Some(b"\xffa"),
            Some(b"\x00\xff"),
        ] {
            let mut value = Vec::new();
            append_single(field, &mut value);
            let read = match own.read(&value).unwrap()[..] {
                [Field::Null] => None,
                [Field::Text(text)] => Some(text.as_bytes()),
                [Field::Binary(bytes)] => Some(bytes),
                _ => panic!("one field"),
            };
            assert_eq!(read, field);
        }
    }
}
