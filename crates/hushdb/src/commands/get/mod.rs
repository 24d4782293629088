//! The command `hushdb get`: private look-ups of records.

mod matching;
mod text;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Display,
    fs,
    io::{self, BufRead, IsTerminal, Read, Write},
    mem,
    os::unix::ffi::{OsStrExt, OsStringExt},
    panic::resume_unwind,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hush_build::planner::Network;
use hush_client::{
    Acceptance, Trust,
    http::{
        Answers, BearerToken, CallOptions, DEFAULT_LOOKUPS_PER_KEY, DEFAULT_MAX_HINT_BYTES, Event, HintCache,
        HttpClient, HttpError, HttpOptions, HttpTable, MAX_LOOKUPS_PER_KEY, Observer, RelayOptions,
        RetryPolicy, Stats,
    },
};
use hush_ingest::key_list;
use hush_protocol::{Code, facts::Facts, keyword::MAX_KEY_BYTES, sorted::found::RowMatch};
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use serde::Serialize;
use zeroize::Zeroizing;

use self::{
    matching::MatchArgs,
    text::{escaped, readable, wanted},
};
use super::{
    environment::variable,
    trust::{TrustArgs, file},
    wishes::parse_bytes,
};
use crate::report;

/// The length in bytes below which a hint is downloaded without a message.
const QUIET_HINT_BYTES: u64 = 4 << 20;

/// The shortest wait that is reported without a terminal.
const QUIET_WAIT: Duration = Duration::from_secs(2);

/// The arguments of `hushdb get`.
#[derive(clap::Args)]
#[command(after_long_help = "\
Output: the value of a single KEY is written as it is, with a newline only on a terminal. For several keys, or \
with --keys-file, one line each: the key, a tab, the value. There, backslash, tab, newline, other control \
characters and bytes that are not UTF-8 are written as \\\\, \\t, \\n and \\xNN. Keys that are not found are named on \
standard error. With --json, one object a line for every key. Lines are printed as answers come, in the order of \
the keys. A server that is started anew meanwhile is waited for.

A key over several columns is their values joined by the byte 0x1F: hushdb get URL $'Smith\\x1fJohn'.

Exit status: 0 if everything was found, 1 if something was not, 2 after an error.")]
pub(crate) struct GetArgs {
    /// URL of the server, such as http://localhost:7700.
    url: String,
    /// Keys to look up. Other users of this machine can see them in the list of processes. To hide them, use - to read a key from a
    /// line of the terminal or standard input, or --keys-file.
    #[arg(value_name = "KEY", required_unless_present = "keys_file")]
    keys: Vec<OsString>,
    /// Name of the table. Optional if the server has only one.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Treat keys as positions in the input, from 0.
    #[arg(long)]
    index: bool,
    #[command(flatten)]
    matched: MatchArgs,
    /// Print a JSON object a line: key, found, value (null if it is not UTF-8), value_base64.
    #[arg(long)]
    json: bool,
    /// Print traffic, times, and what the server could see: on standard error, or with --json as the last object.
    #[arg(long)]
    stats: bool,
    /// Look up the keys in FILE too, one a line (- for standard input). Empty lines are skipped.
    #[arg(long, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// Prepare N queries before keys are read, so that the look-ups take less time. For tables of simple, frodo and double, and for
    /// keys that come later from the terminal or standard input.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    prepare: Option<u32>,
    /// Accept a table with this parameter set, which gives less than 128 bits of security.
    #[arg(long, value_name = "PRESET")]
    allow_weak: Option<String>,
    /// Accept only the table with this epoch, which its publisher announces. A server then cannot show you another table.
    #[arg(long, value_name = "HEX", value_parser = parse_epoch)]
    epoch: Option<Epoch>,
    /// Accept only tables that this publisher signed under the name in --table. KEY is the line that `hushdb keygen` printed, or
    /// KEY=NAME if the signed name differs from the server's. A table older than the last one seen is refused.
    #[arg(long, value_name = "KEY")]
    trust: Option<Trust>,
    /// Refuse a table whose hint is longer than BYTES. A hint, if the protocol has one, is downloaded once.
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_HINT_BYTES, value_parser = parse_bytes)]
    max_hint: u64,
    /// Token, if the server needs one. If not given, HUSHDB_TOKEN, which the list of processes does not show to other users.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    #[command(flatten)]
    trust_in: TrustArgs,
    /// URL of a relay to ask through (Oblivious HTTP), so that the server does not see who asks. --ca-cert is then for the relay.
    #[arg(long, value_name = "URL", conflicts_with = "client_cert")]
    relay: Option<String>,
    /// File of the server's keys for requests through a relay, from its /.well-known/ohttp-gateway. If not given, the keys that the
    /// relay sends are trusted.
    #[arg(long, value_name = "FILE", requires = "relay")]
    ohttp_keys: Option<PathBuf>,
    /// Make and upload fresh evaluation keys after N look-ups, if the protocol has such keys. A server that forges answers learns
    /// something about a key with each look-up.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LOOKUPS_PER_KEY,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LOOKUPS_PER_KEY)))]
    lookups_per_key: u32,
    /// Give up after SECONDS, with all requests, retries and waits. If not given, after 10 s without a connection, or 120 s of
    /// silence.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Most attempts of a request, if its failure may pass.
    #[arg(long, value_name = "N", default_value_t = RetryPolicy::default().attempts, value_parser = clap::value_parser!(u32).range(1..))]
    attempts: u32,
    /// Keep the table's hint, its evaluation keys and the serial of a signed table for this call only.
    #[arg(long)]
    no_cache: bool,
}

