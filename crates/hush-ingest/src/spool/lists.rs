//! Tables with many values a key: the values of the rows of one key become one list, or the rows of one prefix one text.

use std::{io::BufWriter, path::Path};

use hush_protocol::{
    column_type::PlainType,
    fields::{Field, to_json},
    schema::{Column, ColumnType, NestedType, Schema},
    wording::Wording,
};
use hush_store::cancel::Cancelled;

use crate::{
    IngestError, Record,
    record::{
        cast::{NotCast, cast_value, is_json},
        projection::shown_key,
    },
    spool::{
        map, new_file, spool_error,
        spooled::{Frame, SpoolPart, SpooledRecords},
    },
};

/// The name of the column of lists, if the rows have several columns of values.
const ROWS: &str = "rows";
/// The name of the elements of a list, which Arrow gives them too.
const ITEM: &str = "item";

/// Returns the columns of a table whose values are the lists of the values of these columns.
fn of_lists(columns: &Schema) -> Schema {
    let (name, item) = match &columns.value[..] {
        [Column(name, own)] => (name.clone(), own.clone()),
        several => (ROWS.into(), ColumnType::Nested(Box::new(NestedType::Struct(several.to_vec())))),
    };
    let list = ColumnType::Nested(Box::new(NestedType::List(Column(ITEM.into(), item))));
    Schema { value: vec![Column(name, list)], ..columns.clone() }
}

/// Returns the columns of the elements of a table's lists, if its lists can be those of the values of rows of `columns`. The types
/// of fields may be others.
pub fn elements_of(table: &Schema, columns: &Schema) -> Option<Schema> {
    let [Column(name, ColumnType::Nested(list))] = &table.value[..] else { return None };
    let NestedType::List(Column(item, own)) = &**list else { return None };
    let value = match (&columns.value[..], own) {
        ([Column(column, given)], own) if column == name && item == ITEM => {
            let is_list =
                matches!(given, ColumnType::Nested(nested) if matches!(**nested, NestedType::List(_)));
            (!is_list).then(|| vec![Column(name.clone(), own.clone())])
        }
        (columns, ColumnType::Nested(members)) if name == ROWS => match &**members {
            NestedType::Struct(members) => {
                let names = |columns: &[Column]| {
                    columns.iter().map(|Column(name, _)| name.clone()).collect::<Vec<_>>()
                };
                (names(columns) == names(members)).then(|| members.clone())
            }
            _ => None,
        },
        _ => None,
    };
    value.map(|value| Schema { value, ..table.clone() })
}

impl SpooledRecords {
    /// Joins the values of each key to a list, in the order of the rows, in files in `dir`. A list is a JSON array of the values as
    /// clients show them. `elements` are the columns to which values are converted first, in place of their own.
    ///
    /// # Errors
    /// [`IngestError::LongList`] if a list has more than `limit` bytes. [`IngestError::Element`] if a field is not of its column in
    /// `elements`. The disk is full or fails. [`IngestError::Cancelled`] if `advance` fails, which is called with the number of
    /// bytes of each list. [`IngestError::Ungroupable`] if rows have no value.
    pub fn lists(
        self,
        dir: &Path,
        limit: usize,
        elements: Option<&Schema>,
        advance: impl Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Self, IngestError> {
        let own = self.columns().cloned().unwrap_or_default();
        let columns = elements.unwrap_or(&own);
        if columns.value.is_empty() {
            return Err(IngestError::Ungroupable {
                why: Wording("a list needs a column of values: choose it with {value}"),
            });
        }
        let append = |list: &mut Vec<u8>, frame: &Frame<'_>| {
            let value = cast_value(frame.value, &own, columns);
            let value = value.map_err(|NotCast { column, expected }| IngestError::Element {
                row: u64::from(frame.row) + 1,
                column,
                expected,
            })?;
            list.push(if list.is_empty() { b'[' } else { b',' });
            append_item(list, &value, columns);
            Ok(())
        };
        let joined = self.joined(dir, limit, append, b"]", advance)?;
        Ok(joined.with_columns(Some(of_lists(columns))))
    }

