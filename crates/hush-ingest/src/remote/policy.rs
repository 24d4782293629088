//! The policy of sources: which URLs may be fetched, and where credentials of the environment may be sent.
//!
//! The user of a program names its inputs, so [`SourcePolicy::default`] allows everything. A server that fetches what others name
//! has a list of sources. Nothing else is fetched, except over `https` from public addresses if the list allows it.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use object_store::path::Path;
use reqwest::{
    Client,
    dns::{Name, Resolve, Resolving},
    redirect,
};
use tokio::net::lookup_host;
use url::{Host, Url};

use super::{Refused, RemoteUrl, Scheme, refused::chain, url::without_secrets};
use crate::formats::postgres::settings::PostgresSource;

/// The source that stands for every web server at a public address.
const PUBLIC_WEB: &str = "https://";
/// The word for a list without sources.
const NOTHING: &str = "none";
/// The longest time for a web server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most redirects of one request.
const MAX_REDIRECTS: usize = 10;

/// The sources that a program may fetch from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePolicy(Option<Arc<ListedSource>>);

/// A list of sources.
#[derive(Debug, PartialEq, Eq)]
struct ListedSource {
    prefixes: Vec<Prefix>,
    databases: Vec<PostgresSource>,
    takes_public_web: bool,
    /// The advice at the end of an error.
    remedy: &'static str,
}

/// A web server or a bucket, and the part of it that may be fetched.
#[derive(Debug, PartialEq, Eq)]
struct Prefix {
    /// The scheme, host and port, or the scheme and the bucket.
    root: String,
    /// The first parts of the path.
    path: Vec<String>,
}

/// The way in which a web server is allowed. A redirect may lead only to a server that is allowed in the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WebClass {
    /// The list names the server, which may have any address.
    Listed,
    /// The server is public: its address is checked when a connection is made.
    Public,
}

impl SourcePolicy {
    /// Allows only the sources of a list: `s3://bucket/prefix`, `https://host/prefix`, `postgres://host/database`; `https://` for
    /// all web servers at public addresses; `none` for nothing. `remedy` ends the error of a refused URL.
    pub fn only(sources: &[String], remedy: &'static str) -> Result<Self, String> {
        let mut listed =
            ListedSource { prefixes: Vec::new(), databases: Vec::new(), takes_public_web: false, remedy };
        for source in sources {
            listed.add(source).map_err(|reason| {
                format!(
                    "{} is no source ({reason}): name one as s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, \
                     https://host/prefix, http://host/prefix or postgres://host/database, {PUBLIC_WEB} for every public web \
                     server, or {NOTHING}",
                    without_secrets(source)
                )
            })?;
        }
        Ok(Self(Some(Arc::new(listed))))
    }

    /// Returns a client for the web server of a URL. The client makes only connections that the policy allows.
    pub(super) fn web_client(&self, url: &Url) -> Result<Client, Refused> {
        let mut builder = Client::builder().connect_timeout(CONNECT_TIMEOUT).referer(false);
        if let Some(listed) = self.0.clone() {
            let class = listed.class(url)?;
            if class == WebClass::Public {
                // A proxy would resolve names itself.
                builder = builder.no_proxy().dns_resolver(Arc::new(PublicOnly { remedy: listed.remedy }));
            }
            builder = builder.redirect(redirect::Policy::custom(move |attempt| {
                if attempt.previous().len() > MAX_REDIRECTS {
                    return attempt.error("too many redirects");
                }
                match listed.check(class, attempt.url()) {
                    Ok(()) => attempt.follow(),
                    Err(forbidden) => {
                        let to = attempt.url().origin().ascii_serialization();
                        let message = format!("the server redirects to {to}: {}", forbidden.message);
                        attempt.error(Forbidden { message, ..forbidden })
                    }
                }
            }));
        }
        builder.build().map_err(|error| Refused::new(chain(&error), "correct the URL"))
    }

