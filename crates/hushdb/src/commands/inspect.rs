//! The command `hushdb inspect`.

use std::{
    error::Error,
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use hush_engine::{BackendChoice, Placement, SpreadChoice, server_bytes};
use hush_protocol::{
    ProtocolError,
    any_page::{SegmentParams, TableParams},
    descriptor::Descriptor,
    facts::{Content, LIFTED_FILE},
    schema::Column,
    signature::Signature,
};
use hush_store::snapshot::{ChangeCount, Choice, Header, Snapshot, Verify};
use serde_json::{Value, json};

use super::backends;
use crate::report;

/// The extent of the check of a table.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum VerifyArg {
    /// The header and the length of every file.
    Header,
    /// The checksum of every byte.
    Full,
}

impl From<VerifyArg> for Verify {
    fn from(arg: VerifyArg) -> Self {
        match arg {
            VerifyArg::Header => Verify::Header,
            VerifyArg::Full => Verify::Full,
        }
    }
}

/// Print everything about a table.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// Folder of the table.
    dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Extent of the check.
    #[arg(long, value_enum, default_value = "full")]
    verify: VerifyArg,
}

pub(crate) fn run(args: InspectArgs) -> Result<(), Box<dyn Error>> {
    let snapshot = Snapshot::open(&args.dir, args.verify.into())?;
    let placement = on_gpus(&args.dir);
    let text = if args.json {
        let mut facts = facts(snapshot.header())?;
        if let Some(placement) = placement {
            facts["placement"] = placement.to_string().into();
        }
        format!("{facts}\n")
    } else {
        let placement = placement
            .map(|placement| written(&[line("GPUs", format!("{} ({placement})", placement.described()))]));
        summary(snapshot.header())? + &placement.unwrap_or_default()
    };
    Ok(report::print(&text)?)
}

/// Returns where a server on this machine would put the table, if the machine has GPUs that can be used.
fn on_gpus(dir: &Path) -> Option<Placement> {
    let backends = backends(BackendChoice::Auto, 1).ok()?.with_spread(SpreadChoice::Auto);
    if backends.unused_because().is_some() {
        return None;
    }
    hush_engine::check(dir, &backends).ok()
}

/// Returns all facts about a table as JSON.
pub(crate) fn facts(header: &Header) -> Result<Value, ProtocolError> {
    let descriptor = &header.descriptor;
    let signature = header.descriptor.signature.as_ref();
    let params = descriptor.params()?;
    let table = params.facts();
    let shape = table.shape;
    let encoded_slots = (shape.columns * shape.blocks) as f64;
    let mut facts = json!({
        "epoch": hex::encode(descriptor.epoch),
        "publisher": signature.map(|signature| signature.publisher),
        "signed_name": signature.map(|signature| &signature.name),
        "serial": signature.map(|signature| signature.serial),
        "signed_at": signature.map(|signature| signature.time),
        "format_version": header.version,
        "written_by": header.written_by,
        "source": header.source,
        "protocol": table.protocol,
        "lookup": lookup(descriptor),
        "filter": filter(descriptor),
        "records": descriptor.rows(),
        "preset": table.preset,
        "security_bits": table.security_bits,
        "failure_log2": finite(table.log2_failure),
        "noise_sigmas": finite(table.sigmas),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "fingerprint_bytes": descriptor.slot.fingerprint_bytes,
        "schema": descriptor.schema,
        "compression": descriptor.compression,
        "sorted": descriptor.sorted,
        "length_bytes": descriptor.slot.length_bytes,
        "max_value_bytes": descriptor.slot.max_value_bytes,
        "payload_bytes": header.payload_bytes,
        "encoded_bytes": table.encoded_bytes,
        "slots_per_record": encoded_slots / descriptor.records as f64,
        "hint_bytes": descriptor.hint_bytes(),
        "server_bytes": server_bytes(&params, 1),
        "ready_key_bytes": ready_key_bytes(&params),
        "key_bytes": table.key_bytes,
        "query_bytes": table.query.total(),
        "answer_bytes": table.answer_bytes,
        "segments": segments(descriptor, &params),
        "choice": header.choice,
        "changes": header.changes,
        "files": header.files.iter().map(|f| json!({ "name": f.name, "bytes": f.bytes })).collect::<Vec<_>>(),
    });
    if let Value::Object(facts) = &mut facts {
        facts.extend(table.details.iter().map(|(name, value)| (name.to_string(), value.clone())));
    }
    Ok(facts)
}