    /// Joins the rows of each prefix of [`grouped`] records to a text, in the order of the rows, in files in `dir`. Each row is a
    /// line: the rest of the key and, if rows have a value, `:` and the value. A carriage return and a line feed are between lines.
    ///
    /// # Errors
    /// [`IngestError::Ungroupable`] if keys or values have several columns, and [`IngestError::LineBreak`] if a line would be two.
    /// The errors of [`SpooledRecords::lists`].
    pub fn lines(
        self,
        dir: &Path,
        limit: usize,
        advance: impl Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Self, IngestError> {
        let columns = self.columns().cloned().unwrap_or_default();
        if columns.key.len() != 1 || columns.value.len() > 1 {
            let why = "rows need one key column, and one value column at most: choose it with {value}";
            return Err(IngestError::Ungroupable { why: Wording(why) });
        }
        let append = |text: &mut Vec<u8>, frame: &Frame<'_>| {
            let (rest, value) = parts_of(frame.value);
            let start = text.len();
            if !text.is_empty() {
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(rest);
            if !columns.value.is_empty() {
                text.push(b':');
                text.extend(columns.readable(value).expect("the ingest wrote the field"));
            }
            let line = &text[start..];
            match line.strip_prefix(b"\r\n").unwrap_or(line).iter().any(|byte| b"\r\n".contains(byte)) {
                true => Err(IngestError::LineBreak { row: u64::from(frame.row) + 1 }),
                false => Ok(()),
            }
        };
        let joined = self.joined(dir, limit, append, b"", advance)?;
        // The beginning of a number is none, so that the key is text.
        let key =
            columns.key.into_iter().map(|Column(name, _)| Column(name, PlainType::TEXT.into())).collect();
        let value = vec![Column(ROWS.into(), PlainType::TEXT.into())];
        Ok(joined.with_columns(Some(Schema { key, value, normalize: columns.normalize })))
    }

    /// Joins the values of each key: `append` appends each, and `end` follows the last.
    fn joined(
        &self,
        dir: &Path,
        limit: usize,
        append: impl Fn(&mut Vec<u8>, &Frame<'_>) -> Result<(), IngestError>,
        end: &[u8],
        advance: impl Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Self, IngestError> {
        let failed = |source| spool_error(dir, source);
        let mut parts = Vec::new();
        for part in self.parts() {
            let mut file = BufWriter::with_capacity(1 << 20, new_file(dir)?);
            let (mut offsets, mut bytes) = (Vec::new(), 0);
            let mut frames = part.frames().peekable();
            while let Some(first) = frames.next() {
                let mut value = Vec::new();
                append(&mut value, &first)?;
                let mut rows = 1u64;
                while value.len() <= limit
                    && let Some(next) = frames.next_if(|next| next.key == first.key)
                {
                    append(&mut value, &next)?;
                    rows += 1;
                }
                value.extend_from_slice(end);
                if value.len() > limit {
                    let (key, limit) = (shown_key(first.key), limit as u64);
                    return Err(IngestError::LongList { key, rows, limit });
                }
                let list = Frame { value: &value, ..first };
                list.write(&mut file).map_err(failed)?;
                offsets.push(bytes);
                bytes += list.bytes() as u64;
                advance(value.len() as u64).map_err(IngestError::Cancelled)?;
            }
            part.release();
            let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
            parts.push(SpoolPart::new(map(&file).map_err(failed)?, offsets));
        }
        Ok(self.with_parts(parts))
    }
}

/// Returns a record whose key is the first `characters` of its key. Its value has the rest of it, for [`SpooledRecords::lines`].
///
/// # Errors
/// [`IngestError::ShortKey`] if the key of this `row` is no longer than that.
pub fn grouped(record: Record, characters: usize, row: u64) -> Result<Record, IngestError> {
    let key = record.key.unwrap_or_default();
    let at = match str::from_utf8(&key) {
        Ok(text) => text.char_indices().nth(characters).map(|(at, _)| at),
        Err(_) => (key.len() > characters).then_some(characters),
    };
    let Some((prefix, rest)) = at.map(|at| key.split_at(at)) else {
        return Err(IngestError::ShortKey { row, key: shown_key(&key), characters });
    };
    let value = [&(rest.len() as u16).to_le_bytes(), rest, &record.value].concat();
    Ok(Record { key: Some(prefix.to_vec()), value })
}

/// Returns the rest of the key, and the value of a row.
fn parts_of(value: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = value.split_first_chunk().expect("a record that was grouped");
    rest.split_at(usize::from(u16::from_le_bytes(*length)))
}

/// Appends a value as an element of a list.
fn append_item(list: &mut Vec<u8>, value: &[u8], columns: &Schema) {
    let fields = columns.read(value).expect("the ingest wrote the fields");
    match (columns.fields(), &columns.value[..], &fields[..]) {
        (None, [Column(_, own)], [field]) => typed(*field, own).append_json(list),
        (names, ..) => list.extend(to_json(&fields, &names.unwrap_or_default())),
    }
}

/// Returns the field of a single column, which is text or bytes, in the kind that it has among others.
fn typed<'a>(field: Field<'a>, own: &ColumnType) -> Field<'a> {
    let Field::Text(text) = field else { return field };
    let is_json = match own.plain() {
        None => true,
        Some(PlainType::Any) => {
            serde_json::from_str(text).is_ok_and(|json: serde_json::Value| !json.is_string())
        }
        Some(PlainType::Binary(_) | PlainType::FixedBinary(_)) => return Field::Binary(text.as_bytes()),
        // JSON has neither NaN nor infinity.
        Some(plain) => is_json(plain) && !text.ends_with(['N', 'y']),
    };
    if is_json { Field::Json(text) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnDuplicate, Record, Spool};

    fn schema(json: &str) -> Schema {
        serde_json::from_str(json).unwrap()
    }

    /// Spools records of these columns, and returns the lists of their keys.
    fn lists(
        columns: &Schema,
        elements: Option<&Schema>,
        records: &[(&str, Vec<u8>)],
        limit: usize,
    ) -> Result<(Schema, Vec<(String, String)>), IngestError> {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path()).unwrap();
        for (key, value) in records {
            spool.push(&Record { key: Some((*key).into()), value: value.clone() }).unwrap();
        }
        let records = spool.finish(OnDuplicate::All).unwrap().with_columns(Some(columns.clone()));
        let records = records.lists(folder.path(), limit, elements, |_| Ok(()))?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let all = (0..records.len()).map(|index| records.record(index));
        let all = all.map(|(key, value)| (text(key), text(value))).collect();
        Ok((records.columns().unwrap().clone(), all))
    }

