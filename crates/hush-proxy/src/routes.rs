//! Paths that are answered by a look-up.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{http::StatusCode, response::Response};
use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

use crate::{
    cache::AnswerCache,
    config::{ConfigError, RouteSettings, wrong},
    front::{refused, respond},
    tables::{FoundRecord, PrivateTable},
    template::{Filling, of_record},
};

/// All routes.
pub(crate) struct Routes(Vec<Route>);

struct Route {
    segments: Vec<PathSegment>,
    settings: RouteSettings,
    table: PrivateTable,
    cache: Option<AnswerCache>,
}

enum PathSegment {
    Text(String),
    Named(String),
}

/// The names of a path, with the texts that a request has for them.
type GivenNames<'a> = Vec<(&'a str, Zeroizing<Vec<u8>>)>;

/// A route that has the path of a request, and the texts of its names.
pub(crate) struct FoundRoute<'a> {
    route: &'a Route,
    names: GivenNames<'a>,
}

impl Routes {
    pub(crate) fn new(
        settings: Vec<RouteSettings>,
        tables: &BTreeMap<String, PrivateTable>,
    ) -> Result<Self, ConfigError> {
        let routes = settings.into_iter().map(|settings: RouteSettings| {
            let segments = settings.get[1..].split('/').map(PathSegment::of).collect();
            let missing = || wrong(format!("route {}", settings.get), "its table is not there");
            let table = tables.get(&settings.table).ok_or_else(missing)?.clone();
            let cache = settings.cache.map(AnswerCache::new);
            Ok(Route { segments, settings, table, cache })
        });
        routes.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the first route that has this path.
    pub(crate) fn find<'a>(&'a self, path: &str) -> Option<FoundRoute<'a>> {
        let given: Vec<_> = path.strip_prefix('/')?.split('/').collect();
        self.0.iter().find_map(|route| route.names(&given).map(|names| FoundRoute { route, names }))
    }
}

impl PathSegment {
    fn of(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) => Self::Named(name.to_owned()),
            None => Self::Text(text.to_owned()),
        }
    }
}

impl Route {
    /// Returns the texts of the names, if the segments of a path are those of the route.
    fn names(&self, given: &[&str]) -> Option<GivenNames<'_>> {
        if given.len() != self.segments.len() {
            return None;
        }
        let mut names = Vec::new();
        for (segment, given) in self.segments.iter().zip(given) {
            let given = Zeroizing::new(percent_decode_str(given).collect::<Vec<u8>>());
            match segment {
                PathSegment::Text(text) if text.as_bytes() == &given[..] => {}
                PathSegment::Named(name) if !given.is_empty() => names.push((&name[..], given)),
                _ => return None,
            }
        }
        Some(names)
    }
}

impl FoundRoute<'_> {
    /// Looks the key up, and returns the response.
    pub(crate) async fn answer(&self, query: &str) -> Response {
        let Route { settings, table, cache, .. } = self.route;
        let given = |name: &str| {
            let text = match name.strip_prefix("query.") {
                Some(name) => Cow::Owned(parameter(query, name)?),
                None => Cow::Borrowed(&self.names.iter().find(|(own, _)| *own == name)?.1[..]),
            };
            Some(Filling::Text(text))
        };
        let key = match settings.key.fill(given) {
            Ok(key) => key,
            Err(name) => return refused(StatusCode::BAD_REQUEST, &format!("the request has no {name}")),
        };
        let record = match cache.as_ref().and_then(|cache| cache.get(&key)) {
            Some(record) => record,
            None => match table.look_up(&key).await {
                Ok(record) => {
                    if let Some(cache) = cache {
                        cache.put(&key, record.clone());
                    }
                    record
                }
                Err(error) => {
                    let (status, why) = error.told();
                    return refused(status, why);
                }
            },
        };
        respond_with(settings, &record, given)
    }
}

fn respond_with<'v>(
    settings: &RouteSettings,
    record: &'v FoundRecord,
    given: impl Fn(&str) -> Option<Filling<'v>>,
) -> Response {
    let missing = &settings.missing;
    let Some(value) = record else {
        return respond(missing.status, &missing.content_type, missing.body.clone());
    };
    match settings.body.fill(|name| of_record(value, name).or_else(|| given(name))) {
        Ok(body) => respond(settings.status, &settings.content_type, body.to_vec()),
        Err(name) => refused(StatusCode::BAD_GATEWAY, &format!("the record has no {name}")),
    }
}

/// Returns a parameter of a query, with plus signs as spaces.
fn parameter(query: &str, name: &str) -> Option<Vec<u8>> {
    query.split('&').find_map(|pair| {
        let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_it = percent_decode_str(own).eq(name.bytes());
        is_it.then(|| percent_decode_str(&value.replace('+', " ")).collect())
    })
}
