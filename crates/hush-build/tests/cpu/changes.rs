//! Tables that change: new epochs of one geometry, whose changes a look-up finds and whose sizes tell nothing of them.

use std::fs;

use hush_build::{
    ApplyRequest, CompactRequest, Job, JobRequest, Update, UpdateError, Updated,
    builder::{BuildError, Compress},
};
use hush_engine::{Cancel, Engine, Silent};
use hush_ingest::{IngestOptions, Input, OnDuplicate};
use hush_math::csprng::Csprng;
use hush_protocol::{Protocol, descriptor::Role};
use hush_store::snapshot::{Snapshot, Verify};

use crate::tables::{Changed, Folder, Wanted, client, on_cpu};

const ROOM: usize = 70;
/// The ends of the values' tiers: the first goes into slots that several share, the last fills whole plaintexts.
const TIERS: &[usize] = &[60, 200, 700];

fn wanted(protocol: Protocol, by_key: bool) -> Wanted {
    let (records, tiers) = match protocol {
        // Its hint grows by some MiB with every byte of a slot.
        Protocol::Double | Protocol::ExppackD => (1500, &[2, 3, 5][..]),
        Protocol::Frodo | Protocol::Simple => (1500, TIERS),
        _ => (9000, TIERS),
    };
    let columns =
        if [Protocol::Onion, Protocol::Tfhe, Protocol::TfhePrivks].contains(&protocol) { 180 } else { 1200 };
    Wanted { by_key, tiers, room: Some(ROOM), ..Wanted::by_index(protocol, records, 0, columns) }
}

fn value(length: usize, seed: usize) -> Option<Vec<u8>> {
    let mut value = vec![0; length];
    Csprng::insecure_from_seed(seed as u64).fill_bytes(&mut value);
    Some(value)
}

/// Returns some records of every length, shorter and longer than before; some deleted; where there are keys, some that are new.
fn changes(wanted: &Wanted, round: usize) -> Changed {
    let longest = wanted.tiers.last().map_or(wanted.bytes, |&last| last);
    let some = (0..20).map(|number| {
        let index = (number * 37 + round * 11) % wanted.records;
        (index, if number % 5 == 4 { None } else { value(number * 31 % (longest + 1), number) })
    });
    let new = (0..if wanted.by_key { 3 } else { 0 })
        .map(|number| (wanted.records + number, value(longest, number)));
    some.chain(new).collect()
}

/// Returns the records that were changed, their neighbours, and one that never was.
fn asked(folder: &Folder) -> Vec<usize> {
    let mut indices: Vec<usize> = folder.changed.keys().copied().collect();
    indices.extend((0..10).chain([folder.wanted.records - 1]));
    indices.extend(folder.wanted.by_key.then_some(folder.wanted.records + 100));
    indices
}

fn check(folder: &Folder, engine: &dyn Engine) {
    for indices in asked(folder).chunks(engine.served().max_batch.min(9)) {
        let asked = folder.asked(engine, indices.to_vec());
        let answers = asked.answers(engine).unwrap();
        assert!(answers.iter().all(|answer| answer.len() == engine.served().answer_bytes));
        asked.check(&answers);
    }
}

#[test]
fn changes_are_found_by_every_protocol() {
    let cpu = on_cpu(2);
    for (number, &protocol) in Protocol::ALL.iter().enumerate() {
        // Both of the default.
        let is_default = protocol == Protocol::Colpack;
        for by_key in [false, true].into_iter().filter(|&by_key| is_default || by_key == (number % 2 == 0)) {
            let mut folder = Folder::with_table(&cpu, wanted(protocol, by_key));
            let descriptor = folder.descriptor();
            let deltas = descriptor.segments.iter().filter(|segment| segment.role == Role::Delta);
            assert!(deltas.count() >= 1 && descriptor.tiers() == 2, "{protocol}");
            for round in 0..if is_default { 2 } else { 1 } {
                let before = folder.open(&cpu).unwrap();
                let old = client(&*before);
                check(&folder, &*before);
                let changed = changes(&folder.wanted, round);
                let header = folder.apply(&cpu, changed).unwrap();
                let count = header.changes.unwrap();
                assert_eq!((count.changes, count.room), (folder.changed.len() as u64, ROOM as u64));
                Snapshot::open(&folder.table(), Verify::Full).unwrap();
                let after = folder.open(&cpu).unwrap();
                check(&folder, &*after);
                let (one, other) = (before.served(), after.served());
                assert_eq!(
                    (one.asked, one.query, one.answer_bytes),
                    (other.asked, other.query, other.answer_bytes)
                );
                // How far changes compress is no secret of a table that all clients have.
                let is_compressed = descriptor.params().unwrap().facts().is_hint_compressed;
                let is_as_long = one.descriptor_json.len() == other.descriptor_json.len();
                assert!(one.epoch != other.epoch && (is_as_long || is_compressed));
                assert_eq!(old.asked(), client(&*after).asked());

                // Queries for the epoch before, which this one answers.
                let indices: Vec<_> =
                    asked(&folder).into_iter().step_by(7).take(one.max_batch.min(9)).collect();
                let asked = folder.asked(&*before, indices);
                let answers = asked.answers(&*after).unwrap();
                asked.adopted(&folder, client(&*after)).check(&answers);
            }
        }
    }
}

