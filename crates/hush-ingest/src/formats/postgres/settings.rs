//! The settings of a connection to PostgreSQL, from the URL. The environment and `~/.pgpass` complete it, by the names and rules of
//! libpq (PostgreSQL 17, 32.1 "Database Connection Control Functions", 32.15, 32.16).

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::formats::postgres::tls::{Check, PostgresTls};
use crate::remote::{Refused, RemoteUrl};

/// The default time for a server to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The default host: the folder of the socket of a server on this machine.
const SOCKET_DIR: &str = "/var/run/postgresql";
/// The default port.
const PORT: u16 = 5432;
/// The values of `sslmode`, from the weakest to the strongest.
const SSL_MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
/// The most bytes of `~/.pgpass`.
const MAX_PASSWORDS: u64 = 1 << 20;

/// The settings of a connection to a server.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) tls: PostgresTls,
    /// The reason why a file with passwords was not used.
    pub(crate) left_out: Option<String>,
}

impl Settings {
    /// Reads the URL, then the environment, unless the policy of the URL refuses the database.
    ///
    /// # Errors
    /// A description of what is wrong with the URL, a variable or a file, without its secrets; or the policy's refusal.
    pub(crate) fn of(url: &RemoteUrl) -> Result<Self, Refused> {
        let wrong = |message| Refused::new(message, "write the URL as postgres://USER@HOST:PORT/DATABASE");
        let (text, mut ssl) = split(url.secret()).map_err(wrong)?;
        let mut config: Config =
            text.parse().map_err(|error| wrong(crate::formats::postgres::chain(&error)))?;
        complete(&mut config).map_err(wrong)?;
        if let Some(source) = url.policy().database(|source| source.has(&config))? {
            ssl = source.ssl(ssl).map_err(|message| Refused::new(message, "leave it out of the URL"))?;
        }
        let mut left_out = None;
        if config.get_password().is_none() {
            match password(&config) {
                Ok(Some(password)) => {
                    config.password(password);
                }
                Ok(None) => {}
                Err(reason) => left_out = Some(reason),
            }
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("hushdb");
        ssl.mode = ssl.mode.or_else(|| variable("PGSSLMODE"));
        ssl.roots = ssl.roots.or_else(|| variable("PGSSLROOTCERT"));
        let (mode, check) = ssl.check().map_err(wrong)?;
        // Sockets of this machine have no TLS, whatever the mode says.
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        config.ssl_mode(if is_local { SslMode::Disable } else { mode });
        let roots = ssl
            .roots
            .map(PathBuf::from)
            .or_else(|| home().map(|home| home.join(".postgresql/root.crt")).filter(|path| path.exists()));
        let tls = PostgresTls::new(check, roots.as_deref()).map_err(wrong)?;
        Ok(Self { config, tls, left_out })
    }
}

/// A server, or a database of it, that a [`SourcePolicy`](crate::remote::SourcePolicy) allows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PostgresSource {
    host: Host,
    port: u16,
    /// The database; `None` allows all databases of the server.
    database: Option<String>,
    ssl: Ssl,
}