    /// Refuses an object, or a folder of them, that the policy does not allow.
    pub(super) fn check_object(&self, scheme: Scheme, url: &Url, path: &Path) -> Result<(), Refused> {
        let Some(listed) = &self.0 else { return Ok(()) };
        let place = Prefix::of_store(scheme, url, path);
        if listed.prefixes.iter().any(|allowed| allowed.has(&place)) {
            return Ok(());
        }
        Err(listed.unlisted().into())
    }

    /// Returns the source that allows a database; `None` if everything is allowed.
    pub(crate) fn database(
        &self,
        fits: impl Fn(&PostgresSource) -> bool,
    ) -> Result<Option<&PostgresSource>, Refused> {
        let Some(listed) = &self.0 else { return Ok(None) };
        let found = listed.databases.iter().find(|source| fits(source));
        found.map(Some).ok_or_else(|| listed.unlisted().into())
    }
}

impl ListedSource {
    fn add(&mut self, source: &str) -> Result<(), String> {
        match source {
            PUBLIC_WEB => self.takes_public_web = true,
            NOTHING => {}
            _ => {
                let url = RemoteUrl::of(source).ok_or("it is no URL")?;
                let scheme = url.scheme().map_err(|nearest| format!("the nearest scheme is {nearest}://"))?;
                match scheme {
                    Scheme::Postgres => self.databases.push(PostgresSource::parse(source)?),
                    _ => self.prefixes.push(Prefix::parse(scheme, source)?),
                }
            }
        }
        Ok(())
    }

    fn class(&self, url: &Url) -> Result<WebClass, Forbidden> {
        if self.check(WebClass::Listed, url).is_ok() {
            return Ok(WebClass::Listed);
        }
        self.check(WebClass::Public, url).map(|()| WebClass::Public)
    }

    /// Refuses a URL of a web server that is not allowed in this way.
    fn check(&self, class: WebClass, url: &Url) -> Result<(), Forbidden> {
        let is_allowed = match class {
            WebClass::Listed => {
                let place = Prefix::of_web(url);
                self.prefixes.iter().any(|allowed| allowed.has(&place))
            }
            WebClass::Public => self.takes_public_web && url.scheme() == "https",
        };
        // The resolver of a client is not called for a host that is a literal address.
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            _ => None,
        };
        match address.filter(|address| class == WebClass::Public && !is_public(*address)) {
            _ if !is_allowed => Err(self.unlisted()),
            Some(address) => Err(private("the server", address, self.remedy)),
            None => Ok(()),
        }
    }

    fn unlisted(&self) -> Forbidden {
        let message = "it is not among the sources that are configured".into();
        Forbidden { message, remedy: self.remedy }
    }
}

impl Prefix {
    /// Parses a source of a list.
    fn parse(scheme: Scheme, source: &str) -> Result<Self, String> {
        let url = Url::parse(source).map_err(|error| error.to_string())?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err("it names no host or bucket".into());
        }
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err("it has more than a host or a bucket, and a path".into());
        }
        if scheme != Scheme::Web {
            let path = Path::from_url_path(url.path()).map_err(|error| error.to_string())?;
            return Ok(Self::of_store(scheme, &url, &path));
        }
        if !url.username().is_empty() {
            return Err("it names a user".into());
        }
        Ok(Self::of_web(&url))
    }

    fn of_web(url: &Url) -> Self {
        let parts = url.path_segments().into_iter().flatten().filter(|part| !part.is_empty());
        Self { root: url.origin().ascii_serialization(), path: parts.map(str::to_owned).collect() }
    }

    fn of_store(scheme: Scheme, url: &Url, path: &Path) -> Self {
        let parts = path.parts().map(|part| part.as_ref().to_owned());
        Self { root: format!("{scheme:?} {}", url.authority()), path: parts.collect() }
    }

    /// Returns whether this prefix contains `other`.
    fn has(&self, other: &Self) -> bool {
        // A server may treat an escaped separator as a separator, and so leave the prefix.
        let escapes =
            |part: &String| ["%2f", "%5c"].iter().any(|sign| part.to_ascii_lowercase().contains(sign));
        self.root == other.root
            && other.path.starts_with(&self.path)
            && (self.path.is_empty() || !other.path.iter().any(escapes))
    }
}