/// A table of one tier, of column packing.
const ONE: Wanted = Wanted {
    protocol: Protocol::Colpack,
    preset: Some("INSECURE_COLPACK_N256"),
    by_key: true,
    records: 3000,
    bytes: 50,
    columns: 600,
    tiers: &[],
    compress: Compress::None,
    form: None,
    room: Some(ROOM),
};

#[test]
fn changed_values_are_compressed_like_all() {
    let mut folder = Folder::new(Wanted { compress: Compress::Zstd, bytes: 300, ..ONE });
    let text = |index: usize| {
        format!("{{\"name\":\"record {index}\",\"colour\":\"{}\"}}", index * 7919 % 1000).repeat(5)
    };
    folder.records = (0..3000).map(|index| text(index).into_bytes()).collect();
    let cpu = on_cpu(2);
    folder.build("table", &cpu, &Silent).unwrap();
    let changed = (0..50).map(|index| (index * 3, Some(text(index + 9).into_bytes()))).collect();
    folder.apply(&cpu, changed).unwrap();
    check(&folder, &*folder.open(&cpu).unwrap());

    // A value that is longer than the table states is refused, however short it becomes: no client would read it.
    let longest = folder.records.iter().map(Vec::len).max().unwrap();
    let mut refused = |value: Vec<u8>| folder.apply(&cpu, [(0, Some(value))].into()).unwrap_err();
    let error = refused(vec![b'a'; longest + 1]);
    assert!(matches!(error, BuildError::ChangeTooLong { bytes, .. } if bytes == longest + 1), "{error}");
    let error = refused((0..longest).map(|at| (at * at * 31 + at * 7) as u8).collect());
    assert!(matches!(error, BuildError::ChangeTooDense { bytes, .. } if bytes == longest), "{error}");
}

#[test]
fn changes_that_do_not_fit_are_refused_and_nothing_is_lost() {
    let cpu = on_cpu(2);
    let mut folder = Folder::with_table(&cpu, ONE);
    folder.apply(&cpu, changes(&ONE, 0)).unwrap();
    let epoch = folder.descriptor().epoch;
    let many = (0..ROOM).map(|index| (1000 + index, value(5, index))).collect();
    let error = folder.apply(&cpu, many).unwrap_err();
    assert!(matches!(error, BuildError::ChangesFull { room: ROOM, .. }), "{error}");
    assert!(error.to_string().contains("'compact'"), "{error}");
    let error = folder.apply(&cpu, [(5, value(51, 5))].into()).unwrap_err();
    assert!(matches!(error, BuildError::ChangeTooLong { bytes: 51, longest: 50, .. }), "{error}");
    assert!(error.to_string().contains("'compact' with 'longest: 51'"), "{error}");
    assert_eq!(folder.descriptor().epoch, epoch);
    check(&folder, &*folder.open(&cpu).unwrap());

    let mut fixed = Folder::with_table(&cpu, Wanted { room: None, ..ONE });
    assert!(matches!(fixed.apply(&cpu, Changed::new()), Err(BuildError::NotUpdatable)));
}

fn compact(folder: &Folder, request: CompactRequest) -> Result<Updated, UpdateError> {
    Update::open(&folder.table(), None, &Cancel::new())?.compact(request, &on_cpu(2), &Silent)
}

#[test]
fn a_new_base_has_what_the_changes_made_of_the_old_one() {
    let cpu = on_cpu(2);
    for by_key in [false, true] {
        for tiers in [&[][..], TIERS] {
            let wanted = Wanted { by_key, tiers, ..ONE };
            let mut folder = Folder::with_table(&cpu, wanted);
            assert!(matches!(compact(&folder, CompactRequest::default()), Err(UpdateError::NoChanges)));
            folder.apply(&cpu, changes(&wanted, 0)).unwrap();
            let Updated { header, .. } = compact(&folder, CompactRequest::default()).unwrap();
            let count = header.changes.unwrap();
            // Positions without a record are not of the base.
            let deleted = folder.changed.values().filter(|value| value.is_none()).count() as u64;
            assert_eq!((count.changes, count.deleted), if by_key { (0, 0) } else { (deleted, deleted) });
            check(&folder, &*folder.open(&cpu).unwrap());
            // It takes changes as before; so does the next.
            folder.apply(&cpu, changes(&wanted, 1)).unwrap();
            check(&folder, &*folder.open(&cpu).unwrap());
            let longest = tiers.last().map_or(wanted.bytes, |&last| last) + 9;
            let request =
                CompactRequest { longest: Some(longest), changes: Some(200), ..CompactRequest::default() };
            assert_eq!(compact(&folder, request).unwrap().header.changes.unwrap().room, 200);
            folder.apply(&cpu, [(7, value(longest, 1))].into()).unwrap();
            check(&folder, &*folder.open(&cpu).unwrap());
        }
    }
}

