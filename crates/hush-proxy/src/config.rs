//! The file that says what the front door answers, and from which tables.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use axum::http::HeaderValue;
use hush_client::{
    Acceptance,
    http::{BearerToken, HttpOptions, RelayOptions, TlsOptions, agent},
};
use hush_protocol::shown_url;
use serde::Deserialize;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::template::Template;

/// The settings of a front door.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProxyConfig {
    /// The address to listen on, of this machine's loopback.
    #[serde(default = "default_listen")]
    pub(crate) listen: SocketAddr,
    /// The names, beside those of the loopback, under which programs may ask.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, TableSettings>,
    #[serde(default)]
    pub(crate) route: Vec<RouteSettings>,
    #[serde(default)]
    pub(crate) rpc: Vec<RpcSettings>,
}

/// A table that is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TableSettings {
    /// The URL of the server.
    pub(crate) url: String,
    /// The name of the table on the server, which has one only if this is left out.
    pub(crate) table: Option<String>,
    /// Whether keys are positions.
    #[serde(default)]
    pub(crate) index: bool,
    /// The rows of a sorted table that a key finds, as a [`RowMatch`](hush_protocol::sorted::found::RowMatch).
    pub(crate) rows: Option<String>,
    token_file: Option<PathBuf>,
    ca_cert: Option<PathBuf>,
    relay: Option<String>,
    ohttp_keys: Option<PathBuf>,
    trust: Option<String>,
    allow_weak: Option<String>,
    /// The longest time of a look-up, in seconds.
    #[serde(default = "default_timeout")]
    timeout: u64,
}

/// A path, and what answers it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RouteSettings {
    /// The path. A segment `{name}` is any text without a slash.
    pub(crate) get: String,
    pub(crate) table: String,
    pub(crate) key: Template,
    #[serde(default = "default_status")]
    pub(crate) status: u16,
    #[serde(default = "default_content_type")]
    pub(crate) content_type: String,
    #[serde(default = "Template::value")]
    pub(crate) body: Template,
    #[serde(default)]
    pub(crate) missing: MissingSettings,
    pub(crate) cache: Option<CacheSettings>,
}

/// The response for a key that the table does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct MissingSettings {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// The answers that are kept: at most so many, for so long.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheSettings {
    pub(crate) entries: usize,
    pub(crate) seconds: u64,
}

/// Methods of JSON-RPC behind a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RpcSettings {
    pub(crate) post: String,
    /// The URL that gets all other methods. Without it they are refused.
    pub(crate) pass_on: Option<String>,
    #[serde(default)]
    pub(crate) methods: BTreeMap<String, MethodSettings>,
}

/// A method of JSON-RPC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MethodSettings {
    pub(crate) table: String,
    pub(crate) key: Template,
    /// The result as JSON.
    pub(crate) result: Template,
    /// The result of a key that the table does not have, as JSON. Without it the call is an error.
    pub(crate) missing: Option<String>,
    /// The texts that parameters may have, where they are given.
    #[serde(default)]
    pub(crate) allow: BTreeMap<String, Vec<String>>,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7704))
}

fn default_status() -> u16 {
    200
}

fn default_timeout() -> u64 {
    30
}

fn default_content_type() -> String {
    "text/plain; charset=utf-8".into()
}

impl Default for MissingSettings {
    fn default() -> Self {
        Self { status: 404, content_type: default_content_type(), body: String::new() }
    }
}

/// The reason why a file of settings cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file, or one that it names, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is no TOML, or has other settings.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The place and the reason.
        source: Box<toml::de::Error>,
    },
    /// A setting has a value that cannot be used.
    #[error("{setting}: {reason}")]
    Setting {
        /// The place of the setting.
        setting: String,
        /// The reason.
        reason: String,
    },
}

/// Returns the error of a setting.
pub(crate) fn wrong(setting: impl Into<String>, reason: impl Into<String>) -> ConfigError {
    ConfigError::Setting { setting: setting.into(), reason: reason.into() }
}

