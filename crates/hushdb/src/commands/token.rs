//! The command `hushdb token`: the tokens of clients of a server.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::{Args, Subcommand};
use hush_math::csprng::Csprng;
use hush_protocol::Name;
use hush_server::{Scope, Token, read_tokens, text_of_tokens};
use hush_store::whole_file;
use zeroize::Zeroizing;

use crate::report;

/// Make, list and revoke the tokens of a server.
#[derive(Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token and print it. The token itself is not stored.
    Create(CreateArgs),
    /// List the tokens in a file.
    List {
        #[command(flatten)]
        file: TokenFileArg,
    },
    /// Revoke a token. A running server refuses it within a second.
    Revoke {
        #[command(flatten)]
        file: TokenFileArg,
        /// ID of the token, as `list` prints it.
        id: String,
    },
}

#[derive(Args)]
struct TokenFileArg {
    /// File of tokens, as for `serve --tokens`.
    #[arg(long = "tokens", value_name = "FILE")]
    path: PathBuf,
}

#[derive(Args)]
struct CreateArgs {
    #[command(flatten)]
    file: TokenFileArg,
    /// Owner of the token, for readers of the list.
    #[arg(long)]
    name: String,
    /// Scope of the token: query (look-ups), admin (admin endpoints, metrics), or both.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "query", value_parser = parse_scope)]
    scope: Vec<Scope>,
    /// Table that the token is for; repeat it for several. If not given, all tables.
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<Name>,
    /// Time for which the token is valid: 30d, 12h. If not given, forever.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    expires: Option<Duration>,
    /// Most queries a second with the token.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    queries_per_second: Option<u32>,
    /// Most requests at once with the token.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    in_flight: Option<u64>,
    /// Most bytes a second with the token, of requests and responses. Up to a minute's worth may be used at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    bytes_per_second: Option<u32>,
}

fn parse_scope(name: &str) -> Result<Scope, String> {
    match name {
        "query" => Ok(Scope::Query),
        "admin" => Ok(Scope::Admin),
        _ => Err("a scope is query or admin".into()),
    }
}

pub(crate) fn run(args: TokenArgs) -> Result<(), Box<dyn Error>> {
    match args.what {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List { file } => list(&file),
        TokenCommand::Revoke { file, id } => revoke(&file, &id),
    }
}

fn create(args: CreateArgs) -> Result<(), Box<dyn Error>> {
    let path = &args.file.path;
    let _lock = whole_file::lock(path)?;
    let mut tokens = if fs::exists(path)? { read_tokens(path)? } else { Vec::new() };
    let mut random = Zeroizing::new([0; Token::RANDOM_BYTES]);
    Csprng::from_os().fill_bytes(&mut *random);
    let (mut token, text) = Token::new(&args.name, &random, args.scope);
    token.tables = (!args.tables.is_empty()).then_some(args.tables);
    token.expires = args.expires.map(|time| now() + time.as_secs());
    token.queries_per_second = args.queries_per_second;
    token.in_flight = args.in_flight.map(|most| most as usize);
    token.bytes_per_second = args.bytes_per_second;
    let id = token.id.clone();
    tokens.push(token);
    write(path, tokens)?;
    report::print(&Zeroizing::new(format!("{}\n", *text)))?;
    say!(
        "{id}: the line above is the token, and nothing can print it again. A client takes it from HUSHDB_TOKEN"
    );
    Ok(())
}

fn list(file: &TokenFileArg) -> Result<(), Box<dyn Error>> {
    let mut lines = String::new();
    for token in read_tokens(&file.path)? {
        let scopes = token.scopes.iter().map(|scope| match scope {
            Scope::Query => "query",
            Scope::Admin => "admin",
        });
        let scopes = scopes.collect::<Vec<_>>().join(",");
        let tables = token.tables.as_ref().map_or("all tables".into(), |tables| tables.join(","));
        let ends = match token.expires {
            None => "for ever".to_owned(),
            Some(_) if token.has_expired(SystemTime::now()) => "expired".to_owned(),
            Some(end) => {
                let end = UNIX_EPOCH.checked_add(Duration::from_secs(end)).ok_or("an invalid time")?;
                format!("until {}", humantime::format_rfc3339_seconds(end))
            }
        };
        let rate =
            token.queries_per_second.map_or(String::new(), |rate| format!(", {rate} queries a second"));
        let at_once = token.in_flight.map_or(String::new(), |most| format!(", {most} at once"));
        let bytes = token.bytes_per_second.map_or(String::new(), |rate| format!(", {rate} bytes a second"));
        let id = &token.id;
        let name = &token.name;
        lines += &format!("{id}  {name}: {scopes} of {tables}, {ends}{rate}{at_once}{bytes}\n");
    }
    Ok(report::print(&lines)?)
}

fn revoke(file: &TokenFileArg, id: &str) -> Result<(), Box<dyn Error>> {
    let _lock = whole_file::lock(&file.path)?;
    let mut tokens = read_tokens(&file.path)?;
    let before = tokens.len();
    tokens.retain(|token| token.id != id);
    if tokens.len() == before {
        let list = format!("hushdb token list --tokens {}", file.path.display());
        return Err(format!("there is no token {id}: {list} prints those that there are").into());
    }
    Ok(write(&file.path, tokens)?)
}

/// Writes a file that only its owner can read.
fn write(path: &Path, tokens: Vec<Token>) -> Result<(), String> {
    let written = whole_file::write(path, &text_of_tokens(tokens), 0o600);
    written.map_err(|error| format!("cannot write the tokens to {}: {error}", path.display()))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