#[test]
fn queries_outlive_a_new_base_of_the_same_keys() {
    let cpu = on_cpu(2);
    for by_key in [false, true] {
        for tiers in [&[][..], TIERS] {
            let mut folder = Folder::with_table(&cpu, Wanted { by_key, tiers, ..ONE });
            // Values change, as long as before; some records go.
            let same = (0..60).map(|index| {
                let length = folder.records[index].len();
                (index, if index % 9 == 8 && by_key { None } else { value(length, index) })
            });
            let same = same.collect();
            folder.apply(&cpu, same).unwrap();
            let before = folder.open(&cpu).unwrap();
            let asked = folder.asked(&*before, (50..59).collect());
            let Updated { header, keeps_geometry, .. } = compact(&folder, CompactRequest::default()).unwrap();
            assert!(keeps_geometry && header.descriptor.asked() == before.served().asked);
            assert_eq!(header.changes.unwrap().changes, 0);
            let after = folder.open(&cpu).unwrap();
            let answers = asked.answers(&*after).unwrap();
            asked.adopted(&folder, client(&*after)).check(&answers);
            check(&folder, &*after);
        }
    }
}

#[test]
fn changes_of_other_columns_are_refused() {
    let (cpu, dir) = (on_cpu(2), tempfile::tempdir().unwrap());
    let input = |name: &str, content: &str| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        Input::Path(path)
    };
    let columns = |key: &[&str]| IngestOptions {
        key: key.iter().map(|&name| name.into()).collect(),
        ..IngestOptions::default()
    };
    for by_key in [true, false] {
        let out = dir.path().join(format!("by key {by_key}"));
        let rows: String = (0..100).map(|row| format!("mail {row},name {row}\n")).collect();
        let ingest =
            IngestOptions { value: vec!["name".into()], ..columns(if by_key { &["email"] } else { &[] }) };
        let request = JobRequest {
            input: input("rows.csv", &format!("email,name\n{rows}")),
            ingest,
            on_duplicate: OnDuplicate::Error,
            sorted: None,
            out: out.clone(),
            force: false,
            options: Wanted { by_key, records: 100, columns: 20, ..ONE }.options(),
        };
        Job::open(request, &Cancel::new()).unwrap().run(&cpu, &Silent).unwrap();
        let apply = |changes: Option<&str>, delete: Option<&str>, key: &str| {
            let request = ApplyRequest {
                is_stream: false,
                followed: None,
                keep_epochs: None,
                changes: changes.map(|content| input("changes.csv", content)),
                delete: delete.map(|content| input("gone.csv", content)),
                ingest: columns(&[key]),
                on_duplicate: OnDuplicate::Error,
            };
            Update::open(&out, None, &Cancel::new()).unwrap().apply(request, &cpu, &Silent)
        };
        let refused = |changes: Option<&str>, delete: Option<&str>, key: &str, words: &str| {
            let error = apply(changes, delete, key).unwrap_err();
            assert!(matches!(error, UpdateError::OtherColumns { .. }), "{error}");
            assert!(error.to_string().starts_with(words), "{error}");
        };
        let key = if by_key { "email" } else { "row" };
        let at = if by_key { "mail 1" } else { "1" };
        let none =
            "the table has values of the columns name, and the changes have values of the columns (none): ";
        refused(Some(&format!("{key}\n{at}\n")), None, key, none);
        let other =
            "the table has values of the columns name, and the changes have values of the columns phone: ";
        refused(Some(&format!("{key},phone\n{at},1\n")), None, key, other);
        refused(
            Some(&format!("{key},phone,name\n{at},1,n\n")),
            None,
            key,
            &other.replace("phone", "phone, name"),
        );
        if by_key {
            let keys =
                "the table has keys of the columns email, and the changes have keys of the columns mail: ";
            refused(Some("mail,name\nmail 1,n\n"), None, "mail", keys);
            refused(None, Some("mail,name\nmail 1,n\n"), "mail", keys);
        }
        let gone = if by_key { "mail 2" } else { "2" };
        apply(Some(&format!("name,{key}\nnew,{at}\n")), Some(&format!("{key},x\n{gone},x\n")), key).unwrap();
        // A new base knows them too.
        Update::open(&out, None, &Cancel::new())
            .unwrap()
            .compact(CompactRequest::default(), &cpu, &Silent)
            .unwrap();
        refused(Some(&format!("{key},phone\n{at},1\n")), None, key, other);
        apply(Some(&format!("{key},name\n{at},newer\n")), None, key).unwrap();
    }
}