impl ProxyConfig {
    /// Reads and checks a file. Files that it names are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and the setting.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path)?;
        let text = String::from_utf8_lossy(&text);
        let mut config: Self = toml::from_str(&text)
            .map_err(|source| ConfigError::Toml { path: path.into(), source: Box::new(source) })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for table in config.tables.values_mut() {
            for file in [&mut table.token_file, &mut table.ca_cert, &mut table.ohttp_keys] {
                *file = file.as_ref().map(|file| folder.join(file));
            }
        }
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !self.listen.ip().is_loopback() {
            let reason = "only addresses of the loopback, such as 127.0.0.1:7704: whoever asks here is answered, and is not encrypted";
            return Err(wrong("listen", reason));
        }
        let is_host = |host: &String| {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        };
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(wrong(
                "hosts",
                format!("'{}' is no name of a host, such as api.example", host.escape_debug()),
            ));
        }
        if self.route.is_empty() && self.rpc.is_empty() {
            return Err(wrong("route", "there is none: nothing would be answered"));
        }
        for (index, route) in self.route.iter().enumerate() {
            let place = format!("route {}", route.get);
            if let Some(before) = self.route[..index].iter().find(|before| hides(&before.get, &route.get)) {
                return Err(wrong(
                    &place,
                    format!("it is never reached, as {} comes before: put it first", before.get),
                ));
            }
            for content_type in [&route.content_type, &route.missing.content_type] {
                if HeaderValue::from_str(content_type).is_err() {
                    return Err(wrong(&place, "a content-type is a line of visible characters"));
                }
            }
            if route.key.names().next().is_none() {
                return Err(wrong(
                    &place,
                    "the key is the same for every request: put a name of the path in it",
                ));
            }
            if route.cache.is_some_and(|cache| cache.entries == 0 || cache.seconds == 0) {
                return Err(wrong(&place, "a cache of nothing, or for no time, is none: leave it out"));
            }
            self.check_table(&place, &route.table)?;
            let path = names_of_path(&route.get).ok_or_else(|| {
                wrong(&place, "a path begins with / and has names in braces as whole segments, each once")
            })?;
            let of_request = |name: &str| path.contains(&name) || name.starts_with("query.");
            known(&place, "key", &route.key, of_request)?;
            known(&place, "body", &route.body, |name| of_request(name) || is_of_record(name))?;
            for status in [route.status, route.missing.status] {
                if !(200..600).contains(&status) {
                    return Err(wrong(&place, format!("{status} is no status: use 200 to 599")));
                }
            }
        }
        self.rpc.iter().try_for_each(|rpc| self.check_rpc(rpc))
    }

    fn check_rpc(&self, rpc: &RpcSettings) -> Result<(), ConfigError> {
        let place = format!("rpc {}", rpc.post);
        if !rpc.post.starts_with('/') || rpc.post.contains(['{', '}']) {
            return Err(wrong(&place, "a path begins with /, and has no names in braces here"));
        }
        if rpc.methods.is_empty() && rpc.pass_on.is_none() {
            return Err(wrong(&place, "it has no methods, and passes nothing on"));
        }
        for (name, method) in &rpc.methods {
            let place = format!("{place}, method {name}");
            self.check_table(&place, &method.table)?;
            let of_call = |name: &str| name.starts_with("params.");
            known(&place, "key", &method.key, of_call)?;
            known(&place, "result", &method.result, |name| of_call(name) || is_of_record(name))?;
            if let Some(name) = method.allow.keys().find(|name| !of_call(name)) {
                return Err(wrong(&place, format!("allow: there is no '{name}': use params.0 and so on")));
            }
            if let Some(missing) = &method.missing {
                let error = |error: serde_json::Error| wrong(&place, format!("missing is no JSON: {error}"));
                serde_json::from_str::<serde_json::Value>(missing).map_err(error)?;
            }
        }
        Ok(())
    }

    fn check_table(&self, place: &str, table: &str) -> Result<(), ConfigError> {
        match self.tables.contains_key(table) {
            true => Ok(()),
            false => Err(wrong(place, format!("there is no [tables.{table}]"))),
        }
    }
}

/// Checks that all names of a template are known.
fn known(
    place: &str,
    what: &str,
    template: &Template,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), ConfigError> {
    match template.names().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(wrong(place, format!("{what}: there is no {{{name}}} here"))),
    }
}

/// Returns whether every path of a route is one of a route before it.
fn hides(before: &str, after: &str) -> bool {
    let [before, after] = [before, after].map(|path| path.split('/').collect::<Vec<_>>());
    let hides = |(before, after): (&&str, &&str)| before.starts_with('{') || before == after;
    before.len() == after.len() && before.iter().zip(&after).all(hides)
}

fn is_of_record(name: &str) -> bool {
    name == "value" || name.starts_with("value.")
}

/// Returns the names of the segments of a path that are in braces. Returns `None` if it is no path.
fn names_of_path(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for segment in path.strip_prefix('/')?.split('/') {
        match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
            Some(name)
                if !name.is_empty() && !name.contains(['{', '}', ':', '.']) && !names.contains(&name) =>
            {
                names.push(name)
            }
            None if !segment.contains(['{', '}']) => {}
            _ => return None,
        }
    }
    Some(names)
}