impl PostgresSource {
    /// Parses `postgres://host:port/database`, with `sslmode` and `sslrootcert` if the server has no certificate for its name.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        let (text, ssl) = split(source)?;
        ssl.check()?;
        let mut config: Config = text.parse().map_err(|error| crate::formats::postgres::chain(&error))?;
        if config.get_user().is_some() || config.get_password().is_some() {
            return Err("it names a user or a password".into());
        }
        complete_place(&mut config)?;
        let (host, port) = place(&config).ok_or("it does not name one host")?;
        Ok(Self { host: host.clone(), port, database: config.get_dbname().map(str::to_owned), ssl })
    }

    /// Returns whether the source allows the server and the database of a configuration.
    fn has(&self, config: &Config) -> bool {
        let is_host = match (place(config), &self.host) {
            (Some((Host::Tcp(host), port)), Host::Tcp(own)) => {
                own.eq_ignore_ascii_case(host) && port == self.port
            }
            (Some((host, port)), own) => (host, port) == (own, self.port),
            (None, _) => false,
        };
        is_host && self.database.as_deref().is_none_or(|own| Some(own) == database(config))
    }

    /// Returns how certificates are checked for a URL that asks for `asked`: as the source says, or more strictly.
    fn ssl(&self, asked: Ssl) -> Result<Ssl, String> {
        if asked.roots.is_some() {
            return Err("sslrootcert is a file of the server's".into());
        }
        let least = self.ssl.mode.as_deref().unwrap_or("verify-full");
        let rank = |mode: &str| SSL_MODES.iter().position(|known| *known == mode);
        let mode = asked.mode.as_deref().unwrap_or(least);
        if rank(mode).is_some_and(|rank_of_mode| Some(rank_of_mode) < rank(least)) {
            return Err(format!(
                "sslmode={mode} is weaker than {least}, which this source is configured with"
            ));
        }
        Ok(Ssl { mode: Some(mode.to_owned()), roots: self.ssl.roots.clone() })
    }
}

/// Returns the host and the port of a configuration that has one host and at most one port.
fn place(config: &Config) -> Option<(&Host, u16)> {
    match (config.get_hosts(), config.get_hostaddrs(), config.get_ports()) {
        ([host], [], []) => Some((host, PORT)),
        ([host], [], [port]) => Some((host, *port)),
        _ => None,
    }
}

/// Returns the database of a configuration; by default it has the name of the user.
fn database(config: &Config) -> Option<&str> {
    config.get_dbname().or(config.get_user())
}

/// The options of a URL for certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ssl {
    mode: Option<String>,
    /// A file of certificates, or `system`.
    roots: Option<String>,
}

impl Ssl {
    fn check(&self) -> Result<(SslMode, Check), String> {
        let has_roots = self.roots.is_some();
        Ok(match self.mode.as_deref() {
            Some("disable") => (SslMode::Disable, Check::Nothing),
            None if self.roots.as_deref() == Some("system") => (SslMode::Require, Check::Name),
            None | Some("prefer") => (SslMode::Prefer, Check::Nothing),
            // As in libpq, a named authority has to sign the certificate.
            Some("require") => (SslMode::Require, if has_roots { Check::Authority } else { Check::Nothing }),
            Some("verify-ca") => (SslMode::Require, Check::Authority),
            Some("verify-full") => (SslMode::Require, Check::Name),
            Some(other) => {
                return Err(format!(
                    "sslmode={other}: use disable, prefer, require, verify-ca or verify-full"
                ));
            }
        })
    }
}

/// Splits a URL into the URL without its options for certificates, and these options.
fn split(url: &str) -> Result<(String, Ssl), String> {
    let mut ssl = Ssl::default();
    // A question mark before the host is part of a password.
    let host = url.rfind('@').unwrap_or(0);
    let Some(query) = url[host..].find('?').map(|at| host + at) else { return Ok((url.into(), ssl)) };
    let mut others = Vec::new();
    for option in url[query + 1..].split('&') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let slot = match name {
            "sslmode" => &mut ssl.mode,
            "sslrootcert" => &mut ssl.roots,
            _ => {
                others.push(option);
                continue;
            }
        };
        let value = percent_decode_str(value).decode_utf8().map_err(|_| format!("{name} is not UTF-8"))?;
        *slot = Some(value.into_owned());
    }
    Ok((format!("{}?{}", &url[..query], others.join("&")), ssl))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn home() -> Option<PathBuf> {
    env::home_dir()
}

/// Completes the URL from the environment.
fn complete(config: &mut Config) -> Result<(), String> {
    complete_place(config)?;
    if config.get_user().is_none() {
        let user = ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(variable);
        config.user(user.ok_or("name the user: postgres://USER@host/database")?);
    }
    if let (None, Some(name)) = (config.get_dbname(), variable("PGDATABASE")) {
        config.dbname(name);
    }
    Ok(())
}

