//! The rows that a look-up in a sorted table finds in a leaf, and the form in which clients are shown them.

use std::{
    borrow::Cow,
    str::{FromStr, from_utf8},
};

use serde::de::IgnoredAny;
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    RangeForm, Sorted,
    leaf::{append_text, read_text, rows},
    order::{SortOrder, network_text},
};
use crate::{
    ProtocolError,
    column_type::PlainType,
    fields::{Field, append_json_string},
    schema::{Column, ColumnType, Schema},
};

/// The most bytes of rows that a look-up shows.
const MAX_SHOWN_BYTES: usize = 64 << 20;

/// The rows that a look-up in a sorted table finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowMatch {
    /// The value of the row with this key; in a table of ranges, of the range that has this key.
    #[default]
    Exact,
    /// The last row at or before this key.
    AtOrBelow,
    /// The first row at or behind this key.
    AtOrAbove,
    /// The rows whose keys begin with this text, and whether there are more.
    Prefix,
    /// The range that has this key.
    InRange,
}

/// The error for a text that names no [`RowMatch`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected one of: exact, at-or-below, at-or-above, prefix, in-range")]
pub struct UnknownRowMatch;

impl FromStr for RowMatch {
    type Err = UnknownRowMatch;

    fn from_str(name: &str) -> Result<Self, UnknownRowMatch> {
        match name {
            "exact" => Ok(Self::Exact),
            "at-or-below" => Ok(Self::AtOrBelow),
            "at-or-above" => Ok(Self::AtOrAbove),
            "prefix" => Ok(Self::Prefix),
            "in-range" => Ok(Self::InRange),
            _ => Err(UnknownRowMatch),
        }
    }
}

/// A look-up in a sorted table, with the key as it is sorted. The key is wiped when dropped.
#[derive(Clone, Default)]
pub struct SoughtRow {
    by: RowMatch,
    key: Zeroizing<Vec<u8>>,
}

impl SoughtRow {
    /// Returns the key as it is sorted.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns whether clients are shown rows as JSON, in place of a value.
    pub fn is_shown(&self) -> bool {
        self.by != RowMatch::Exact
    }
}

/// A row of a leaf: its key, and its value as the leaf has it.
struct LeafRow<'a> {
    key: Vec<u8>,
    value: &'a [u8],
}

/// The range of a row, and the value behind it.
struct RangeRow<'a> {
    from: Vec<u8>,
    to: Vec<u8>,
    value: &'a [u8],
}

/// Returns the value of a row of a table of ranges, which begins with the range. The key of the row may be within its range.
pub fn range_value(key: &[u8], from: &[u8], to: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_text(&mut out, key, to);
    append_text(&mut out, key, from);
    out.extend_from_slice(value);
    out
}

impl<'a> LeafRow<'a> {
    fn range(&self) -> Result<RangeRow<'a>, ProtocolError> {
        let mut value = self.value;
        let mut read = || read_text(&mut value, &self.key).ok_or(ProtocolError::Fields);
        let to = read()?;
        let from = read()?;
        Ok(RangeRow { from, to, value })
    }
}

impl Sorted {
    /// Refuses a look-up that no table of this order and form has.
    ///
    /// # Errors
    /// [`ProtocolError::NoSuchMatch`].
    pub fn check_match(&self, by: RowMatch) -> Result<(), ProtocolError> {
        let refused = |why| Err(ProtocolError::NoSuchMatch { why });
        match by {
            RowMatch::InRange if self.range.is_none() => refused("the rows of the table are no ranges"),
            RowMatch::Prefix
                if !matches!(self.order, SortOrder::Bytes | SortOrder::Hex) || self.range.is_some() =>
            {
                refused("the keys of the table are no text, so that none is the beginning of another")
            }
            _ => Ok(()),
        }
    }

    /// Returns a look-up of the text `key`. `schema` is the table's.
    ///
    /// # Errors
    /// [`ProtocolError::KeyForm`] if the text is no key of the table's order; the errors of [`Schema::key`].
    pub fn sought(&self, schema: &Schema, by: RowMatch, key: &[u8]) -> Result<SoughtRow, ProtocolError> {
        let key = self.sorted_key(schema, key)?;
        Ok(SoughtRow { by, key })
    }