/// The hash that identifies the content of a table.
#[derive(Clone, Copy)]
struct Epoch([u8; 32]);

fn parse_epoch(text: &str) -> Result<Epoch, &'static str> {
    hush_client::parse_epoch(text).map(Epoch)
}

fn parse_seconds(text: &str) -> Result<Duration, &'static str> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero()).ok_or("a time is a number of seconds above 0")
}

/// Runs the command. Returns the exit code: 0 if everything was found, 1 if not, 2 after an error.
pub(crate) fn run(args: GetArgs) -> ExitCode {
    match get(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // The message may contain the words of a server.
            let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            say!("error: {line}");
            ExitCode::from(2)
        }
    }
}

/// Looks the keys up. Returns whether everything was found.
fn get(args: &GetArgs) -> Result<bool, String> {
    let progress = LookupProgress::new();
    let cleared = |error: HttpError| {
        progress.clear();
        match error.code() {
            Code::WrongLookup if args.index => format!("{error}: leave --index out"),
            Code::WrongLookup if args.matched.row_match() == RowMatch::Exact => {
                format!("{error}, and --index")
            }
            _ => error.to_string(),
        }
    };
    let prepared = args.prepare.map(|count| prepare(args, &progress, count as usize)).transpose()?;
    let keys = keys(args)?;
    if let Some(number) = keys.iter().position(|key| key.len() > MAX_KEY_BYTES).filter(|_| keys.len() > 1) {
        let length = keys[number].len();
        return Err(format!("key {} is {length} bytes, at most {MAX_KEY_BYTES} are allowed", number + 1));
    }
    let by = args.matched.row_match();
    let wanted = keys.iter().map(|key| Ok(wanted(key, args.index)?.matching(by)));
    let wanted = wanted.collect::<Result<Vec<_>, String>>()?;
    let mut table = prepared.map_or_else(|| open(args, &progress), Ok)?;
    let lines = AnswerLines { args, keys: &keys, progress: &progress };
    let all_found = thread::scope(|scope| {
        let (sender, answers) = mpsc::channel();
        let printing = scope.spawn(|| lines.print(answers));
        // A separate thread prints, so that the answers and the speed of their reader do not change when the next request is sent.
        let asked = table.lookup_each(&wanted, &CallOptions::default(), |answers| drop(sender.send(answers)));
        drop(sender);
        let (answered, printed) = printing.join().unwrap_or_else(|panic| resume_unwind(panic));
        asked.map_err(|error| match answered {
            0 => cleared(error),
            _ => format!("{}; {answered} of {} keys were looked up before", cleared(error), keys.len()),
        })?;
        progress.clear();
        printed
    })?;
    if args.stats && args.json {
        let protocol = table.table().facts().protocol.name();
        let stats = StatsLine { protocol, flights: flights(&table), spent: table.stats() };
        let line = BTreeMap::from([("stats", stats)]);
        let line = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        report::print(&format!("{line}\n"))?;
    } else if args.stats {
        print_stats(&table, keys.len(), args.relay.is_some());
    }
    Ok(all_found)
}