/// Returns the segments of a table, the base first.
fn segments(descriptor: &Descriptor, params: &TableParams) -> Vec<Value> {
    let base = ("base", descriptor.records);
    let beside = descriptor.segments.iter().map(|segment| (segment.role.name(), segment.records));
    let hints = descriptor.given().map(|(hint, _)| hint.map_or(0, |hint| hint.bytes));
    let all = std::iter::once(base).chain(beside).zip(hints).zip(params.segments());
    let mut described = Vec::new();
    for (((role, records), hint_bytes), segment) in all {
        let facts = segment.facts();
        described.push(json!({
            "role": role,
            "records": records,
            "protocol": facts.protocol,
            "columns": facts.shape.columns,
            "blocks": facts.shape.blocks,
            "slot_bytes": facts.shape.slot_bytes,
            "answer_bytes": facts.answer_bytes,
            "hint_bytes": hint_bytes,
            "noise_sigmas": finite(facts.sigmas),
            "server_bytes": held_bytes(segment),
        }));
    }
    described
}

/// Returns a line for each tier of a table, with the range of bytes of values that it holds.
fn tiers(descriptor: &Descriptor, params: &TableParams) -> Vec<(String, String)> {
    let records = std::iter::once(descriptor.records).chain(descriptor.segments.iter().map(|s| s.records));
    let own = &params.segments()[..1 + descriptor.tiers()];
    let mut from = 0;
    let mut lines = Vec::new();
    for (index, (segment, records)) in own.iter().zip(records).enumerate() {
        let facts = segment.facts();
        let end = from + if index == 0 { descriptor.slot.stored_bytes() } else { facts.shape.slot_bytes };
        let mut text = format!(
            "bytes {from} to {end} of {records} records: {} columns x {} blocks, {}, answers of {}",
            facts.shape.columns,
            facts.shape.blocks,
            report::bytes(segment.file_bytes()),
            report::bytes(facts.answer_bytes as u64)
        );
        if index > 0 {
            let rest: usize = own[index..].iter().map(|rest| rest.facts().answer_bytes).sum();
            let saved = report::bytes(rest as u64);
            text += &format!(" (without these records every answer is {saved} shorter)");
        }
        lines.push((format!("tier {}", index + 1), text));
        from = end;
    }
    lines
}

/// Describes how many of the changes that fit are used, and their size.
fn changes(count: ChangeCount, descriptor: &Descriptor, params: &TableParams) -> String {
    let segments = &params.segments()[1 + descriptor.tiers()..];
    format!(
        "{} of {}, {} of them deletions: {}, answers of {}",
        count.changes,
        count.room,
        count.deleted,
        report::bytes(segments.iter().map(SegmentParams::file_bytes).sum()),
        report::bytes(segments.iter().map(|segment| segment.facts().answer_bytes as u64).sum())
    )
}

/// Returns the bytes of server memory that the evaluation keys of a client take while they are ready for look-ups.
fn ready_key_bytes(params: &TableParams) -> u64 {
    server_bytes(params, 1) - server_bytes(params, 0)
}

/// Returns the bytes of a segment that a server holds in memory.
fn held_bytes(segment: &SegmentParams) -> u64 {
    let contents = segment.files().into_iter().map(|file| file.content);
    contents.filter(Content::is_held).map(|content| content.bytes()).sum()
}

