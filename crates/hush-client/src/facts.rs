//! The facts of a table that every door shows. A door (the command line or another language) passes these types on with the
//! same names, in the case of its language.

use serde::Serialize;

use crate::Table;

/// The facts of an open table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TableFacts {
    /// The name of the table's protocol.
    pub protocol: String,
    /// The name of the table's parameter set.
    pub preset: String,
    /// The security in bits.
    pub security_bits: f64,
    /// The number of records.
    pub records: u64,
    /// The hash of the table's content: 64 hex digits.
    pub epoch: String,
    /// Whether records are looked up by key. If not, they are looked up by position.
    pub by_key: bool,
    /// The columns of the table's values. `None` if values are not made of several columns.
    pub fields: Option<Vec<String>>,
    /// Whether queries name the client's evaluation keys. If so, the server can link look-ups of the same client.
    pub linkable: bool,
    /// The bytes that a look-up sends.
    pub query_bytes: u64,
    /// The bytes that a look-up receives.
    pub answer_bytes: u64,
    /// The bytes of the hint as clients download it. 0 without a hint.
    pub hint_bytes: u64,
    /// The bytes of the evaluation keys as clients upload them. 0 without keys.
    pub key_bytes: u64,
}

impl From<&Table> for TableFacts {
    fn from(table: &Table) -> Self {
        let facts = table.facts();
        let descriptor = table.descriptor();
        let fields = descriptor.schema.as_ref().and_then(|schema| schema.fields());
        Self {
            protocol: facts.protocol.name().into(),
            preset: facts.preset.into(),
            security_bits: facts.security_bits,
            records: descriptor.rows(),
            epoch: hex::encode(descriptor.epoch),
            by_key: descriptor.is_by_key(),
            fields: fields.map(|names| names.into_iter().map(String::from).collect()),
            linkable: facts.keys.is_some(),
            query_bytes: facts.query.total() as u64,
            answer_bytes: facts.answer_bytes as u64,
            hint_bytes: descriptor.hint_bytes(),
            key_bytes: facts.key_bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use hush_protocol::wording::camel_case;
    use serde_json::{Value, to_value};

    use super::*;
    use crate::session::{Event, SessionError, Stats, TableInfo};

    const JAVASCRIPT: &str = include_str!("../../../clients/js/src/options.ts");
    const MOBILE: [&str; 3] = [
        include_str!("../../hush-mobile/src/facts.rs"),
        include_str!("../../hush-mobile/src/stats.rs"),
        include_str!("../../hush-mobile/src/observer.rs"),
    ];

    /// Returns the names of a value's members.
    fn names(value: &impl Serialize) -> BTreeSet<String> {
        let value = to_value(value).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    }

    /// Returns the names of the members in the braces of a declaration. Each is followed by a colon.
    fn declared(source: &str, head: &str) -> BTreeSet<String> {
        let (_, body) = source.split_once(head).unwrap_or_else(|| panic!("there is no {head}"));
        let body = body.split_once('}').unwrap().0;
        let code = body.lines().map(str::trim).filter(|line| !line.starts_with(['/', '*', '#']));
        let members = code.flat_map(|line| line.split([';', ',', '{']));
        let names = members.filter_map(|member| member.split_once(':')).map(|(name, _)| name.trim());
        names.map(|name| name.trim_start_matches("pub ").trim_end_matches('?').to_owned()).collect()
    }

    fn in_camel_case(names: BTreeSet<String>) -> BTreeSet<String> {
        names.iter().map(|name| camel_case(name)).collect()
    }

    fn events() -> [Value; 6] {
        let error = &SessionError::NoTables;
        let wait = Duration::from_millis(200);
        [
            Event::HintStart { bytes: 1, present: 2 },
            Event::HintProgress { present: 2 },
            Event::HintEnd,
            Event::HintLocked,
            Event::KeysUpload { bytes: 1 },
            Event::Retry { error, wait },
        ]
        .map(|event| to_value(event).unwrap())
    }

    #[test]
    fn names_in_javascript_are_these() {
        let with = |mut names: BTreeSet<String>, name: &str| {
            names.insert(name.into());
            names
        };
        let facts = with(names(&TableFacts::default()), "name");
        let info = names(&TableInfo::default());
        let mut stats = names(&Stats::default());
        stats.append(&mut names(&Stats::default().seconds));
        for (name, names) in [("TableFacts", facts), ("TableInfo", info), ("Stats", stats)] {
            assert_eq!(declared(JAVASCRIPT, &format!("export interface {name} {{")), in_camel_case(names));
        }
        for event in events() {
            let kind = event["kind"].as_str().unwrap();
            let told = in_camel_case(names(&event));
            // In a browser, no other process downloads the hint.
            if kind != "hint_locked" {
                assert_eq!(with(declared(JAVASCRIPT, &format!("{{ kind: \"{kind}\"")), "kind"), told);
            }
        }
    }

    #[test]
    fn names_in_kotlin_and_swift_are_these() {
        let [facts, stats, observer] = MOBILE;
        assert_eq!(declared(facts, "pub struct Facts {"), names(&TableFacts::default()));
        assert_eq!(declared(facts, "pub struct TableInfo {"), names(&TableInfo::default()));
        assert_eq!(declared(stats, "pub struct Stats {"), names(&Stats::default()));
        assert_eq!(declared(stats, "pub struct Seconds {"), names(&Stats::default().seconds));
        for event in events() {
            let variant = camel_case(&format!("-{}", event["kind"].as_str().unwrap()));
            let told: BTreeSet<_> = names(&event).into_iter().filter(|name| name != "kind").collect();
            // Other languages have a type for times.
            let told = told.iter().map(|name| name.trim_end_matches("_ms").to_owned()).collect();
            let declared = match observer.contains(&format!("    {variant},")) {
                true => BTreeSet::new(),
                false => declared(observer, &format!("    {variant} {{")),
            };
            assert_eq!(declared, told, "{variant}");
        }
    }
}
