//! The codes of errors are the same wherever they are listed: in the pages of the docs, and in the client for JavaScript.

use std::{collections::BTreeSet, fs, path::Path};

use hush_protocol::{Code, ErrorKind};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares the rows of a table of a page, as far as they begin as `row` says, with those of `codes`.
fn compare(page: &str, heading: &str, codes: impl Iterator<Item = Code>, row: impl Fn(Code) -> String) {
    let text = read(page);
    let table = text.split_once(heading).unwrap_or_else(|| panic!("{page} has no '{heading}'")).1;
    let listed: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    let codes: Vec<_> = codes.collect();
    for code in &codes {
        let wanted = row(*code);
        assert!(listed.iter().any(|line| line.starts_with(&wanted)), "{page} has no row {wanted}");
    }
    assert_eq!(listed.len(), codes.len(), "{page} has other rows too");
}

#[test]
fn pages_list_all_codes() {
    let (sent, own): (Vec<Code>, Vec<Code>) = Code::ALL.iter().partition(|code| code.status().is_some());
    compare("docs/reference/http-api.md", "| Code | Status | Kind |", sent.into_iter(), |code| {
        format!("| `{}` | {} | {:?} |", code.word(), code.status().unwrap_or_default(), code.kind())
    });
    compare("docs/reference/clients.md", "| code | kind |", own.into_iter(), |code| {
        format!("| `{}` | {:?} | {} |", code.word(), code.kind(), code.title())
    });
}

#[test]
fn javascript_has_all_codes_by_kind() {
    let source = read("clients/js/src/error.ts");
    let (_, list) = source.split_once("const CODES = {").unwrap();
    let (list, _) = list.split_once("} as const").unwrap();
    let kinds = list.split("],").filter_map(|kind| kind.split_once(": ["));
    let listed: BTreeSet<_> = kinds
        .flat_map(|(kind, words)| {
            words.split('"').skip(1).step_by(2).map(|word| (kind.trim().into(), word.into()))
        })
        .collect();
    let codes: BTreeSet<_> =
        Code::ALL.iter().map(|code| (format!("{:?}", code.kind()), code.word().to_string())).collect();
    assert_eq!(listed, codes);
}

#[test]
fn python_has_a_class_for_each_kind() {
    let source = read("crates/hush-py/python/hushdb/_errors.py");
    for kind in Code::ALL.iter().map(|code| code.kind()).filter(|kind| *kind != ErrorKind::Other) {
        assert!(source.contains(&format!("class {kind:?}(HushError")), "{kind:?}");
    }
}
