//! `hushdb get`: look records up privately.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal, Read, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hush_client::{
    Found, Wanted,
    http::{
        DEFAULT_MAX_HINT_BYTES, Event, HintCache, HttpClient, HttpError, HttpOptions, HttpTable, Observer,
        Stats,
    },
};
use hush_protocol::facts::Facts;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::report;

/// Hints below this length are downloaded without a word.
const QUIET_HINT_BYTES: u64 = 4 << 20;

/// Arguments of `hushdb get`.
#[derive(clap::Args)]
#[command(after_long_help = "\
Output: the value of a single KEY is written as it is, with a newline only on a terminal. For several keys, or \
with --keys-file, one line each: the key, a tab, the value. There, backslash, tab, newline, other control \
characters and bytes that are not UTF-8 are written as \\\\, \\t, \\n and \\xNN. Keys that are not found are named on \
standard error. With --json, one object a line for every key.

A key over several columns is their values joined by the byte 0x1F: hushdb get URL $'Smith\\x1fJohn'.

Exit status: 0 if everything was found, 1 if something was not, 2 after an error.")]
pub(crate) struct GetArgs {
    /// URL of the server, such as http://localhost:7700.
    url: String,
    /// Keys to look up.
    #[arg(value_name = "KEY", required_unless_present = "keys_file")]
    keys: Vec<OsString>,
    /// The table; not needed if the server has only one.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Take keys for positions in the input, from 0.
    #[arg(long)]
    index: bool,
    /// Print one JSON object a line: key, found, value (null if it is not UTF-8), value_base64.
    #[arg(long)]
    json: bool,
    /// Print traffic, times, and what the server could see; on standard error, or with --json as a last object.
    #[arg(long)]
    stats: bool,
    /// Look up the keys in FILE as well, one a line ('-' for standard input).
    #[arg(long, value_name = "FILE")]
    keys_file: Option<PathBuf>,
    /// Accept a table whose parameters give less than 128 bits of security.
    #[arg(long)]
    allow_weak: bool,
    /// Refuse a table whose hint, which is downloaded once if the protocol has one, is longer than BYTES.
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_HINT_BYTES)]
    max_hint: u64,
    /// Keep the table's hint, or the keys that were made and uploaded for it, for this call only.
    #[arg(long)]
    no_cache: bool,
}

