//! Sorted tables: every look-up finds what a search through all rows finds, also after changes and a compaction.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_build::{
    ApplyRequest, CompactRequest, Job, JobRequest, SortRequest, Update, UpdateError,
    builder::{BuildOptions, ChangeRoom},
};
use hush_client::{Found, Table, Wanted};
use hush_engine::{Backends, Cancel, Engine, Silent, open};
use hush_ingest::{IngestOptions, Input, OnDuplicate};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol,
    sorted::{found::RowMatch, order::SortOrder},
};
use hush_store::snapshot::{Snapshot, Verify};

use crate::tables::{client, on_cpu};

/// The rows of a table by key.
type WordRows = BTreeMap<String, String>;

/// A sorted table of words in a folder, and its rows.
struct WordTable {
    folder: tempfile::TempDir,
    backends: Backends,
    rows: WordRows,
    random: Csprng,
}

impl WordTable {
    fn new(rows: usize) -> Self {
        let mut words = Self {
            folder: tempfile::tempdir().unwrap(),
            backends: on_cpu(2),
            rows: WordRows::new(),
            random: Csprng::insecure_from_seed(7),
        };
        while words.rows.len() < rows {
            let (key, value) = (words.word(), words.text());
            words.rows.insert(key, value);
        }
        words
    }

