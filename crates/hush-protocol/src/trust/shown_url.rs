//! URLs without their secrets, for messages and logs.

/// Returns a URL without its password, query and fragment, which may be secret. Returns a text that is no URL unchanged.
///
/// The password may contain characters that should have been escaped. It therefore ends at the last `@` of the URL.
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