/// Runs the command: exit code 0 if everything was found, 1 if not, 2 after an error.
pub(crate) fn run(args: GetArgs) -> ExitCode {
    match get(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            // Parts of it may be a server's words.
            let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            eprintln!("error: {line}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether everything was found.
fn get(args: &GetArgs) -> Result<bool, String> {
    let keys = keys(args)?;
    let wanted = keys.iter().map(|key| wanted(key, args.index)).collect::<Result<Vec<_>, _>>()?;
    let progress = Progress::new();
    let (table, found) = look_up(args, &wanted, &progress).map_err(|error| {
        progress.clear();
        error.to_string()
    })?;
    match print(args, &keys, &found, &table) {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        outcome => outcome.map_err(|error| format!("cannot write the output: {error}"))?,
    }
    if args.stats && !args.json {
        print_stats(&table, keys.len());
    }
    Ok(found.iter().all(Option::is_some))
}

fn look_up(
    args: &GetArgs,
    wanted: &[Wanted],
    progress: &Arc<Progress>,
) -> Result<(HttpTable, Vec<Found>), HttpError> {
    let observed = progress.clone();
    let observer: Observer = Arc::new(move |event| observed.show(event));
    let cache = if args.no_cache { HintCache::Off } else { HintCache::User };
    let options = HttpOptions {
        cache,
        allow_weak: args.allow_weak,
        max_hint_bytes: args.max_hint,
        observer,
        ..HttpOptions::default()
    };
    let mut table = HttpClient::connect(&args.url, options)?.open(args.table.as_deref())?;
    warn_if_weak(table.table().facts());
    let found = table.lookup(wanted)?;
    progress.clear();
    Ok((table, found))
}

/// Says what was accepted with `--allow-weak`.
fn warn_if_weak(facts: &Facts) {
    let bits = facts.security_bits;
    if bits == 0.0 {
        eprintln!("warning: {} is for tests: the server can read what is looked up", facts.preset);
    } else if !facts.is_secure() {
        eprintln!("warning: {} gives {bits:.0} bits of security, 128 are the minimum", facts.preset);
    }
}

/// The keys of the command line, then those of the file.
fn keys(args: &GetArgs) -> Result<Vec<Vec<u8>>, String> {
    let mut keys: Vec<Vec<u8>> = args.keys.iter().map(|key| key.clone().into_vec()).collect();
    if let Some(path) = &args.keys_file {
        let text =
            read(path).map_err(|error| format!("cannot read the keys in {}: {error}", path.display()))?;
        keys.extend(lines(&text).map(<[u8]>::to_vec));
        if keys.is_empty() {
            return Err(format!("there are no keys in {}", path.display()));
        }
    }
    Ok(keys)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str().as_bytes() != b"-" {
        return fs::read(path);
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

/// Lines without their LF or CRLF; the last one may lack it.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

fn wanted(key: &[u8], index: bool) -> Result<Wanted, String> {
    if !index {
        return Ok(Wanted::Key(key.to_vec()));
    }
    let position = str::from_utf8(key).ok().and_then(|text| text.parse().ok());
    position.map(Wanted::Index).ok_or_else(|| {
        format!("'{}' is not a position: with --index, keys are whole numbers from 0", escaped(key))
    })
}

/// One found or missing record as JSON.
#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    found: bool,
    value: Option<&'a str>,
    value_base64: Option<String>,
}

fn print(args: &GetArgs, keys: &[Vec<u8>], found: &[Found], table: &HttpTable) -> io::Result<()> {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let mut out = io::BufWriter::new(stdout.lock());
    let single = keys.len() == 1 && args.keys_file.is_none();
    for (key, value) in keys.iter().zip(found) {
        match value {
            value if args.json => write_json(&mut out, key, value.as_deref())?,
            None => eprintln!("not found: {}", escaped(key)),
            Some(value) if single && terminal => writeln!(out, "{}", readable(value))?,
            Some(value) if single => out.write_all(value)?,
            Some(value) => writeln!(out, "{}\t{}", escaped(key), escaped(value))?,
        }
    }
    if args.json && args.stats {
        serde_json::to_writer(&mut out, &StatsLine::new(table))?;
        writeln!(out)?;
    }
    out.flush()
}

fn write_json(out: &mut impl Write, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
    let line = Line {
        key: &String::from_utf8_lossy(key),
        found: value.is_some(),
        value: value.and_then(|value| str::from_utf8(value).ok()),
        value_base64: value.map(|value| BASE64_STANDARD.encode(value)),
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// Bytes for one field of one line; no two byte strings look alike.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    push_hex(&mut text, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => text.push(c),
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

/// A value for reading on a terminal, which it must not be able to control.
fn readable(bytes: &[u8]) -> String {
    let shown =
        |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// The last line of `--json --stats`.
#[derive(Serialize)]
struct StatsLine {
    stats: StatsObject,
}

#[derive(Serialize)]
struct StatsObject {
    protocol: &'static str,
    queries: u64,
    bytes_up: u64,
    bytes_down: u64,
    /// Of one look-up.
    query_bytes: u64,
    /// Of one look-up.
    answer_bytes: u64,
    key_bytes_up: u64,
    setup_bytes_up: u64,
    setup_bytes_down: u64,
    seconds: SecondsObject,
}

#[derive(Serialize)]
struct SecondsObject {
    descriptor: f64,
    hint: f64,
    keys: f64,
    encrypt: f64,
    network: f64,
    decode: f64,
}

impl StatsLine {
    fn new(table: &HttpTable) -> Self {
        let stats = table.stats();
        let Stats {
            queries,
            bytes_up,
            bytes_down,
            key_bytes_up,
            setup_bytes_up,
            setup_bytes_down,
            seconds,
            ..
        } = *stats;
        let seconds = SecondsObject {
            descriptor: seconds.descriptor,
            hint: seconds.hint,
            keys: seconds.keys,
            encrypt: seconds.encrypt,
            network: seconds.network,
            decode: seconds.decode,
        };
        let protocol = table.table().facts().protocol.name();
        let stats = StatsObject {
            protocol,
            queries,
            bytes_up,
            bytes_down,
            query_bytes: stats.query_bytes(),
            answer_bytes: stats.answer_bytes(),
            key_bytes_up,
            setup_bytes_up,
            setup_bytes_down,
            seconds,
        };
        Self { stats }
    }
}

fn print_stats(table: &HttpTable, keys: usize) {
    let stats = table.stats();
    let seconds = stats.seconds;
    let facts = table.table().facts();
    let hint = facts.hint_bytes;
    let cached = if stats.setup_bytes_down < hint { ", the hint came from the cache" } else { "" };
    let has_keys = table.table().key_preset().is_some();
    let linked = if has_keys { ", the same client in all look-ups under these keys," } else { "" };
    let mut lines = vec![
        format!("protocol  {} ({})", facts.protocol, facts.preset),
        format!("queries   {} for {keys} key{}", stats.queries, plural(keys as u64)),
        format!(
            "traffic   {} up, {} down; each look-up {} up, {} down",
            report::bytes(stats.bytes_up),
            report::bytes(stats.bytes_down),
            report::bytes(stats.query_bytes()),
            report::bytes(stats.answer_bytes())
        ),
        format!(
            "setup     {} up, {} down{cached}",
            report::bytes(stats.setup_bytes_up),
            report::bytes(stats.setup_bytes_down)
        ),
        format!(
            "seconds   descriptor {:.3}, hint {:.3}, keys {:.3}, encrypt {:.3}, network {:.3}, decode {:.3}",
            seconds.descriptor, seconds.hint, seconds.keys, seconds.encrypt, seconds.network, seconds.decode
        ),
        format!(
            "the server saw that someone at this address{linked} made {} look-up{} of {} bytes each in table '{}', not which",
            stats.queries,
            plural(stats.queries),
            stats.query_bytes(),
            table.name()
        ),
    ];
    if has_keys {
        let kept = if stats.key_bytes_up == 0 { ", the server has them" } else { "" };
        lines.insert(3, format!("keys      {} up{kept}", report::bytes(stats.key_bytes_up)));
    }
    eprintln!("{}", lines.join("\n"));
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Shows what takes long: a bar on a terminal, a line otherwise.
struct Progress {
    terminal: bool,
    bar: Mutex<ProgressBar>,
}

impl Progress {
    fn new() -> Arc<Self> {
        let (terminal, bar) = (io::stderr().is_terminal(), Mutex::new(ProgressBar::hidden()));
        Arc::new(Self { terminal, bar })
    }

    fn show(&self, event: &Event<'_>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match *event {
            Event::HintStart { bytes, present } if bytes - present >= QUIET_HINT_BYTES => {
                if self.terminal {
                    *bar = download_bar(bytes);
                    bar.set_position(present);
                } else {
                    let rest = report::bytes(bytes - present);
                    eprintln!("downloading the table's hint: {rest}");
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
            Event::Retry { error, wait } if self.terminal => {
                bar.finish_and_clear();
                *bar = note(format!(
                    "{}: trying again in {:.1} s",
                    escaped(error.to_string().as_bytes()),
                    wait.as_secs_f64()
                ));
            }
            Event::HintLocked | Event::KeysUpload { .. } | Event::Retry { .. } => {}
        }
    }

    fn clear(&self) {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner).finish_and_clear();
    }
}

fn download_bar(bytes: u64) -> ProgressBar {
    let template = "hint {bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("a valid template");
    ProgressBar::new(bytes).with_style(style)
}

/// A line that goes when the next thing happens.
fn note(text: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a valid template");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(text);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_files_have_a_key_a_line() {
        let split = |text: &'static [u8]| lines(text).collect::<Vec<_>>();
        assert_eq!(split(b""), Vec::<&[u8]>::new());
        assert_eq!(split(b"a\n"), [b"a"]);
        assert_eq!(split(b" a \r\n\nb\r"), [&b" a "[..], b"", b"b"]);
        assert_eq!(split(b"\xff\tx"), [b"\xff\tx"]);
    }

    #[test]
    fn escapes_keep_lines_apart_and_bytes_exact() {
        assert_eq!(
            escaped("tab\there, line\nthere, \\ and \u{e9}".as_bytes()),
            "tab\\there, line\\nthere, \\\\ and \u{e9}"
        );
        assert_eq!(escaped(b"\x1b[31m\xff\r"), "\\x1b[31m\\xff\\x0d");
        assert_eq!(escaped("\u{85}".as_bytes()), "\\xc2\\x85");
        assert_eq!(readable(b"a\x1b\xff\n\tb"), "a\u{fffd}\u{fffd}\n\tb");
    }

    #[test]
    fn positions_are_whole_numbers() {
        assert_eq!(wanted(b"18446744073709551615", true), Ok(Wanted::Index(u64::MAX)));
        for bad in [&b"-1"[..], b"", b"1.0", b"18446744073709551616", b"\xff"] {
            assert!(wanted(bad, true).unwrap_err().starts_with(&format!("'{}'", escaped(bad))));
        }
        assert_eq!(wanted(b"7", false), Ok(Wanted::Key(b"7".to_vec())));
    }
}