/// Opens the table, and prepares `count` queries.
fn prepare(args: &GetArgs, progress: &Arc<LookupProgress>, count: usize) -> Result<HttpTable, String> {
    let mut table = open(args, progress)?;
    progress.note_on_terminal(format!("preparing {count} queries"));
    let ready = table.prepare(count);
    progress.clear();
    let ready = ready.map_err(|error| error.to_string())?;
    if ready < count {
        say!(
            "{ready} of {count} queries are prepared, as 256 MiB hold no more: look-ups beyond them are made as usual"
        );
    }
    Ok(table)
}

fn open(args: &GetArgs, progress: &Arc<LookupProgress>) -> Result<HttpTable, String> {
    let observed = progress.clone();
    let observer: Observer = Arc::new(move |event| observed.show(event));
    let cache = if args.no_cache { HintCache::Off } else { HintCache::User };
    let options = HttpOptions {
        cache,
        acceptance: Acceptance {
            weak_preset: args.allow_weak.clone(),
            epoch: args.epoch.map(|epoch| epoch.0),
            trust: args.trust.clone(),
        },
        max_hint_bytes: args.max_hint,
        lookups_per_key: args.lookups_per_key,
        timeout: args.timeout,
        retry: RetryPolicy { attempts: args.attempts, ..RetryPolicy::default() },
        closes: true,
        observer,
        tls: args.trust_in.options()?,
        token: token(args)?,
        relay: relay(args)?,
        ..HttpOptions::default()
    };
    let opened = HttpClient::connect(&args.url, options)
        .and_then(|client| client.open(args.table.as_deref()))
        .map_err(|error| {
            progress.clear();
            error.to_string()
        })?;
    warn_if_weak(opened.table().facts());
    Ok(opened)
}

/// Returns the token from the options or the environment.
fn token(args: &GetArgs) -> Result<Option<BearerToken>, String> {
    let from = if args.token.is_some() { "--token" } else { "HUSHDB_TOKEN" };
    let text = args.token.clone().or_else(|| variable(from)).map(Zeroizing::new);
    // The token is not parsed by clap, whose errors would repeat it.
    text.map(|text| text.parse().map_err(|error| format!("{from}: {error}"))).transpose()
}

/// Returns the relay from the options.
fn relay(args: &GetArgs) -> Result<Option<RelayOptions>, String> {
    let Some(url) = &args.relay else { return Ok(None) };
    let keys = args.ohttp_keys.as_ref().map(file).transpose()?;
    Ok(Some(RelayOptions { url: url.clone(), keys }))
}

/// Warns of a weak parameter set that was accepted with `--allow-weak`.
fn warn_if_weak(facts: &Facts) {
    let bits = facts.security_bits;
    if bits == 0.0 {
        say!("warning: {} is for tests: the server can read what is looked up", facts.preset);
    } else if !facts.is_secure() {
        say!("warning: {} gives {bits:.0} bits of security, 128 are the minimum", facts.preset);
    }
}

/// Returns the keys of the command line, then those of the file.
fn keys(args: &GetArgs) -> Result<Vec<Vec<u8>>, String> {
    let mut keys = Vec::new();
    let mut reads_stdin = args.keys_file.as_deref() == Some(Path::new("-"));
    for key in &args.keys {
        if key != "-" {
            keys.push(key.clone().into_vec());
            continue;
        }
        if mem::replace(&mut reads_stdin, true) {
            return Err("standard input can be read once: give all keys with --keys-file -".into());
        }
        keys.push(read_key().map_err(|error| format!("cannot read a key: {error}"))?);
    }
    if let Some(path) = &args.keys_file {
        let unreadable = |error: &dyn Display| format!("cannot read the keys in {}: {error}", path.display());
        let text = read(path).map_err(|error| unreadable(&error))?;
        keys.extend(key_list::keys(&text).map_err(|error| unreadable(&error))?.map(<[u8]>::to_vec));
        if keys.is_empty() {
            return Err(format!("there are no keys in {}", path.display()));
        }
    }
    Ok(keys)
}

