//! URLs as they may be shown.

/// Returns a URL without what may be secret in it: a password, a query, a fragment. A text that is no URL stays as it is.
///
/// A password may have any character in it that should have been escaped, so it ends at the last `@`, wherever that is.
pub fn shown_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (user.split([':', '?', '#']).next(), rest),
        None => (None, rest),
    };
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    match user {
        Some(user) => format!("{scheme}://{user}@{place}"),
        None => format!("{scheme}://{place}"),
    }
}
