//! `hushdb inspect`.

use std::{error::Error, fmt::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use hush_protocol::{
    ProtocolError,
    descriptor::{Descriptor, Lookup},
    table::TableParams,
};
use hush_store::snapshot::{
    CHAIN_FILE, COLUMNS_FILE, DB_FILE, FileEntry, HINT_FILE, Header, LIFTED_FILE, SECOND_DB_FILE, Snapshot,
    Verify,
};
use serde_json::{Value, json};

use crate::report;

/// How much of a table is checked.
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
    /// How much to check.
    #[arg(long, value_enum, default_value = "full")]
    verify: VerifyArg,
}

pub(crate) fn run(args: InspectArgs) -> Result<(), Box<dyn Error>> {
    let snapshot = Snapshot::open(&args.dir, args.verify.into())?;
    if args.json {
        println!("{}", facts(snapshot.header())?);
    } else {
        print!("{}", summary(snapshot.header())?);
    }
    Ok(())
}

/// Everything about a table, as JSON.
fn facts(header: &Header) -> Result<Value, ProtocolError> {
    let descriptor = &header.descriptor;
    let params = descriptor.params()?;
    let shape = params.shape();
    let encoded_slots = (shape.columns * shape.blocks) as f64;
    let mut facts = json!({
        "epoch": hex::encode(descriptor.epoch),
        "format_version": header.version,
        "written_by": header.written_by,
        "source": header.source,
        "protocol": params.protocol(),
        "lookup": lookup(descriptor),
        "filter": filter(descriptor),
        "records": descriptor.records,
        "preset": params.preset(),
        "security_bits": params.security_bits(),
        "failure_log2": finite(params.log2_failure()),
        "noise_sigmas": finite(params.sigmas()),
        "columns": shape.columns,
        "blocks": shape.blocks,
        "slot_bytes": shape.slot_bytes,
        "fingerprint_bytes": descriptor.slot.fingerprint_bytes,
        "length_bytes": descriptor.slot.length_bytes,
        "max_value_bytes": descriptor.slot.max_value_bytes,
        "payload_bytes": header.payload_bytes,
        "encoded_bytes": params.encoded_bytes(),
        "slots_per_record": encoded_slots / descriptor.records as f64,
        "hint_bytes": params.hint_bytes(),
        "server_bytes": server_bytes(header),
        "key_bytes": params.key_bytes(),
        "query_bytes": params.query_bytes().total(),
        "answer_bytes": params.answer_bytes(),
        "files": header.files.iter().map(|f| json!({ "name": f.name, "bytes": f.bytes })).collect::<Vec<_>>(),
    });
    let own = match &params {
        TableParams::Lwe(table) => {
            let (lwe, widths) = (table.lwe(), table.widths());
            json!({
                "lwe_dimension": lwe.n(),
                "error_std": lwe.error_std(),
                "rows": table.rows(),
                "word_bits": { "query": widths.query, "hint": widths.hint, "answer": widths.answer },
            })
        }
        TableParams::Ring(table) => json!({
            "ring_degree": table.ring().degree(),
            "symbol_bits": table.ring().plaintext_bits(),
            "entries": table.entries(),
            "folds": table.folds(),
            "lanes": table.lanes(),
            "planes": table.planes(),
        }),
        TableParams::Pack(table) => {
            let (lwe, ring, first) = (table.params().lwe(), table.params().ring(), table.first_shape());
            json!({
                "lwe_dimension": lwe.n(),
                "error_std": lwe.error_std(),
                "rows": table.rows(),
                "ring_degree": ring.degree(),
                "word_bits": { "query": table.query_bits(), "packed": ring.plaintext_bits() },
                "entries": first.entries(),
                "folds": table.folds(),
                "lanes": table.lanes(),
                "planes": first.planes(),
                "lifted_bytes": table.hint_tiling().bytes(),
            })
        }
        TableParams::Column(table) => {
            let (lwe, shape) = (table.params().lwe(), table.pack_shape());
            json!({
                "lwe_dimension": lwe.n(),
                "error_std": lwe.error_std(),
                "rows": table.rows(),
                "ring_degree": table.params().ring().degree(),
                "word_bits": { "query": table.query_bits() },
                "entries": shape.entries(),
                "external_products": table.external_products(),
                "lanes": table.lanes(),
                "planes": shape.planes(),
                "pack_column_bytes": table.columns_tiling().bytes(),
            })
        }
    };
    if let (Value::Object(facts), Value::Object(own)) = (&mut facts, own) {
        facts.extend(own);
    }
    Ok(facts)
}