/// Describes a server's memory for a table, with its parts.
fn server(params: &TableParams) -> String {
    let specs = params.files();
    let mut parts: Vec<(&str, u64)> = Vec::new();
    for spec in specs.iter().filter(|spec| spec.content.is_held()) {
        match parts.iter_mut().find(|(title, _)| *title == spec.title) {
            Some((_, bytes)) => *bytes += spec.content.bytes(),
            None => parts.push((spec.title, spec.content.bytes())),
        }
    }
    let mut texts: Vec<_> = parts
        .iter()
        .map(|&(title, bytes): &(&str, u64)| format!("{title} {}", report::bytes(bytes)))
        .collect();
    let keys = ready_key_bytes(params);
    if keys > 0 {
        texts.push(format!("keys of a client {}", report::bytes(keys)));
    }
    let all = report::bytes(server_bytes(params, 1));
    if texts.is_empty() { all } else { format!("{all} in all: {}", texts.join(", ")) }
}

/// Returns a finite number, or `None`, which is null in JSON: JSON has no infinity, and an answer without noise is infinitely many
/// sigmas away from an error.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn lookup(descriptor: &Descriptor) -> &'static str {
    if descriptor.is_by_key() { "key" } else { "index" }
}

fn filter(descriptor: &Descriptor) -> Option<String> {
    descriptor.lookup.keys().map(|keys| keys.filter.to_string())
}

/// Returns all facts about a table as text.
pub(crate) fn summary(header: &Header) -> Result<String, ProtocolError> {
    let params = header.descriptor.params()?;
    let lines = [
        identity_lines(header, &params),
        value_lines(header),
        size_lines(header, &params),
        file_lines(&header.descriptor, &params),
    ];
    Ok(lines.iter().map(|lines| written(lines)).collect())
}

/// Returns the text of some lines.
fn written(lines: &[FactLine]) -> String {
    let mut out = String::new();
    for (name, value) in lines {
        writeln!(out, "  {name:<10} {value}").expect("memory");
    }
    out
}

/// A name and its facts.
type FactLine = (String, String);

fn line(name: &str, value: String) -> FactLine {
    (name.into(), value)
}

/// Returns the lines about the table itself: its epoch, who signed it, its protocol, why it was chosen, its security.
fn identity_lines(header: &Header, params: &TableParams) -> Vec<FactLine> {
    let descriptor = &header.descriptor;
    let facts = params.facts();
    let slots = (facts.shape.columns * facts.shape.blocks) as f64 / descriptor.records as f64;
    let filter =
        filter(descriptor).map_or(String::new(), |name| format!(", {name}: {slots:.4} slots a record"));
    let mut lines = vec![line("epoch", hex::encode(descriptor.epoch))];
    if let Some(Signature { publisher, name, serial, .. }) = &descriptor.signature {
        lines.push(line("publisher", format!("{publisher}, signed as {name}, serial {serial}")));
    }
    let records = descriptor.rows();
    let by = lookup(descriptor);
    lines.push(line("source", format!("{}, {records} records, by {by}{filter}", header.source)));
    lines.push(line("protocol", format!("{} with {}", facts.protocol, facts.preset)));
    if let Some(Choice { goal, machine, chosen, next }) = &header.choice {
        lines.push(line("chosen", format!("by {goal}, for {machine}: {chosen}")));
        lines.push(line("next best", next.clone().unwrap_or_else(|| "none".into())));
    }
    let bits = facts.security_bits;
    let log2_failure = facts.log2_failure;
    let sigmas = facts.sigmas;
    let security = match facts.is_local() {
        true => {
            "nothing of a look-up is sent: clients look records up in the table that they download".into()
        }
        false => {
            format!(
                "{bits:.1} bits; an answer fails with probability 2^{log2_failure:.0} ({sigmas:.1} sigma)"
            )
        }
    };
    lines.push(line("security", security));
    let shape = facts.shape;
    let text = format!("{} columns x {} blocks of {} bytes", shape.columns, shape.blocks, shape.slot_bytes);
    lines.push(line("shape", text));
    lines
}