/// A connection that the policy does not allow.
#[derive(Debug)]
pub(super) struct Forbidden {
    message: String,
    remedy: &'static str,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Forbidden {}

impl From<Forbidden> for Refused {
    fn from(forbidden: Forbidden) -> Self {
        Self::new(forbidden.message, forbidden.remedy)
    }
}

/// Returns the refusal by the policy, if that caused an error.
pub(super) fn forbidden(error: &(dyn Error + 'static)) -> Option<Refused> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(Forbidden { message, remedy }) = error.downcast_ref() {
            return Some(Refused::new(message.clone(), remedy));
        }
        next = error.source();
    }
    None
}

/// A resolver that returns only public addresses. The client connects to the returned addresses, so no second answer of a name
/// server comes between.
struct PublicOnly {
    remedy: &'static str,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let remedy = self.remedy;
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            let public = public_of(name.as_str(), found.collect(), remedy)?;
            Ok(Box::new(public.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

/// Returns the public addresses of a name.
///
/// # Errors
/// [`Forbidden`] if all its addresses are other ones.
fn public_of(name: &str, found: Vec<SocketAddr>, remedy: &'static str) -> Result<Vec<SocketAddr>, Forbidden> {
    let public: Vec<_> = found.iter().copied().filter(|address| is_public(address.ip())).collect();
    match found.first() {
        Some(first) if public.is_empty() => Err(private(name, first.ip(), remedy)),
        _ => Ok(public),
    }
}

fn private(name: &str, address: IpAddr, remedy: &'static str) -> Forbidden {
    let message = format!("{name} is at {address}, which is not a public address");
    Forbidden { message, remedy }
}

/// Returns whether an address is on the public internet, by the special-purpose address registries of IANA (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!(
            (first, second, third),
            // This network, carrier-grade NAT, protocol assignments, 6to4 relays, benchmarks, multicast, reserved.
            (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) | (224.., ..)
        );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // NAT64 contains an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        // Protocol assignments with Teredo, documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast. Loopback, unspecified, IPv4-mapped, unique-local, link-local and multicast addresses are elsewhere.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMEDY: &str = "ask";

    fn policy(sources: &[&str]) -> SourcePolicy {
        let sources: Vec<_> = sources.iter().map(|source| (*source).to_owned()).collect();
        SourcePolicy::only(&sources, REMEDY).unwrap()
    }

    /// Returns whether a URL of a web server or of a store is allowed before any connection is made.
    fn allows(policy: &SourcePolicy, url: &str) -> bool {
        let url = RemoteUrl::of(url).unwrap().under(policy);
        let scheme = url.scheme().unwrap();
        match crate::remote::Remote::folder(&url, scheme) {
            Ok(_) => true,
            Err(refused) => {
                assert_eq!(refused.advice, Some(REMEDY), "{url:?}: {}", refused.message);
                false
            }
        }
    }

    #[test]
    fn addresses_are_public_or_not() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:808:808::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_name_is_connected_to_at_public_addresses_alone() {
        let at =
            |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect::<Vec<_>>();
        let both = at(&["10.0.0.1:0", "8.8.8.8:0", "[::1]:0"]);
        assert_eq!(public_of("a.example", both, REMEDY).unwrap(), at(&["8.8.8.8:0"]));
        let forbidden = public_of("a.example", at(&["169.254.169.254:0"]), REMEDY).unwrap_err();
        assert_eq!(forbidden.message, "a.example is at 169.254.169.254, which is not a public address");
    }

    #[test]
    fn a_list_allows_what_it_names() {
        let everything = SourcePolicy::default();
        assert!(["http://10.0.0.1/a", "https://h/a"].iter().all(|url| allows(&everything, url)));

        let public = policy(&["https://"]);
        for url in [
            "https://host.example/a.csv",
            "https://8.8.8.8/a",
            "https://[2606:4700::1]/a",
            "https://h:8443/a",
        ] {
            assert!(allows(&public, url), "{url}");
        }
        for url in [
            "http://host.example/a.csv",
            "https://127.0.0.1/a",
            "https://0x7f.1/a",
            "https://2130706433/a",
            "https://[::1]/a",
            "https://[::ffff:127.0.0.1]/a",
            "https://169.254.169.254/latest",
            "s3://bucket/a",
            "gs://bucket/a",
            "az://c/a",
        ] {
            assert!(!allows(&public, url), "{url}");
        }

        let some = policy(&[
            "https://h.example/data/",
            "http://10.0.0.1:8000",
            "https://127.0.0.1:8443",
            "az://c/in put",
        ]);
        for url in [
            "https://h.example/data/a.csv",
            "https://me:pw@H.example:443/data?sig=x",
            "http://10.0.0.1:8000/x/y",
            "https://127.0.0.1:8443/x",
            "https://h.example/other/../data/a",
        ] {
            assert!(allows(&some, url), "{url}");
        }
        for url in [
            "https://h.example/database.csv",
            "https://h.example/",
            "http://h.example/data/a",
            "https://h.example:8443/data/a",
            "https://h.example/data/../a",
            "https://h.example/data/%2e%2e/a",
            "https://h.example/data/..%2Fa",
            "https://h.example/data/..%5ca",
            "https://h.example.evil.example/data/a",
            "https://h.example@evil.example/data/a",
            "http://10.0.0.1/x",
            "http://10.0.0.2:8000/x",
            "https://other.example/a",
            "s3://c/in put/a",
        ] {
            assert!(!allows(&some, url), "{url}");
        }
        assert!(!allows(&policy(&["none"]), "https://h.example/a"));
    }

    #[test]
    fn objects_are_allowed_by_bucket_and_prefix() {
        let policy =
            policy(&["s3://bucket/in put", "gs://all", "abfss://files@account.dfs.core.windows.net/"]);
        let check = |url: &str| {
            let scheme = RemoteUrl::of(url).unwrap().scheme().unwrap();
            let url = Url::parse(url).unwrap();
            policy.check_object(scheme, &url, &Path::from_url_path(url.path()).unwrap()).is_ok()
        };
        for url in [
            "s3://bucket/in put/a.csv",
            "s3a://bucket/in%20put/a/b",
            "gs://all/x",
            "gs://all",
            "abfss://files@account.dfs.core.windows.net/x",
        ] {
            assert!(check(url), "{url}");
        }
        for url in [
            "s3://bucket/in",
            "s3://bucket/in putter/a",
            "s3://bucket",
            "s3://bucket2/in put/a",
            "s3://bucket:1/in put/a",
            "s3://me@bucket/in put/a",
            "s3://bucket/in put/../a",
            "gs://all2/x",
            "az://files/x",
            "abfss://files@other.dfs.core.windows.net/x",
            "abfss://more@account.dfs.core.windows.net/x",
        ] {
            assert!(!check(url), "{url}");
        }
    }

    #[test]
    fn sources_that_are_none_are_refused() {
        for (source, said) in [
            ("", "it is no URL"),
            ("/data", "it is no URL"),
            ("s4://bucket", "the nearest scheme is s3://"),
            ("s3://", "names no"),
            ("http://", "host"),
            ("https://me:SECRET@h/x", "it has more"),
            ("https://me@h/x", "it names a user"),
            ("https://h/x?sig=SECRET", "it has more"),
            ("postgres://me:SECRET@h/db", "a user or a password"),
            ("postgres://a,b/db", "one host"),
            ("postgres://h/db?sslmode=no", "sslmode=no"),
        ] {
            let error = SourcePolicy::only(&[source.to_owned()], REMEDY).unwrap_err();
            assert!(error.contains(said) && !error.contains("SECRET"), "{source}: {error}");
        }
    }
}