/// Bytes of all that a server holds of a table.
fn server_bytes(header: &Header) -> u64 {
    header.files.iter().map(|file| file.bytes).sum()
}

/// The same with its parts.
fn server(header: &Header) -> String {
    let part = |file: &FileEntry| {
        let name = match file.name.as_str() {
            DB_FILE => "database",
            SECOND_DB_FILE => "second database",
            COLUMNS_FILE => "pack columns",
            CHAIN_FILE => "digits and masks",
            HINT_FILE | LIFTED_FILE => "hint",
            name => name,
        };
        format!("{name} {}", report::bytes(file.bytes))
    };
    let parts: Vec<_> = header.files.iter().map(part).collect();
    format!("{} in all: {}", report::bytes(server_bytes(header)), parts.join(", "))
}

/// JSON has no infinity: no noise at all is null.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn lookup(descriptor: &Descriptor) -> &'static str {
    match descriptor.lookup {
        Lookup::Index => "index",
        Lookup::Key(_) => "key",
    }
}

fn filter(descriptor: &Descriptor) -> Option<String> {
    match &descriptor.lookup {
        Lookup::Index => None,
        Lookup::Key(key) => Some(key.filter.to_string()),
    }
}

/// Everything about a table, to read.
pub(crate) fn summary(header: &Header) -> Result<String, ProtocolError> {
    let descriptor = &header.descriptor;
    let params = descriptor.params()?;
    let shape = params.shape();
    let encoded = params.encoded_bytes() as u64;
    let slots = (shape.columns * shape.blocks) as f64 / descriptor.records as f64;
    let filter =
        filter(descriptor).map_or(String::new(), |name| format!(", {name}: {slots:.4} slots a record"));
    let mut out = String::new();
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<10} {value}").expect("memory");
    line("epoch", hex::encode(descriptor.epoch));
    line(
        "source",
        format!("{}, {} records, by {}{filter}", header.source, descriptor.records, lookup(descriptor)),
    );
    line("protocol", format!("{} with {}", params.protocol(), params.preset()));
    line(
        "security",
        format!(
            "{:.1} bits; an answer fails with probability 2^{:.0} ({:.1} sigma)",
            params.security_bits(),
            params.log2_failure(),
            params.sigmas()
        ),
    );
    line(
        "shape",
        format!("{} columns x {} blocks of {} bytes", shape.columns, shape.blocks, shape.slot_bytes),
    );
    line(
        "values",
        format!(
            "{} in all, at most {} bytes each; fingerprint {} bytes",
            report::bytes(header.payload_bytes),
            descriptor.slot.max_value_bytes,
            descriptor.slot.fingerprint_bytes
        ),
    );
    line("encoded", format!("{} ({})", report::bytes(encoded), ratio(encoded, header.payload_bytes)));
    line("server", server(header));
    line("query", report::bytes(params.query_bytes().total() as u64));
    line("answer", report::bytes(params.answer_bytes() as u64));
    match &params {
        TableParams::Lwe(_) => {
            let hint = report::bytes(params.hint_bytes() as u64);
            line("hint", format!("{hint}, downloaded once by each client"));
        }
        TableParams::Ring(_) | TableParams::Column(_) => {}
        TableParams::Pack(table) => {
            let hint = report::bytes(table.hint_tiling().bytes() as u64);
            line("hint", format!("{hint}, kept by the server"));
        }
    }
    if params.protocol().has_evaluation_keys() {
        let keys = report::bytes(params.key_bytes() as u64);
        line("keys", format!("{keys}, uploaded once by each client"));
    }
    Ok(out)
}

fn ratio(encoded: u64, payload: u64) -> String {
    if payload == 0 {
        "no payload".into()
    } else {
        format!("{:.3}x payload", encoded as f64 / payload as f64)
    }
}