/// Reads a key: a line of standard input.
fn read_key() -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        report::write_note("key: ");
    }
    let mut line = Vec::new();
    stdin.lock().read_until(b'\n', &mut line)?;
    let mut keys =
        key_list::keys(&line).map_err(|utf16| io::Error::new(io::ErrorKind::InvalidData, utf16))?;
    let key = keys.next().map(<[u8]>::to_vec);
    key.ok_or_else(|| {
        io::Error::new(io::ErrorKind::UnexpectedEof, "the first line of standard input is empty")
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str().as_bytes() != b"-" {
        return fs::read(path);
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

/// The JSON line of an answer: a found or missing record.
#[derive(Serialize)]
struct AnswerLine<'a> {
    key: &'a str,
    found: bool,
    value: Option<&'a str>,
    value_base64: Option<String>,
}

/// The printer of answers.
struct AnswerLines<'a> {
    args: &'a GetArgs,
    keys: &'a [Vec<u8>],
    progress: &'a LookupProgress,
}

impl AnswerLines<'_> {
    /// Prints answers as they arrive, up to the first fault. Returns how many arrived, and whether everything was found.
    fn print(&self, answers: mpsc::Receiver<Answers>) -> (usize, Result<bool, String>) {
        let mut keys = self.keys.iter();
        let printed = self.print_until_fault(answers, &mut keys);
        (self.keys.len() - keys.len(), printed)
    }

    fn print_until_fault(
        &self,
        answers: mpsc::Receiver<Answers>,
        mut keys: &mut std::slice::Iter<'_, Vec<u8>>,
    ) -> Result<bool, String> {
        let mut all_found = true;
        for answers in answers {
            self.progress.clear();
            let mut out = io::BufWriter::new(io::stdout().lock());
            let mut written = Ok(());
            for (found, key) in answers.found().zip(&mut keys) {
                let found = match found {
                    Ok(found) => found.as_deref(),
                    Err(error) => {
                        report::written(written.and_then(|()| out.flush()))?;
                        let number = self.keys.len() - keys.len();
                        return Err(if self.keys.len() > 1 {
                            format!("key {number}: {error}")
                        } else {
                            error.to_string()
                        });
                    }
                };
                all_found &= found.is_some();
                written = written.and_then(|()| self.write(&mut out, key, found));
            }
            report::written(written.and_then(|()| out.flush()))?;
        }
        Ok(all_found)
    }

    fn write(&self, out: &mut impl Write, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let single = self.keys.len() == 1 && self.args.keys_file.is_none();
        match value {
            value if self.args.json => write_json(out, key, value)?,
            None => say!("not found: {}", escaped(key)),
            Some(value) if single && io::stdout().is_terminal() => writeln!(out, "{}", readable(value))?,
            Some(value) if single => out.write_all(value)?,
            Some(value) => writeln!(out, "{}\t{}", escaped(key), escaped(value))?,
        }
        Ok(())
    }
}

