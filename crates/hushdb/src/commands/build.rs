//! The command `hushdb build`.

use std::{error::Error, num::NonZeroUsize, path::PathBuf, process::ExitCode};

use clap::Args;
use hush_build::{
    Built, Job, JobError, JobRequest, SortRequest,
    builder::{BuildOptions, ChangeRoom, Compress, DEFAULT_TIERS, Tiers},
};
use hush_engine::{BackendChoice, Cancel, Progress};
use hush_he::params::unknown_preset;
use hush_ingest::{IngestOptions, OnDuplicate};
use hush_protocol::{
    Protocol, descriptor::MAX_TIERS, facts::DbForm, keyword::FilterKind, normal_form::Normalization,
    slot::MAX_VALUE_BYTES, sorted::order::SortOrder, wording::Wording,
};
use hush_store::snapshot::{Phase, SnapshotWriter};

use super::{
    backends, bar, inspect, interrupt,
    rows::{self, RowArgs},
    signing_key::SignArgs,
    tell_unused_gpu, threads,
    wishes::{self, WishArgs},
};

/// Build a table from a file of records.
#[derive(Args)]
pub(crate) struct BuildArgs {
    /// Records: a .csv, .jsonl, .arrow (also .gz or .zst), .parquet or .sqlite file, here or at s3://, gs://, az://
    /// or https://; a folder of files; postgres://USER@HOST/DATABASE; or - for standard input. Several files, or a
    /// pattern of files, of the same columns are one table.
    #[arg(required = true)]
    input: Vec<PathBuf>,
    /// Folder to put the table in. A link to a folder is followed.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Column of the key; repeat it for a key of several columns. Without it, records are looked up by position.
    #[arg(long, value_name = "COL")]
    key: Vec<String>,
    /// Refuse an input with another number of rows, such as one that was cut off.
    #[arg(long, value_name = "N")]
    expect_rows: Option<u64>,
    /// Normal form of keys, as a list of steps that every client applies too: lower (lower case), nfc (composed
    /// Unicode), trim (no white space around the key).
    #[arg(long, value_name = "STEP,..", value_delimiter = ',')]
    normalize: Vec<Normalization>,
    #[command(flatten)]
    rows: RowArgs,
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = parse_protocol, help = protocol_help())]
    protocol: ProtocolChoice,
    /// How to treat a key that occurs twice: error, first, last, or all, which makes a list of its values.
    #[arg(long, default_value = "error", value_name = "WHAT")]
    on_duplicate: OnDuplicate,
    /// Group rows by the first N characters of their keys. The value of such a prefix has a line for each row: the rest of the key,
    /// a colon and the value.
    #[arg(long, value_name = "N", requires = "key", conflicts_with_all = ["on_duplicate", "normalize"], value_parser = clap::value_parser!(u32).range(1..=4096))]
    group_prefix: Option<u32>,
    /// Sort rows by this order of their keys: bytes, number, ip or hex. Clients then find neighbours of a key, prefixes and ranges.
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["group_prefix", "max_tiers", "tiers", "filter", "fingerprint_bytes"])]
    sorted: Option<SortOrder>,
    /// Columns of rows that are ranges, in place of the key: FROM,TO, or one column of networks such as 192.0.2.0/24. A key is in
    /// the smallest range that has it.
    #[arg(
        long,
        value_name = "COL[,COL]",
        requires = "sorted",
        conflicts_with = "key",
        value_delimiter = ','
    )]
    range: Vec<String>,
    /// Bytes of a leaf of a sorted table, which a look-up gets. If not given, what suits the goal.
    #[arg(long, value_name = "BYTES", requires = "sorted", value_parser = clap::value_parser!(u32).range(..=MAX_VALUE_BYTES as i64))]
    leaf_bytes: Option<u32>,
    /// Bytes of rows that each leaf repeats from those behind it: what a prefix finds is whole up to this length. If not given, a
    /// sixteenth of a leaf for bytes, and a row for other orders.
    #[arg(long, value_name = "BYTES", requires = "sorted", value_parser = clap::value_parser!(u32).range(..=MAX_VALUE_BYTES as i64))]
    overlap: Option<u32>,
    /// Refuse values longer than this many bytes, at most 16777216. Every answer is as long as the longest value.
    #[arg(
        long, value_name = "BYTES", default_value_t = hush_ingest::DEFAULT_MAX_VALUE_SIZE,
        value_parser = clap::value_parser!(u32).range(..=MAX_VALUE_BYTES as i64)
    )]
    max_value_size: u32,
    /// Parameter set. If not given, one that suits the protocol and the records. With --protocol auto, only protocols
    /// that take the set are considered.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Most length tiers: values of very different lengths go into several segments, so that short values do not take
    /// as much as the longest. The cheapest number up to this one is taken; 1 makes one segment.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TIERS, value_parser = parse_tiers_at_most, conflicts_with = "tiers")]
    max_tiers: usize,
    /// Lengths in bytes at which tiers end, such as 192,640,16384. The last is no shorter than the longest value.
    #[arg(long, value_name = "BYTES,..", value_delimiter = ',')]
    tiers: Vec<usize>,
    /// Compress values: none, zstd, or auto, which is zstd if that saves a quarter of the server's memory. Every
    /// client then downloads a dictionary of up to some 80 KiB once.
    #[arg(long, value_name = "HOW", default_value = "none")]
    compress: Compress,
    /// Key filter: band64 to band256, fuse3 or fuse4. If not given, band256, or band128 for a table of several tiers,
    /// which takes band64 too.
    #[arg(long, value_name = "NAME")]
    filter: Option<FilterKind>,
    /// Form of plaintexts, with --protocol tfhe. Symbols are as long as the records, and transformed for every
    /// look-up. Evaluation form is 4 to 16 times as long, and scanned in a third of the time. If not given,
    /// evaluation up to 1 GiB, else symbols.
    #[arg(long, value_name = "FORM")]
    form: Option<DbForm>,
    /// Bytes of a key's fingerprint. An absent key is taken for present once in 256^BYTES look-ups.
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=16))]
    fingerprint_bytes: u8,
    /// Columns (D0) to aim for. More columns make queries longer, and hints and answers shorter; in onion they leave
    /// less to fold, and with packing less to scan and to keep beside the table. A few thousand are few.
    #[arg(long, value_name = "N")]
    columns: Option<NonZeroUsize>,
    /// Keep room for changes, which `hushdb apply` makes without a new build. The table keeps its records on disk,
    /// for `hushdb compact`.
    #[arg(long)]
    updatable: bool,
    /// Number of changes to keep room for. If not given, a hundredth of the records, and at least 1000.
    #[arg(long, value_name = "N", requires = "updatable", value_parser = clap::value_parser!(u32).range(1..))]
    changes: Option<u32>,
    #[command(flatten)]
    wishes: WishArgs,
    /// Profile of the machine to choose for (from `hushdb plan --save-machine`), with a goal or a budget. If not
    /// given, this machine.
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    #[command(flatten)]
    sign: SignArgs,
    /// Replace an existing table.
    #[arg(long)]
    force: bool,
    /// Build even if the table takes more disk or memory than is free here.
    #[arg(long)]
    force_size: bool,
    /// Number of threads. If not given, one for every core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Backend that computes the hint and what follows from it: auto, cpu or cuda. auto takes a GPU with room for the
    /// table, if there is one. The table does not depend on it.
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: BackendChoice,
}