    fn below(&mut self, limit: usize) -> usize {
        let mut bytes = [0; 4];
        self.random.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes) as usize % limit
    }

    /// Returns a word of few letters, so that many words begin alike.
    fn word(&mut self) -> String {
        let length = 1 + self.below(7);
        (0..length).map(|_| ["a", "b", "c", "é"][self.below(4)]).collect()
    }

    fn text(&mut self) -> String {
        let length = self.below(30);
        format!("{}{}", "x".repeat(length), self.below(1000))
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    fn input(&self, name: &str, header: &str, rows: &WordRows) -> Input {
        let path = self.folder.path().join(name);
        let lines: String = rows.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
        fs::write(&path, format!("{header}\n{lines}")).unwrap();
        Input::from(path.as_os_str())
    }

    fn build(&self, sorted: SortRequest, options: BuildOptions) {
        let request = JobRequest {
            input: self.input("rows.csv", "word,text", &self.rows),
            ingest: IngestOptions { key: vec!["word".into()], ..IngestOptions::default() },
            on_duplicate: OnDuplicate::Error,
            sorted: Some(sorted),
            out: self.out(),
            force: false,
            options,
        };
        Job::open(request, &Cancel::new()).unwrap().run(&self.backends, &Silent).unwrap();
    }

    fn apply(&self, changes: &WordRows, gone: &[String]) -> Result<(), UpdateError> {
        let update = Update::open(&self.out(), None, &Cancel::new()).unwrap();
        let deleted = gone.iter().map(|key| (key.clone(), String::new())).collect();
        let request = ApplyRequest {
            changes: (!changes.is_empty()).then(|| self.input("changes.csv", "word,text", changes)),
            delete: (!gone.is_empty()).then(|| self.input("gone.csv", "word,ignored", &deleted)),
            ingest: IngestOptions { key: vec!["word".into()], ..IngestOptions::default() },
            on_duplicate: OnDuplicate::Error,
            is_stream: false,
            followed: None,
            keep_epochs: None,
        };
        update.apply(request, &self.backends, &Silent).map(drop)
    }

    /// Compares all look-ups of some words with the rows.
    fn check(&mut self, prefix_bytes: usize) {
        let open = SortedClient::open(&self.out(), &self.backends);
        let mut words: Vec<String> = self.rows.keys().step_by(11).cloned().collect();
        words.extend((0..60).map(|_| self.word()));
        words.extend([String::new(), "a".into(), "zz".into()]);
        for word in words {
            let row = |row: Option<(&String, &String)>| {
                row.map(|(key, value)| format!(r#"{{"word":"{key}","text":"{value}"}}"#))
            };
            assert_eq!(open.ask(RowMatch::Exact, &word), self.rows.get(&word).cloned(), "{word}");
            let below = row(self.rows.range(..=word.clone()).next_back());
            assert_eq!(open.ask(RowMatch::AtOrBelow, &word), below, "{word}");
            assert_eq!(
                open.ask(RowMatch::AtOrAbove, &word),
                row(self.rows.range(word.clone()..).next()),
                "{word}"
            );
            let all: Vec<_> =
                self.rows.range(word.clone()..).take_while(|(key, _)| key.starts_with(&word)).collect();
            let bytes: usize = all.iter().map(|(key, value)| key.len() + value.len() + 3).sum();
            let found = open.ask(RowMatch::Prefix, &word);
            let Some(found) = found else {
                assert!(all.is_empty(), "{word}");
                continue;
            };
            let shown = |rows: &[(&String, &String)], more: bool| {
                let rows: Vec<_> = rows.iter().map(|&found| row(Some(found)).unwrap()).collect();
                format!(r#"{{"rows":[{}],"more":{more}}}"#, rows.join(","))
            };
            let is_whole = found == shown(&all, false);
            let is_start = (1..=all.len()).any(|end| found == shown(&all[..end], true));
            assert!(is_whole || (is_start && bytes > prefix_bytes), "{word}: {found}");
        }
    }
}

/// A client of the table.
struct SortedClient {
    engine: Arc<dyn Engine>,
    table: Table,
}

impl SortedClient {
    fn open(dir: &Path, backends: &Backends) -> Self {
        let engine = open(dir, Verify::Header, backends, &Silent).unwrap();
        let table = client(&*engine);
        Self { engine, table }
    }

    fn ask(&self, by: RowMatch, word: &str) -> Option<String> {
        let wanted = Wanted::Key(word.as_bytes().to_vec()).matching(by);
        let (query, pending) = self.table.query(&wanted).unwrap();
        let answers = self.engine.answer(&[query], &[None]).unwrap();
        let found: Found = self.table.decode(&pending, &answers[0]).unwrap();
        found.map(|found| String::from_utf8(found).unwrap())
    }
}

const OVERLAP: usize = 100;

fn sorted(leaf_bytes: usize) -> SortRequest {
    let order = SortOrder::Bytes;
    SortRequest { order, is_range: false, leaf_bytes: Some(leaf_bytes), overlap: Some(OVERLAP) }
}

fn options(room: Option<usize>) -> BuildOptions {
    BuildOptions {
        protocol: Some(Protocol::Colpack),
        preset: Some("INSECURE_COLPACK_N256".into()),
        changes: room.map(ChangeRoom::For),
        ..BuildOptions::default()
    }
}

#[test]
fn every_match_is_found() {
    for rows in [1, 2, 30, 3000] {
        let mut words = WordTable::new(rows);
        words.build(sorted(800), options(None));
        words.check(OVERLAP);
    }
}

#[test]
fn rows_change_and_leaves_split() {
    let mut words = WordTable::new(1500);
    words.build(sorted(800), options(Some(600)));
    let table = |words: &WordTable| {
        let header = Snapshot::open(&words.out(), Verify::Full).unwrap().header().clone();
        (header.descriptor.asked(), header.descriptor.sorted.unwrap(), header.changes.unwrap())
    };
    let (asked, described, count) = table(&words);
    assert!(described.added.is_none() && described.rows == 1500 && count.changes == 0);

    // A change that splits nothing keeps the queries of clients.
    let (key, value) = (words.rows.keys().nth(700).unwrap().clone(), "1".to_owned());
    words.rows.insert(key.clone(), value.clone());
    words.apply(&WordRows::from([(key, value)]), &[]).unwrap();
    assert!(table(&words).0 == asked && (1..4).contains(&table(&words).2.changes));

    for round in 0..4 {
        let mut changes = WordRows::new();
        while changes.len() < 250 {
            let (word, text) = (words.word(), words.text());
            changes.insert(word, text);
        }
        let gone = words.rows.keys().skip(round * 100).take(if round == 2 { 300 } else { 9 });
        let gone: Vec<_> = gone.filter(|key| !changes.contains_key(*key)).cloned().collect();
        words.apply(&changes, &gone).unwrap();
        gone.iter().for_each(|key| drop(words.rows.remove(key)));
        words.rows.extend(changes);
        assert_eq!(table(&words).1.rows, words.rows.len() as u64);
        words.check(OVERLAP);
    }
    let (split, described, _) = table(&words);
    assert!(split != asked && described.added.is_some());

    let absent = words.apply(&WordRows::new(), &["zebra".into()]).unwrap_err();
    assert!(matches!(&absent, UpdateError::Absent { key } if key == "zebra"), "{absent}");
    let long = words.apply(&WordRows::from([("a".into(), "x".repeat(300))]), &[]).unwrap_err();
    assert!(long.to_string().contains("the row of 'a' takes 305 bytes"), "{long}");
    let crowd = (0..4000).map(|number| (format!("m{number}"), "x".repeat(50))).collect();
    let crowd = words.apply(&crowd, &[]).unwrap_err();
    assert!(crowd.to_string().contains("no leaf is left to split"), "{crowd}");
    words.check(OVERLAP);

    let update = Update::open(&words.out(), None, &Cancel::new()).unwrap();
    update.compact(CompactRequest::default(), &words.backends, &Silent).unwrap();
    let (_, described, count) = table(&words);
    assert!(described.added.is_none() && count.changes == 0);
    words.check(OVERLAP);
}

#[test]
fn all_rows_go_and_come_back() {
    let mut words = WordTable::new(300);
    words.build(sorted(800), options(Some(100)));
    let gone: Vec<_> = words.rows.keys().cloned().collect();
    words.apply(&WordRows::new(), &gone).unwrap();
    let rows = std::mem::take(&mut words.rows);
    words.check(OVERLAP);
    Update::open(&words.out(), None, &Cancel::new())
        .unwrap()
        .compact(CompactRequest::default(), &words.backends, &Silent)
        .unwrap();
    words.check(OVERLAP);
    let some: WordRows = rows.into_iter().step_by(2).collect();
    words.apply(&some, &[]).unwrap();
    words.rows = some;
    words.check(OVERLAP);
}
