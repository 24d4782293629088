//! The facts of tables of every parameter set, in the shape that the page chooses: the bytes of messages, keys and files, the
//! shares of parts, the odds of failure. A fact that changes is seen by all clients and operators, so `facts.txt` has them all.
//! `HUSH_WRITE_FACTS=1 cargo test -p hush-protocol facts_stay` writes it.

use std::{env, fmt::Write, fs, ops::Range, path::Path};

use hush_protocol::{
    Protocol,
    any_page::{SegmentParams, Slots, TableParams},
    facts::FileSpec,
    presets::presets_of,
    table::{SegmentShape, TableShape},
};

const SLOTS: [Slots; 3] = [
    Slots { count: 1000, slot_bytes: 1, by_key: false },
    Slots { count: 1 << 20, slot_bytes: 32, by_key: true },
    Slots { count: 1 << 16, slot_bytes: 3000, by_key: false },
];

#[test]
fn facts_stay() {
    let mut actual = String::new();
    for &protocol in Protocol::ALL {
        for preset in presets_of(protocol).into_iter().filter(|preset| !preset.name.starts_with("INSECURE")) {
            for slots in SLOTS {
                let page = protocol.page();
                let shape = page.shape(preset.name, slots, None).unwrap();
                writeln!(
                    actual,
                    "{protocol} {}, {} slots of {} bytes",
                    preset.name, slots.count, slots.slot_bytes
                )
                .unwrap();
                match page.table(preset.name, shape) {
                    Ok(table) => write_table(&mut actual, &table).unwrap(),
                    Err(error) => writeln!(actual, "  {error}").unwrap(),
                }
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/facts.txt");
    if env::var_os("HUSH_WRITE_FACTS").is_some() {
        fs::write(&path, &actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    for (number, (actual, expected)) in (1..).zip(actual.lines().zip(expected.lines())) {
        assert_eq!(actual, expected, "line {number} of facts.txt");
    }
    assert_eq!(actual.len(), expected.len());
}

fn write_table(out: &mut String, table: &TableParams) -> std::fmt::Result {
    let facts = table.facts();
    write_facts(out, table.base())?;
    writeln!(
        out,
        "  words {:?}; prepared {} B; held {} B; whitened {}; local {}; scans expansions {}; finished by query {}",
        facts.word_bits,
        facts.prepared_bytes,
        table.held_bytes(),
        facts.is_whitened,
        facts.is_local(),
        table.scans_expansions(),
        table.finished_by_query().is_some(),
    )?;
    let steps = [table.base().opening().len(), table.path().len()];
    writeln!(out, "  {} steps to open a batch, {} in all", steps[0], steps[1])?;
    let half = facts.units / 2;
    let parts: &[Range<usize>] = if half == 0 { &[0..facts.units] } else { &[0..half, half..facts.units] };
    for units in parts {
        let part = table.base().part(units);
        writeln!(
            out,
            "  part {units:?}: {} B, {} words, {} steps",
            bytes(&part.files),
            part.words,
            part.steps.len()
        )?;
    }
    let head = table.base().head(parts);
    writeln!(out, "  head: {} B, {} steps", bytes(&head.files), head.steps.len())?;
    let rule = &facts.segments;
    writeln!(
        out,
        "  segments of {} columns by {}, entries {:?}",
        rule.columns, rule.column_unit, rule.entries
    )?;
    let Some(&entries) = rule.entries.last() else { return Ok(()) };
    let shape = TableShape { columns: rule.column_unit, blocks: entries, slot_bytes: 100 };
    match table.segment(SegmentShape { shape, entries }) {
        Ok(segment) => write_facts(out, &segment),
        Err(error) => writeln!(out, "  {error}"),
    }
}

fn write_facts(out: &mut String, segment: &SegmentParams) -> std::fmt::Result {
    let facts = segment.facts();
    let TableShape { columns, blocks, slot_bytes } = facts.shape;
    writeln!(
        out,
        "  {columns} x {blocks} x {slot_bytes} B; {:?}, answer {} B, hint {} B, keys {} B; encoded {} B, files {} B; {} units, {} lanes; \
         {:.2} sigmas, 2^{:.1}",
        facts.query,
        facts.answer_bytes,
        facts.hint_bytes,
        facts.key_bytes,
        facts.encoded_bytes,
        segment.file_bytes(),
        facts.units,
        facts.lanes,
        facts.sigmas,
        facts.log2_failure,
    )
}

fn bytes(files: &[FileSpec]) -> u64 {
    files.iter().map(|file| file.content.bytes()).sum()
}