/// The choice of a protocol; `None` is `auto`.
type ProtocolChoice = Option<Protocol>;

fn parse_protocol(name: &str) -> Result<ProtocolChoice, String> {
    if name == "auto" {
        return Ok(None);
    }
    name.parse()
        .map(Some)
        .map_err(|_| format!("unknown protocol '{name}': use auto, {}", listed(Protocol::ALL, "or")))
}

fn parse_tiers_at_most(text: &str) -> Result<usize, String> {
    let tiers = text.parse().ok().filter(|tiers| (1..=MAX_TIERS).contains(tiers));
    tiers.ok_or_else(|| format!("a number of tiers is 1 to {MAX_TIERS}"))
}

fn protocol_help() -> String {
    format!(
        "Protocol: auto, {}. auto is the one that suits the goal and the budgets best, without keys of clients unless --linkable: \
         hushdb plan lists all, with what each costs",
        listed(Protocol::ALL, "or")
    )
}

/// Returns the names for a sentence: "a, b or c".
fn listed(protocols: &[Protocol], conjunction: &str) -> String {
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.name()).collect();
    match names.split_last() {
        Some((last, [_, ..])) => format!("{} {conjunction} {last}", names[..names.len() - 1].join(", ")),
        _ => names.concat(),
    }
}

pub(crate) fn run(args: BuildArgs) -> ExitCode {
    interrupt::exit(make(args))
}