fn write_json(out: &mut impl Write, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
    let line = AnswerLine {
        key: &String::from_utf8_lossy(key),
        found: value.is_some(),
        value: value.and_then(|value| str::from_utf8(value).ok()),
        value_base64: value.map(|value| BASE64_STANDARD.encode(value)),
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// The last line of `--json --stats`.
#[derive(Serialize)]
struct StatsLine {
    protocol: &'static str,
    /// The windows of TCP that a look-up's query and answer take, on an idle connection.
    flights: u32,
    #[serde(flatten)]
    spent: Stats,
}

fn print_stats(table: &HttpTable, keys: usize, is_relayed: bool) {
    let stats = table.stats();
    let seconds = stats.seconds;
    let facts = table.table().facts();
    let hint = table.table().descriptor().hint_bytes();
    let cached = match table.table().descriptor().blobs().count() {
        _ if stats.setup_bytes_down >= hint => "",
        1 => ", the hint came from the cache",
        _ => ", the rest of the hint came from the cache",
    };
    let has_keys = table.table().key_preset().is_some();
    let linked = if has_keys { ", the same client in all look-ups under these keys," } else { "" };
    let who = if is_relayed { "someone behind the relay" } else { "someone at this address" };
    let prepared = match seconds.prepare > 0.0 {
        true => format!(", {} left prepared", stats.prepared),
        false => String::new(),
    };
    let mut lines = vec![
        format!("protocol  {} ({})", facts.protocol, facts.preset),
        format!("queries   {} for {keys} key{}{prepared}", stats.queries, plural(keys as u64)),
        format!(
            "traffic   {} up, {} down; each look-up {} up, {} down, {} flights",
            report::bytes(stats.bytes_up),
            report::bytes(stats.bytes_down),
            report::bytes(stats.query_bytes),
            report::bytes(stats.answer_bytes),
            flights(table)
        ),
        format!(
            "setup     {} up, {} down{cached}",
            report::bytes(stats.setup_bytes_up),
            report::bytes(stats.setup_bytes_down)
        ),
        format!(
            "seconds   descriptor {:.3}, hint {:.3}, keys {:.3}, prepare {:.3}, encrypt {:.3}, network {:.3}, decode {:.3}",
            seconds.descriptor,
            seconds.hint,
            seconds.keys,
            seconds.prepare,
            seconds.encrypt,
            seconds.network,
            seconds.decode
        ),
        match facts.is_local() {
            true => format!(
                "the server saw that {who} asked for table '{}', neither what was looked up in it nor how often",
                table.name()
            ),
            false => format!(
                "the server saw that {who}{linked} made {} look-up{} of {} bytes each in table '{}', not which",
                stats.queries,
                plural(stats.queries),
                stats.query_bytes,
                table.name()
            ),
        },
    ];
    if has_keys {
        let kept = if stats.key_bytes_up == 0 { ", the server has them" } else { "" };
        lines.insert(3, format!("keys      {} up{kept}", report::bytes(stats.key_bytes_up)));
    }
    say!("{}", lines.join("\n"));
}

/// Returns the flights of a look-up: none in a table that was downloaded.
fn flights(table: &HttpTable) -> u32 {
    let stats = table.stats();
    match table.table().facts().is_local() {
        true => 0,
        false => Network::default().exchange_flights(stats.query_bytes, stats.answer_bytes),
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The progress of slow steps: a bar on a terminal, otherwise a line.
struct LookupProgress {
    terminal: bool,
    bar: Mutex<ProgressBar>,
}

impl LookupProgress {
    fn new() -> Arc<Self> {
        let terminal = io::stderr().is_terminal();
        let bar = Mutex::new(ProgressBar::hidden());
        Arc::new(Self { terminal, bar })
    }

    fn show(&self, event: &Event<'_>) {
        let mut bar = self.bar.lock();
        match *event {
            Event::HintStart { bytes, present } if bytes - present >= QUIET_HINT_BYTES => {
                if self.terminal {
                    *bar = download_bar(bytes);
                    bar.set_position(present);
                } else {
                    let rest = report::bytes(bytes - present);
                    say!("downloading the table's hint: {rest}");
                }
            }
            Event::HintStart { .. } => {}
            Event::HintProgress { present } => bar.set_position(present),
            Event::HintEnd => bar.finish_and_clear(),
            Event::HintLocked if self.terminal => {
                *bar = note("another process is downloading the table's hint, waiting for it".into());
            }
            Event::KeysUpload { bytes } if self.terminal => {
                bar.finish_and_clear();
                *bar = note(format!("uploading this client's keys: {}", report::bytes(bytes)));
            }
            Event::Retry { error, wait } if self.terminal || wait >= QUIET_WAIT => {
                let error = escaped(error.to_string().as_bytes());
                let line = format!("{error}: trying again in {:.1} s", wait.as_secs_f64());
                if self.terminal {
                    bar.finish_and_clear();
                    *bar = note(line);
                } else {
                    say!("{line}");
                }
            }
            Event::HintLocked | Event::KeysUpload { .. } | Event::Retry { .. } => {}
        }
    }

    /// Shows a line on a terminal, which the next event replaces.
    fn note_on_terminal(&self, line: String) {
        if self.terminal {
            *self.bar.lock() = note(line);
        }
    }

    fn clear(&self) {
        self.bar.lock().finish_and_clear();
    }
}

fn download_bar(bytes: u64) -> ProgressBar {
    let template = "hint {bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("a valid template");
    ProgressBar::new(bytes).with_style(style)
}

/// Shows a line that the next event replaces.
fn note(text: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a valid template");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(text);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
