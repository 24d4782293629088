//! The settings of an object store, from the environment.

use std::{env, str::FromStr};

use crate::remote::Refused;

/// Returns the settings of a store from the variables whose names begin with `prefix`. An empty variable is ignored.
///
/// # Errors
/// A variable cannot be part of a request: the library for stores takes every value as it is, and would panic.
pub(super) fn settings<K: FromStr>(prefix: &str) -> Result<Vec<(K, String)>, Refused> {
    let mut settings = Vec::new();
    for (name, value) in env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let Some(setting) =
            name.starts_with(prefix).then(|| name.to_ascii_lowercase().parse().ok()).flatten()
        else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        if value.chars().any(char::is_control) {
            return Err(Refused::new(
                format!("the variable {name} has a line end or another control character"),
                "take it out",
            ));
        }
        if name.contains("ENDPOINT") && !is_endpoint(value) {
            return Err(Refused::new(
                format!("the variable {name} is no URL"),
                "give one such as https://storage.example or http://127.0.0.1:9000",
            ));
        }
        settings.push((setting, value.to_owned()));
    }
    Ok(settings)
}

/// Returns whether the value of an endpoint variable is a URL that requests can be made to.
fn is_endpoint(value: &str) -> bool {
    let url = ::url::Url::parse(value);
    url.is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
        && !value.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_endpoint_is_told_before_a_request() {
        for good in ["http://127.0.0.1:9000", "https://storage.example/path", "http://[::1]:9000"] {
            assert!(is_endpoint(good), "{good}");
        }
        for bad in ["127.0.0.1:7850", "http://", "s3.example.com", "http://127.0.0.1:7850/ x", "ftp://a"] {
            assert!(!is_endpoint(bad), "{bad}");
        }
    }
}