fn make(args: BuildArgs) -> Result<(), Box<dyn Error>> {
    // The target is checked first, since measuring the machine takes long.
    SnapshotWriter::check(&args.out, args.force)?;
    let choice = args.backend;
    let asked = args.threads;
    let out = args.out.clone();
    let progress = bar::Bar::new();
    let request = prepared(args, &progress)?;
    progress.finish();
    let backends = backends(choice, threads(asked))?;
    tell_unused_gpu(&backends);
    let cancel = Cancel::new();
    let job = Job::open(request, &cancel)?;
    interrupt::cancel_on_interrupt(job.partial_dir(), job.phase(), &cancel)?;
    let progress = bar::Bar::new();
    let Built { header, seconds } = job.run(&backends, &progress)?;
    if cancel.is_cancelled() {
        return Err(JobError::Cancelled { phase: Phase::Committed }.into());
    }
    progress.finish();
    say!("built {} in {seconds:.1} s", out.display());
    say!("{}", inspect::summary(&header)?.trim_end());
    Ok(())
}

/// Returns the request of a build. Measures this machine if a table is chosen for it and no measurement is cached.
pub(crate) fn prepared(args: BuildArgs, progress: &dyn Progress) -> Result<JobRequest, Box<dyn Error>> {
    let asked = args.threads;
    let mut request = request(args)?;
    let options = &mut request.options;
    if options.machine.is_none() && options.wishes.is_some() {
        options.machine = Some(wishes::this_machine(threads(asked), false, progress)?);
    }
    Ok(request)
}

/// Returns the request of a build.
pub(super) fn request(args: BuildArgs) -> Result<JobRequest, String> {
    args.preset.iter().try_for_each(|preset| check_preset(args.protocol, preset))?;
    if args.on_duplicate == OnDuplicate::All && args.key.is_empty() {
        return Err(Wording(
            "{on-duplicate=all} makes lists of the rows of a key, and there is none: choose it with {key}",
        )
        .to_string());
    }
    let is_range = !args.range.is_empty();
    if let Some(order) = args.sorted {
        if args.key.is_empty() && !is_range {
            return Err(
                Wording("rows are sorted by a key: choose it with {key}, or ranges with {range}").to_string()
            );
        }
        let is_network = args.range.len() == 1 && order == SortOrder::Ip;
        if is_range && args.range.len() != 2 && !is_network {
            return Err(Wording(
                "{range} names the columns of the first and the last key, or one of networks",
            )
            .to_string());
        }
    }
    Ok(JobRequest {
        input: rows::input(&args.input),
        ingest: IngestOptions {
            key: if is_range { args.range } else { args.key },
            expect_rows: args.expect_rows,
            normalize: args.normalize.into_iter().collect(),
            max_value_size: args.max_value_size,
            group_prefix: args.group_prefix.map(|characters| characters as usize),
            ..args.rows.options()
        },
        on_duplicate: args.on_duplicate,
        sorted: args.sorted.map(|order| SortRequest {
            order,
            is_range,
            leaf_bytes: args.leaf_bytes.map(|bytes| bytes as usize),
            overlap: args.overlap.map(|bytes| bytes as usize),
        }),
        out: args.out,
        force: args.force,
        options: BuildOptions {
            protocol: args.protocol,
            preset: args.preset,
            filter: args.filter,
            form: args.form,
            compress: args.compress,
            tiers: if args.tiers.is_empty() {
                Tiers::AtMost(args.max_tiers)
            } else {
                Tiers::Ends(args.tiers)
            },
            fingerprint_bytes: args.fingerprint_bytes,
            columns: args.columns.map(NonZeroUsize::get),
            force_size: args.force_size,
            changes: args
                .updatable
                .then(|| args.changes.map_or(ChangeRoom::Auto, |changes| ChangeRoom::For(changes as usize))),
            signing: args.sign.signing()?,
            wishes: args.wishes.given(),
            machine: args.machine.as_deref().map(wishes::read_machine).transpose()?,
            ..BuildOptions::default()
        },
    })
}

/// Refuses an unknown parameter set, and one that the protocol does not take.
fn check_preset(protocol: ProtocolChoice, preset: &str) -> Result<(), String> {
    let all = Protocol::ALL.iter().copied();
    let takers: Vec<_> = all.filter(|protocol| protocol.page().has_set(preset)).collect();
    match protocol {
        _ if preset.starts_with("INSECURE") && !cfg!(feature = "insecure-presets") => Err(format!(
            "{preset} is for tests and has no security: {}",
            Wording("choose another {preset} (hushdb presets lists them)")
        )),
        _ if takers.is_empty() => Err(unknown_preset(preset).to_string()),
        Some(asked) if !takers.contains(&asked) => Err(format!(
            "{preset} is a parameter set of {}, not of {asked}: {}",
            listed(&takers, "and"),
            Wording("choose another {preset} or {protocol}")
        )),
        _ => Ok(()),
    }
}