/// Returns the lines about the values and their columns.
fn value_lines(header: &Header) -> Vec<FactLine> {
    let descriptor = &header.descriptor;
    let values = format!(
        "{} in all, at most {} bytes each{}; fingerprint {} bytes",
        report::bytes(header.payload_bytes),
        descriptor.slot.max_value_bytes,
        if descriptor.compression.is_some() { ", compressed" } else { "" },
        descriptor.slot.fingerprint_bytes
    );
    let mut lines = vec![line("values", values)];
    if let Some(compression) = &descriptor.compression {
        let dictionary = report::bytes(compression.dictionary.bytes);
        let longest = compression.max_value_bytes;
        let text =
            format!("zstd, values of up to {longest} bytes; dictionary of {dictionary}, downloaded once");
        lines.push(line("compressed", text));
    }
    if let Some(sorted) = &descriptor.sorted {
        let fences = sorted.files().map(|file| file.blob.bytes).sum();
        let ranges = if sorted.range.is_some() { " of ranges" } else { "" };
        lines.push(line(
            "sorted",
            format!(
                "{} rows{ranges} in {} leaves, by {}; fences of {}, downloaded once",
                sorted.rows,
                descriptor.records,
                sorted.order.name(),
                report::bytes(fences)
            ),
        ));
    }
    if let Some(schema) = &descriptor.schema {
        for (name, columns) in [("key", &schema.key), ("columns", &schema.value)] {
            if !columns.is_empty() {
                lines.push(line(
                    name,
                    columns
                        .iter()
                        .map(|Column(name, own): &Column| format!("{} ({})", name.escape_debug(), own.name()))
                        .collect::<Vec<_>>()
                        .join(", "),
                ));
            }
        }
        if !schema.normalize.is_empty() {
            lines.push(line("normalized", format!("keys, by {}", schema.normalize)));
        }
    }
    lines
}

/// Returns the lines about the sizes of the table and of a look-up.
fn size_lines(header: &Header, params: &TableParams) -> Vec<FactLine> {
    let descriptor = &header.descriptor;
    let facts = params.facts();
    let mut lines = Vec::new();
    if descriptor.tiers() > 0 {
        lines.extend(tiers(descriptor, params).into_iter().map(|(name, text)| line(&name, text)));
    }
    if let Some(count) = header.changes {
        lines.push(line("changes", changes(count, descriptor, params)));
    }
    let encoded = facts.encoded_bytes;
    let ratio = ratio(encoded, header.payload_bytes);
    lines.push(line("encoded", format!("{} ({ratio})", report::bytes(encoded))));
    lines.push(line("server", server(params)));
    lines.push(line("query", report::bytes(facts.query.total() as u64)));
    lines.push(line("answer", report::bytes(facts.answer_bytes as u64)));
    lines
}

/// Returns the lines about the files beside the database: what clients download or upload once, and what the server keeps.
fn file_lines(descriptor: &Descriptor, params: &TableParams) -> Vec<FactLine> {
    let mut files: Vec<(&str, u64, &str)> = Vec::new();
    let hints = descriptor.given().map(|(hint, _)| hint.map_or(0, |hint| hint.bytes));
    for (segment, hint) in params.segments().iter().zip(hints) {
        for file in segment.files() {
            let (bytes, kept) = match file.content {
                Content::Download { .. } => (hint, "downloaded once an epoch by each client"),
                Content::Eval(_) if file.name == LIFTED_FILE => (file.content.bytes(), "kept by the server"),
                Content::Bytes(_) | Content::Eval(_) | Content::Symbols { .. } | Content::Chain { .. } => {
                    continue;
                }
            };
            // Segments have the same kinds of files.
            match files.iter_mut().find(|(title, ..)| *title == file.title) {
                Some((_, sum, _)) => *sum += bytes,
                None => files.push((file.title, bytes, kept)),
            }
        }
    }
    let said = |(title, bytes, kept)| line(title, format!("{}, {kept}", report::bytes(bytes)));
    let mut lines: Vec<_> = files.into_iter().map(said).collect();
    let facts = params.facts();
    if facts.keys.is_some() {
        let keys = report::bytes(facts.key_bytes as u64);
        lines.push(line("keys", format!("{keys}, uploaded once by each client")));
    }
    lines
}

fn ratio(encoded: u64, payload: u64) -> String {
    if payload == 0 {
        "no payload".into()
    } else {
        format!("{:.3}x payload", encoded as f64 / payload as f64)
    }
}
