//! Tests of SQLite.

use hush_ingest::{IngestError, IngestOptions, open};
use rusqlite::Connection;

use crate::{Fixture, options, pairs};

pub(crate) fn database(sql: &str) -> Fixture {
    let file = Fixture::new("t.db", "");
    Connection::open(&file.path).unwrap().execute_batch(sql).unwrap();
    file
}

pub(crate) fn small() -> Fixture {
    database(
        "CREATE TABLE t (id INTEGER, name TEXT, note TEXT); INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', NULL)",
    )
}

fn query(sql: &str, key: &str, value: &str) -> IngestOptions {
    IngestOptions { sql: Some(sql.into()), ..options(key, value) }
}

fn table(name: &str, key: &str, value: &str) -> IngestOptions {
    IngestOptions { table: Some(name.into()), ..options(key, value) }
}

#[test]
fn every_type_has_its_text() {
    let file = database(
        "CREATE TABLE t (k, v);
         INSERT INTO t VALUES (-9223372036854775808, 'é\"'), (0.1, 1e300), (2.0, X'00ff'), ('', ''), (X'80', NULL)",
    );
    let records = file.read(&options("k", "v")).unwrap();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"-9223372036854775808", "é\"".as_bytes()),
        (b"0.1", b"1e+300"),
        (b"2", &[0, 0xff]),
        (b"", b""),
        (&[0x80], b""),
    ];
    for (record, (key, value)) in records.iter().zip(expected) {
        assert_eq!((record.key.as_deref().unwrap(), record.value.as_slice()), (key, value));
    }
    let all = file.texts(&options("", ""));
    assert_eq!(all[2].1, r#"{"k":2,"v":"AP8="}"#);
}

#[test]
fn tables_are_read_in_the_order_of_row_ids() {
    let file = database(
        "CREATE TABLE \"od\"\"d\" (k TEXT); CREATE INDEX i ON \"od\"\"d\" (k);
         CREATE TABLE other (k); CREATE VIEW seen AS SELECT k || '!' AS e FROM \"od\"\"d\" ORDER BY k;
         CREATE TABLE keyed (k TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO keyed VALUES ('z'), ('y');
         INSERT INTO \"od\"\"d\" (_rowid_, k) VALUES (3, 'a'), (2, 'b'), (1, 'c')",
    );
    let values =
        |options: &IngestOptions| file.texts(options).into_iter().map(|(_, value)| value).collect::<String>();
    assert_eq!(values(&table("od\"d", "", "")), "cba");
    assert_eq!(values(&table("OD\"D", "", "k")), "cba");
    assert_eq!(values(&table("seen", "", "")), "a!b!c!");
    assert_eq!(values(&table("keyed", "", "")), "yz");
    assert_eq!(values(&query("SELECT k FROM \"od\"\"d\" ORDER BY k DESC;", "", "")), "cba");
}

#[test]
fn queries_may_compute_columns() {
    let options = query("SELECT id + 1 AS next, name, id FROM t WHERE id > 1", "name", "next,id");
    assert_eq!(small().texts(&options), pairs(&[("b", r#"{"next":3,"id":2}"#)]));
    let message = small().error(&query("SELECT id, id FROM t", "", ""));
    assert_eq!(message, "t.db: two columns are called \"id\"; rename one of them");
}

#[test]
fn a_table_must_be_chosen_among_several() {
    let file = database("CREATE TABLE a (x); CREATE VIEW b AS SELECT 1");
    for options in [IngestOptions::default(), table("c", "", "")] {
        assert_eq!(
            file.error(&options),
            "t.db: choose a table with 'table' (there is \"a\", \"b\") or a query with 'sql'"
        );
    }
    let none = database("PRAGMA user_version = 1");
    assert!(none.error(&IngestOptions::default()).contains("the database has no table; one in WAL mode"));
    let both = IngestOptions { sql: Some("SELECT 1".into()), ..table("a", "", "") };
    assert_eq!(file.error(&both), "t.db: 'sql' and 'table' exclude each other; use one");
    assert_eq!(file.error(&table("a", "", "")), "t.db: no records; a table needs at least one");
}

#[test]
fn wrong_queries_are_refused_and_nothing_is_written() {
    let file = small();
    assert!(file.error(&query("SELEC 1", "", "")).starts_with("t.db: SQLite: near \"SELEC\": syntax error"));
    assert!(file.error(&query("SELECT x FROM t", "", "")).contains("no such column: x"));
    assert!(file.error(&query("SELECT 1; SELECT 2", "", "")).starts_with("t.db: SQLite: "));
    assert!(file.error(&query("DELETE FROM t", "", "")).contains("write a SELECT"));
    assert!(file.error(&query("", "", "")).contains("write a SELECT"));
    let writing = query("DELETE FROM t RETURNING id", "", "");
    assert!(file.error(&writing).contains("attempt to write a readonly database"));
    assert_eq!(file.read(&options("id", "name")).unwrap().len(), 2);
}

#[test]
fn errors_within_a_query_follow_its_first_rows() {
    let file = small();
    let options =
        query("SELECT CASE WHEN id = 2 THEN abs(-9223372036854775807 - 1) ELSE id END AS v FROM t", "", "");
    let mut source = open(&file.path.as_os_str().into(), &options).unwrap();
    assert_eq!(source.next().unwrap().unwrap().value, b"1");
    assert!(matches!(source.next(), Some(Err(IngestError::Sqlite { .. }))));
    assert!(source.next().is_none());
}

#[test]
fn damaged_files_and_text_are_refused() {
    let file =
        Fixture::new("t.sqlite", "this is not a database, but long enough to have a header".repeat(20));
    assert!(file.error(&IngestOptions::default()).contains("file is not a database"));
    let file = database("CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', 'b'), ('c', CAST(X'ff' AS TEXT))");
    assert_eq!(
        file.error(&options("k", "v")),
        "t.db, row 2, column \"v\": not valid UTF-8; correct this text, or leave the column out with 'value'; \
         'sql' can read it as bytes: CAST(column AS BLOB)"
    );
}

#[test]
fn names_that_are_not_text_are_refused() {
    let file = database(
        "CREATE TABLE t (k, v); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE t (k, \"' || CAST(X'ff' AS TEXT) || '\")'",
    );
    let expected = "t.db: SQLite: the names of its tables and columns are not UTF-8";
    for options in [options("", ""), options("k", ""), query("SELECT * FROM t", "", "")] {
        assert_eq!(file.error(&options), expected);
    }
}

#[test]
fn a_view_makes_no_value_that_is_longer_than_a_row() {
    let file = database("CREATE VIEW s AS SELECT zeroblob(67108865) AS v");
    assert_eq!(file.error(&options("", "")), "t.db: SQLite: string or blob too big");
}

#[test]
fn a_reader_can_be_dropped_in_the_middle() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let file = small();
    let mut source = open(&file.path.as_os_str().into(), &query(endless, "", "")).unwrap();
    assert_eq!(source.by_ref().take(1000).count(), 1000);
    drop(source);
    // A query that never gives a row has to be interrupted.
    let silent = format!("{endless} WHERE i < 0");
    drop(open(&file.path.as_os_str().into(), &query(&silent, "", "")).unwrap());
}