/// Completes the host and the port from the environment.
fn complete_place(config: &mut Config) -> Result<(), String> {
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let hosts = variable("PGHOST").unwrap_or_else(|| SOCKET_DIR.into());
        for host in hosts.split(',') {
            config.host(host);
        }
    }
    if let (true, Some(port)) = (config.get_ports().is_empty(), variable("PGPORT")) {
        config.port(port.parse().map_err(|_| "PGPORT is not a port".to_owned())?);
    }
    Ok(())
}

/// Returns the password from the environment, or from the file of passwords.
fn password(config: &Config) -> Result<Option<String>, String> {
    if let Some(password) = variable("PGPASSWORD") {
        return Ok(Some(password));
    }
    let path = variable("PGPASSFILE").map(PathBuf::from).or_else(|| home().map(|home| home.join(".pgpass")));
    let Some(path) = path.filter(|path| path.exists()) else { return Ok(None) };
    let passwords = read_private(&path)?;
    let host = match (config.get_hosts().first(), config.get_hostaddrs().first()) {
        (Some(Host::Tcp(host)), _) => host.clone(),
        (Some(Host::Unix(dir)), _) if dir == Path::new(SOCKET_DIR) => "localhost".into(),
        (Some(Host::Unix(dir)), _) => dir.display().to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => String::new(),
    };
    let port = config.get_ports().first().unwrap_or(&PORT).to_string();
    let user = config.get_user().unwrap_or_default();
    let asked = [&host, &port, database(config).unwrap_or_default(), user];
    Ok(passwords.lines().find_map(|line| password_in(line, asked)))
}

fn read_private(path: &Path) -> Result<String, String> {
    let left_out = |why: &str| format!("{} is left out: {why}", path.display());
    let metadata = path.metadata().map_err(|error| left_out(&error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_PASSWORDS {
        return Err(left_out("it is not a file of passwords"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(left_out("others can read it; chmod 600"));
    }
    fs::read_to_string(path).map_err(|error| left_out(&error.to_string()))
}

/// Returns the password of a line `host:port:database:user:password` if the line is for `asked`. `*` matches everything; a
/// backslash escapes the next character.
fn password_in(line: &str, asked: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' if fields.len() < 5 => fields.push(String::new()),
            _ => {
                let c = if c == '\\' { chars.next().unwrap_or(c) } else { c };
                fields.last_mut()?.push(c);
            }
        }
    }
    let [ref own @ .., ref password] = fields[..] else { return None };
    let fits = own.len() == 4 && own.iter().zip(asked).all(|(own, asked)| own == "*" || own == asked);
    fits.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_passwords_are_for_what_they_name() {
        let asked = ["db.example.com", "5432", "people", "me"];
        for (line, expected) in [
            ("db.example.com:5432:people:me:a:b", Some("a:b")),
            ("*:*:*:*:x\\:y\\\\z", Some("x:y\\z")),
            ("*:*:people:you:x", None),
            ("*:5433:*:*:x", None),
            ("#*:*:*:*:x", None),
            ("*:*:*:x", None),
            ("", None),
        ] {
            assert_eq!(password_in(line, asked).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn options_about_certificates_are_taken_out() {
        let (url, ssl) =
            split("postgres://me:p?w@h/db?a=1&sslmode=verify-full&sslrootcert=%2Fa%20b&c=2").unwrap();
        assert_eq!(url, "postgres://me:p?w@h/db?a=1&c=2");
        assert_eq!((ssl.mode.as_deref(), ssl.roots.as_deref()), (Some("verify-full"), Some("/a b")));
        assert_eq!(ssl.check(), Ok((SslMode::Require, Check::Name)));
        assert_eq!(split("postgres://h/db").unwrap().1.check(), Ok((SslMode::Prefer, Check::Nothing)));
        let check = |mode: &str, roots: Option<&str>| {
            Ssl { mode: Some(mode.into()), roots: roots.map(String::from) }.check()
        };
        assert_eq!(check("require", None), Ok((SslMode::Require, Check::Nothing)));
        assert_eq!(check("require", Some("a")), Ok((SslMode::Require, Check::Authority)));
        assert!(check("verify", None).unwrap_err().contains("verify-full"));
    }
}