    #[test]
    fn values_of_one_column_keep_their_types() {
        for (own, values, expected) in [
            ("\"string\"", &[&b"1"[..], b"a\"", b"\xff"][..], r#"["1","a\"",null]"#),
            ("\"int8\"", &[b"1", b"-2"], "[1,-2]"),
            ("\"float64\"", &[b"0.5", b"NaN"], r#"[0.5,"NaN"]"#),
            ("\"any\"", &[b"1", b"x", b"{}", b"\"q\""], r#"[1,"x",{},"\"q\""]"#),
            ("\"binary\"", &[b"ab", b"\xff\x00"], r#"["YWI=","/wA="]"#),
            (r#"{"list":["item","int8"]}"#, &[b"[1]", b"[]"], "[[1],[]]"),
        ] {
            let columns = schema(&format!(r#"{{"key":[["k","string"]],"value":[["v",{own}]]}}"#));
            let records: Vec<_> = values.iter().map(|value| ("k", value.to_vec())).collect();
            let (table, all) = lists(&columns, None, &records, 99).unwrap();
            assert_eq!(all, [("k".into(), expected.into())], "{own}");
            assert_eq!(serde_json::to_value(&table.value[0].1).unwrap()["list"][0], "item");
            let is_list = own.starts_with('{');
            assert_eq!(elements_of(&table, &columns).is_none(), is_list, "{own}: a row may be a list itself");
        }
    }

    #[test]
    fn rows_of_several_columns_become_objects_of_the_tables_types() {
        let columns = schema(r#"{"key":[["k","string"]],"value":[["n","int8"],["t","string"]]}"#);
        let value = |number, text| {
            let mut value = Vec::new();
            [number, Field::Text(text)].into_iter().for_each(|field| field.append(&mut value));
            value
        };
        let rows = [
            ("b", value(Field::Json("1"), "x")),
            ("a", value(Field::Null, "")),
            ("b", value(Field::Json("2"), "y")),
        ];
        let (table, all) = lists(&columns, None, &rows, 99).unwrap();
        let expected = [("b", r#"[{"n":1,"t":"x"},{"n":2,"t":"y"}]"#), ("a", r#"[{"n":null,"t":""}]"#)];
        assert_eq!(all, expected.map(|(key, list)| (key.to_string(), list.to_string())));
        table.check(true).unwrap();

        // Rows of text, as changes of a CSV file have them.
        let texts = schema(r#"{"key":[["k","string"]],"value":[["n","string"],["t","string"]]}"#);
        let elements = elements_of(&table, &texts).unwrap();
        assert_eq!(elements, columns);
        let row = |number| [("b", value(Field::Text(number), "z"))];
        let (again, all) = lists(&texts, Some(&elements), &row("07"), 99).unwrap();
        assert_eq!((again, &all[0].1[..]), (table.clone(), r#"[{"n":7,"t":"z"}]"#));
        let error = lists(&texts, Some(&elements), &row("x"), 99).unwrap_err();
        assert!(matches!(&error, IngestError::Element { row: 1, column, .. } if column == "n"), "{error}");
        let others = schema(r#"{"key":[],"value":[["n","string"],["u","string"]]}"#);
        assert_eq!(elements_of(&table, &others), None);
    }

    #[test]
    fn rows_of_a_prefix_become_lines() {
        let folder = tempfile::tempdir().unwrap();
        let text = |json: &str, rows: &[(&str, &str)], characters| {
            let mut spool = Spool::create(folder.path()).unwrap();
            for (key, value) in rows {
                let record = Record { key: Some((*key).into()), value: (*value).into() };
                spool.push(&grouped(record, characters, 7)?).unwrap();
            }
            let records = spool.finish(OnDuplicate::All).unwrap().with_columns(Some(schema(json)));
            let records = records.lines(folder.path(), 99, |_| Ok(()))?;
            let all = (0..records.len()).map(|index| records.record(index));
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            Ok::<Vec<_>, IngestError>(all.map(|(key, value)| (text(key), text(value))).collect())
        };
        let columns = r#"{"key":[["hash","string"]],"value":[["count","int64"]]}"#;
        let rows = [("ABC1", "7"), ("ÄBD", "1"), ("ABC0", "9"), ("AB9", "")];
        let expected = [("AB", "C1:7\r\nC0:9\r\n9:"), ("ÄB", "D:1")];
        assert_eq!(text(columns, &rows, 2).unwrap(), expected.map(|(key, value)| (key.into(), value.into())));
        let bare = r#"{"key":[["hash","string"]],"value":[]}"#;
        assert_eq!(text(bare, &[("ab", ""), ("ac", "")], 1).unwrap(), [("a".into(), "b\r\nc".into())]);
        let error = text(columns, &rows, 3).unwrap_err();
        assert!(
            matches!(&error, IngestError::ShortKey { row: 7, key, characters: 3 } if key == "ÄBD"),
            "{error}"
        );
        assert!(text(columns, &[("ab", "1\n2")], 1).unwrap_err().to_string().contains("line break"));
        let none = schema(r#"{"key":[["k","string"]],"value":[]}"#);
        assert!(matches!(
            lists(&none, None, &[("k", b"".to_vec())], 99),
            Err(IngestError::Ungroupable { .. })
        ));
        let two = r#"{"key":[["hash","string"]],"value":[["a","string"],["b","string"]]}"#;
        assert!(matches!(text(two, &[("ab", "")], 1), Err(IngestError::Ungroupable { .. })));
    }

    #[test]
    fn a_list_of_too_many_bytes_is_refused() {
        let columns = schema(r#"{"key":[["k","string"]],"value":[["v","string"]]}"#);
        let records = [("other", b"".to_vec()), ("k", b"1234".to_vec()), ("k", b"1234".to_vec())];
        assert!(lists(&columns, None, &records, 15).is_ok());
        let error = lists(&columns, None, &records, 14).unwrap_err();
        assert!(matches!(&error, IngestError::LongList { key, rows: 2, limit: 14 } if key == "k"), "{error}");
    }
}
