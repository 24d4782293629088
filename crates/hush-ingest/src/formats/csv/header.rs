//! The header of a CSV text: the names of the columns, unless the row looks like a record.

use std::path::Path;

use crate::{
    IngestError, IngestOptions,
    formats::csv::{place, rows::CsvRows},
};

/// The fewest hexadecimal digits of a hash: the length of MD5.
const HASH_DIGITS: usize = 32;
/// The number of characters of a field that an error shows.
const SHOWN_CHARS: usize = 40;

/// Reads the names of the columns from the row that was read last, the first.
///
/// # Errors
/// [`IngestError::BadUtf8`]. [`IngestError::OtherSeparator`] or [`IngestError::HeaderLikeRecord`] if the row is ambiguous.
pub(crate) fn names(
    path: &Path,
    rows: &CsvRows,
    options: &IngestOptions,
) -> Result<Vec<String>, IngestError> {
    let names = (0..rows.len()).map(|index| String::from_utf8(rows.field(index).into()));
    let names: Vec<String> = names
        .collect::<Result<_, _>>()
        .map_err(|_| IngestError::BadUtf8 { place: place(path, 0, rows), column: None })?;
    if let ([name], None) = (&names[..], options.csv.separator)
        && let Some(found) = name.chars().find(|c| [';', '\t', '|'].contains(c)).or_else(|| behind_hash(name))
    {
        return Err(IngestError::OtherSeparator { path: path.into(), found });
    }
    let mut asked = options.key.iter().chain(&options.value).peekable();
    // A caller who names a column has seen the header.
    let is_known = asked.peek().is_some() && asked.all(|name| names.contains(name));
    if options.csv.header.is_none()
        && !is_known
        && let Some((field, kind)) = names.iter().find_map(|name| Some((name, kind_of(name)?)))
    {
        let field = field.chars().take(SHOWN_CHARS).collect();
        return Err(IngestError::HeaderLikeRecord { path: path.into(), field, kind });
    }
    Ok(names)
}

/// Returns the colon between a hash and its count, the separator of lists of hashes.
fn behind_hash(field: &str) -> Option<char> {
    let (hash, count) = field.split_once(':')?;
    let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    (is_count && kind_of(hash).is_some()).then_some(':')
}

/// Returns the kind of a field that is no name of a column.
fn kind_of(field: &str) -> Option<&'static str> {
    let is_number = field.parse::<f64>().is_ok() && field.contains(|c: char| c.is_ascii_digit());
    let digits = field.bytes().take_while(u8::is_ascii_hexdigit).count();
    let is_hash = digits >= HASH_DIGITS && !field[digits..].starts_with(char::is_alphanumeric);
    let is_address = field.split_once('@').is_some_and(|(name, host)| {
        let [start, end] = [host.find('.'), host.rfind('.')].map(Option::unwrap_or_default);
        !name.is_empty() && start > 0 && end + 1 < host.len() && !field.contains(char::is_whitespace)
    });
    let kinds = [(is_number, "a number"), (is_hash, "a hash"), (is_address, "an e-mail address")];
    kinds.into_iter().find_map(|(is_it, kind)| is_it.then_some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_told_from_fields() {
        for (field, kind) in [
            ("1", Some("a number")),
            ("-2.5e3", Some("a number")),
            ("00000000000000000000000000000000", Some("a number")),
            ("0018A45C4D1DEF81644B54AB7F969B88D65A7C1B", Some("a hash")),
            ("0018A45C4D1DEF81644B54AB7F969B88D65A7C1B:21", Some("a hash")),
            ("a@example.org", Some("an e-mail address")),
            ("nan", None),
            ("inf", None),
            ("", None),
            ("2024_sales", None),
            ("abcdef", None),
            ("a b@example.org", None),
            ("@handle", None),
            ("a@host", None),
            ("a@.org", None),
            ("a@host.", None),
        ] {
            assert_eq!(kind_of(field), kind, "{field}");
        }
    }
}