    /// Returns the bytes by which a key is sorted. Fails with the errors of [`Sorted::sought`].
    pub fn sorted_key(&self, schema: &Schema, key: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProtocolError> {
        let key = match self.order {
            SortOrder::Bytes => Cow::Owned(std::mem::take(&mut *schema.key(&[key])?)),
            _ => Cow::Borrowed(key),
        };
        let form = || ProtocolError::KeyForm {
            column: schema.key.first().map(|Column(name, _)| name.clone()).unwrap_or_default(),
            kind: self.order.name().into(),
            form: self.order.example().into(),
        };
        self.order.encode(&key).ok_or_else(form)
    }

    /// Returns what a look-up finds in its leaf: `None` if there is nothing. The value of a row is as in other tables. Rows
    /// are JSON objects of their columns; those of a prefix are the member `rows` of an object, whose member `more` says whether
    /// there may be further ones. `is_last` is whether no leaf is behind this one.
    ///
    /// # Errors
    /// [`ProtocolError::Fields`] if the leaf is malformed, or shows more than 64 MiB.
    pub fn find(
        &self,
        schema: &Schema,
        leaf: &[u8],
        sought: &SoughtRow,
        is_last: bool,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, ProtocolError> {
        let key = sought.key();
        if sought.by == RowMatch::Prefix {
            return self.rows_of_prefix(schema, leaf, key, is_last);
        }
        let [below, above] = neighbours(leaf, key)?;
        let found = match sought.by {
            RowMatch::AtOrAbove => above,
            RowMatch::Exact if self.range.is_none() => below.filter(|row| row.key == key),
            _ => below,
        };
        let Some(row) = found else { return Ok(None) };
        if self.range.is_some() && matches!(sought.by, RowMatch::Exact | RowMatch::InRange) {
            let range = row.range()?;
            if key > &range.to[..] || key < &range.from[..] {
                return Ok(None);
            }
            if sought.by == RowMatch::Exact {
                return Ok(Some(range.value.to_vec().into()));
            }
        }
        if sought.by == RowMatch::Exact {
            return Ok(Some(row.value.to_vec().into()));
        }
        let mut out = Zeroizing::new(Vec::new());
        self.append_row(schema, &row, &mut out)?;
        Ok(Some(out))
    }

    fn rows_of_prefix(
        &self,
        schema: &Schema,
        leaf: &[u8],
        prefix: &[u8],
        is_last: bool,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, ProtocolError> {
        let mut out = Zeroizing::new(br#"{"rows":["#.to_vec());
        let start = out.len();
        let mut ends_within = false;
        rows(leaf, |key, value| {
            ends_within = key.starts_with(prefix);
            if ends_within {
                if out.len() > start {
                    out.push(b',');
                }
                self.append_row(schema, &LeafRow { key: key.to_vec(), value }, &mut out).ok()?;
            }
            (out.len() <= MAX_SHOWN_BYTES).then_some(())
        })
        .ok_or(ProtocolError::Fields)?;
        let is_empty = out.len() == start;
        let more = ends_within && !is_last;
        out.extend_from_slice(if more { br#"],"more":true}"# } else { br#"],"more":false}"# });
        Ok((!is_empty).then_some(out))
    }

    /// Appends a row as a JSON object of its columns, the key first.
    fn append_row(&self, schema: &Schema, row: &LeafRow<'_>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let [Column(key_name, _)] = &schema.key[..] else { return Err(ProtocolError::Fields) };
        let mut separator = b'{';
        let mut put = |name: &str, field: Field<'_>| {
            out.push(std::mem::replace(&mut separator, b','));
            append_json_string(name, out);
            out.push(b':');
            field.append_json(out);
        };
        let value = match &self.range {
            None => {
                self.put_key(key_name, &row.key, &mut put)?;
                row.value
            }
            Some(form) => {
                let RangeRow { from, to, value } = row.range()?;
                match form {
                    RangeForm::Network => {
                        let network = network_text(&from, &to).ok_or(ProtocolError::Fields)?;
                        put(key_name, Field::Text(&network));
                    }
                    RangeForm::To(to_name) => {
                        self.put_key(key_name, &from, &mut put)?;
                        self.put_key(to_name, &to, &mut put)?;
                    }
                }
                value
            }
        };
        let mut fields = schema.read(value)?;
        if let ([Field::Text(text)], [Column(_, own)]) = (&fields[..], &schema.value[..])
            && is_json(own)
            && serde_json::from_str::<IgnoredAny>(text).is_ok()
        {
            // The only column of a value is text, whatever its type.
            fields = vec![Field::Json(text)];
        }
        schema.value.iter().zip(fields).for_each(|(Column(name, _), field)| put(name, field));
        out.push(b'}');
        Ok(())
    }
}

impl Sorted {
    /// Passes a key to `put` as a field of the column `name`.
    fn put_key(
        &self,
        name: &str,
        key: &[u8],
        put: &mut impl FnMut(&str, Field<'_>),
    ) -> Result<(), ProtocolError> {
        match (self.order, from_utf8(key)) {
            (SortOrder::Bytes, Err(_)) => put(name, Field::Binary(key)),
            (SortOrder::Bytes, Ok(text)) => put(name, Field::Text(text)),
            (order, _) => {
                let text = order.decode(key).ok_or(ProtocolError::Fields)?;
                put(name, if order == SortOrder::Number { Field::Json(&text) } else { Field::Text(&text) });
            }
        }
        Ok(())
    }
}

/// Returns whether fields of this type are JSON other than text.
fn is_json(own: &ColumnType) -> bool {
    use PlainType::{Bool, Decimal, Float, Int, Uint};
    own.plain().is_none_or(|plain| matches!(plain, Bool | Int(_) | Uint(_) | Float(_) | Decimal { .. }))
}

/// Returns the last row at or before a key, and the first at or behind it. All rows are read, whatever the key is.
fn neighbours<'a>(leaf: &'a [u8], key: &[u8]) -> Result<[Option<LeafRow<'a>>; 2], ProtocolError> {
    let (mut below, mut above) = (None, None);
    rows(leaf, |own, value| {
        let row = || LeafRow { key: own.to_vec(), value };
        if own <= key {
            below = Some(row());
        }
        if own >= key && above.is_none() {
            above = Some(row());
        }
        Some(())
    })
    .ok_or(ProtocolError::Fields)?;
    Ok([below, above])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        descriptor::BlobRef,
        sorted::{FenceFile, leaf::LeafWriter},
    };

    fn sorted(order: SortOrder, range: Option<RangeForm>) -> Sorted {
        let fences = FenceFile { blob: BlobRef { blake3: [0; 32], bytes: 0 }, length: 0 };
        Sorted { order, range, rows: 0, overlap: 0, fences, added: None }
    }

    fn schema(key: &str, value: &str) -> Schema {
        serde_json::from_str(&format!(r#"{{"key":[["{key}","string"]],"value":[["{value}","string"]]}}"#))
            .unwrap()
    }

    #[test]
    fn a_match_is_refused_where_no_table_has_it() {
        let names = ["exact", "at-or-below", "at-or-above", "prefix", "in-range"];
        let all = names.map(|name| name.parse::<RowMatch>().unwrap());
        let [exact, .., prefix, in_range] = all;
        assert_eq!((exact, prefix, in_range), (RowMatch::Exact, RowMatch::Prefix, RowMatch::InRange));
        assert_eq!("Exact".parse::<RowMatch>(), Err(UnknownRowMatch));
        assert_eq!(UnknownRowMatch.to_string(), format!("expected one of: {}", names.join(", ")));
        let refused = |order, range| {
            let own = sorted(order, range);
            all.into_iter().filter(|by| own.check_match(*by).is_err()).collect::<Vec<_>>()
        };
        let form = || Some(RangeForm::Network);
        assert_eq!(refused(SortOrder::Bytes, None), [in_range]);
        assert_eq!(refused(SortOrder::Hex, None), [in_range]);
        assert_eq!(refused(SortOrder::Number, None), [prefix, in_range]);
        assert_eq!(refused(SortOrder::Ip, form()), [prefix]);
        assert_eq!(refused(SortOrder::Bytes, form()), [prefix]);
        let shown = all.map(|by| SoughtRow { by, key: Zeroizing::default() }.is_shown());
        assert_eq!(shown, [false, true, true, true, true]);
    }

    #[test]
    fn rows_are_found_and_shown() {
        let own = sorted(SortOrder::Bytes, None);
        let schema = schema("word", "meaning");
        let mut leaf = LeafWriter::default();
        for (key, value) in [("ant", "1"), ("ape", "2"), ("apex", "3"), ("bee", "4")] {
            leaf.push(key.as_bytes(), value.as_bytes());
        }
        let leaf = leaf.finish();
        let find = |by, key: &str, is_last| {
            let sought = own.sought(&schema, by, key.as_bytes()).unwrap();
            let found = own.find(&schema, &leaf, &sought, is_last).unwrap();
            found.map(|found| String::from_utf8(found.to_vec()).unwrap())
        };
        let row = |key: &str, value: &str| Some(format!(r#"{{"word":"{key}","meaning":"{value}"}}"#));
        assert_eq!(find(RowMatch::Exact, "ape", false).as_deref(), Some("2"));
        assert_eq!(find(RowMatch::Exact, "apes", false), None);
        assert_eq!(find(RowMatch::AtOrBelow, "apes", false), row("ape", "2"));
        assert_eq!(find(RowMatch::AtOrAbove, "apes", false), row("apex", "3"));
        assert_eq!(find(RowMatch::AtOrBelow, "ape", false), row("ape", "2"));
        assert_eq!(find(RowMatch::AtOrAbove, "ape", false), row("ape", "2"));
        assert_eq!(find(RowMatch::AtOrBelow, "a", false), None);
        assert_eq!(find(RowMatch::AtOrAbove, "c", false), None);
        let prefix = |rows: &[Option<String>], more| {
            let rows: Vec<_> = rows.iter().flatten().cloned().collect();
            Some(format!(r#"{{"rows":[{}],"more":{more}}}"#, rows.join(",")))
        };
        assert_eq!(find(RowMatch::Prefix, "ap", false), prefix(&[row("ape", "2"), row("apex", "3")], false));
        assert_eq!(find(RowMatch::Prefix, "b", false), prefix(&[row("bee", "4")], true));
        assert_eq!(find(RowMatch::Prefix, "b", true), prefix(&[row("bee", "4")], false));
        assert_eq!(find(RowMatch::Prefix, "c", true), None);
        assert!(own.check_match(RowMatch::InRange).is_err());
        assert!(sorted(SortOrder::Number, None).check_match(RowMatch::Prefix).is_err());
        let sought = own.sought(&schema, RowMatch::Exact, b"a").unwrap();
        assert!(own.find(&schema, b"\x01", &sought, false).is_err());
    }

    #[test]
    fn ranges_are_those_that_have_the_key() {
        for (form, shown) in [
            (RangeForm::Network, r#"{"net":"10.0.0.0/8","who":"x"}"#),
            (RangeForm::To("end".into()), r#"{"net":"10.0.0.0","end":"10.255.255.255","who":"x"}"#),
        ] {
            let own = sorted(SortOrder::Ip, Some(form));
            let schema = schema("net", "who");
            let key = |text: &str| SortOrder::Ip.encode(text.as_bytes()).unwrap();
            let (first, last, resumed) = (key("10.0.0.0"), key("10.255.255.255"), key("10.2.0.0"));
            let mut leaf = LeafWriter::default();
            leaf.push(&resumed, &range_value(&resumed, &first, &last, b"x"));
            let leaf = leaf.finish();
            let find = |by, text: &str| {
                let sought = own.sought(&schema, by, text.as_bytes()).unwrap();
                let found = own.find(&schema, &leaf, &sought, false).unwrap();
                found.map(|found| String::from_utf8(found.to_vec()).unwrap())
            };
            assert_eq!(find(RowMatch::Exact, "10.9.8.7").as_deref(), Some("x"));
            assert_eq!(find(RowMatch::InRange, "10.255.255.255").as_deref(), Some(shown));
            assert_eq!(find(RowMatch::InRange, "11.0.0.0"), None);
            assert_eq!(find(RowMatch::InRange, "9.0.0.0"), None);
            assert_eq!(find(RowMatch::AtOrAbove, "::1"), None);
            let bad = own.sought(&schema, RowMatch::InRange, b"10.0.0").err();
            assert!(matches!(bad, Some(ProtocolError::KeyForm { .. })));
        }
    }
}