impl TableSettings {
    /// Returns the options by which the table is asked.
    pub(crate) fn options(&self, name: &str) -> Result<HttpOptions, ConfigError> {
        let place = |setting: &str| format!("tables.{name}.{setting}");
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| read(path)).transpose();
        let token = file(&self.token_file)?.map(Zeroizing::new).map(|text| {
            let text = Zeroizing::new(String::from_utf8_lossy(&text).into_owned());
            text.parse::<BearerToken>().map_err(|reason| wrong(place("token-file"), reason))
        });
        let relay = match &self.relay {
            Some(url) => Some(RelayOptions { url: url.clone(), keys: file(&self.ohttp_keys)? }),
            None if self.ohttp_keys.is_some() => {
                return Err(wrong(place("ohttp-keys"), "they are for a relay"));
            }
            None => None,
        };
        let trust = self
            .trust
            .as_deref()
            .map(|text| text.parse().map_err(|reason: &str| wrong(place("trust"), reason)));
        let options = HttpOptions {
            acceptance: Acceptance {
                weak_preset: self.allow_weak.clone(),
                trust: trust.transpose()?,
                ..Acceptance::default()
            },
            token: token.transpose()?,
            timeout: Some(Duration::from_secs(self.timeout)),
            tls: TlsOptions { ca_cert: file(&self.ca_cert)?, ..TlsOptions::default() },
            relay,
            ..HttpOptions::default()
        };
        for (setting, url) in [("url", Some(&self.url)), ("relay", self.relay.as_ref())] {
            let checked = url.map_or(Ok(()), |url| agent(url, &options).map(drop));
            checked.map_err(|error| wrong(place(setting), error.to_string()))?;
        }
        Ok(options)
    }

    /// Returns the server and the table for a message.
    pub(crate) fn shown(&self) -> String {
        let name = self.table.as_ref().map_or(String::new(), |table| format!(", table {table}"));
        format!("{}{name}", shown_url(&self.url))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|source| ConfigError::Read { path: path.into(), source })
}

/// Returns whether a program that asks for `host`, with or without a port, means this front door.
pub(crate) fn is_own_host(host: &str, own: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        || own.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "[tables.t]\nurl = \"http://127.0.0.1:7700\"\n";

    fn error(text: &str) -> String {
        let folder = std::env::temp_dir().join(format!("hush-proxy-{}-{}", std::process::id(), text.len()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("proxy.toml");
        fs::write(&path, text).unwrap();
        let error = ProxyConfig::read(&path).map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        fs::remove_dir_all(folder).unwrap();
        error
    }

    #[test]
    fn what_a_file_cannot_say_is_told() {
        let route = |more: &str| {
            format!("{TABLE}[[route]]\nget = \"/a/{{b}}\"\ntable = \"t\"\nkey = \"{{b}}\"\n{more}")
        };
        assert_eq!(error(&route("")), "");
        assert_eq!(error(&route("cache = { entries = 10, seconds = 60 }")), "");
        for (text, part) in [
            (String::new(), "route: there is none"),
            (format!("listen = \"0.0.0.0:80\"\n{}", route("")), "listen: only addresses of the loopback"),
            (route("body = \"{other}\""), "body: there is no {other} here"),
            (route("bodies = \"\""), "unknown field `bodies`"),
            (route("status = 99"), "99 is no status"),
            (route("content-type = \"a\\nb\""), "a content-type is a line"),
            (route("cache = { entries = 0, seconds = 9 }"), "leave it out"),
            (route("").replace("key = \"{b}\"", "key = \"b\""), "the same for every request"),
            (format!("hosts = [\"http://x\"]\n{}", route("")), "is no name of a host"),
            (
                format!("{}\n[[route]]\nget = \"/a/b\"\ntable = \"t\"\nkey = \"{{query.x}}\"", route("")),
                "never reached",
            ),
            (format!("{TABLE}[[rpc]]\npost = \"/\""), "no methods"),
            (route("body = \"{value:up}\""), "there is no function 'up'"),
            (route("").replace("\"t\"", "\"u\""), "there is no [tables.u]"),
            (route("").replace("/a/{b}", "/a{b}"), "names in braces as whole segments"),
            (route("").replace("key = \"{b}\"", "key = \"{c}\""), "key: there is no {c} here"),
            (
                format!(
                    "{TABLE}[[rpc]]\npost = \"/\"\nmethods.m = {{ table = \"t\", key = \"{{b}}\", result = \"1\" }}"
                ),
                "method m: key: there is no {b} here",
            ),
            (
                format!(
                    "{TABLE}[[rpc]]\npost = \"/\"\nmethods.m = {{ table = \"t\", key = \"{{params.0}}\", result = \"1\", missing = \"x\" }}"
                ),
                "missing is no JSON",
            ),
        ] {
            assert!(error(&text).contains(part), "{part}: {}", error(&text));
        }
    }

    #[test]
    fn other_hosts_are_not_meant() {
        let own = ["api.example".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:7704",
            "localhost:1",
            "LOCALHOST",
            "[::1]:80",
            "api.example",
            "API.example:80",
        ] {
            assert!(is_own_host(host, &own), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example:80"] {
            assert!(!is_own_host(host, &own), "{host}");
        }
    }
}
