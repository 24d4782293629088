//! The options of a command as data, by the names that they have on its command line: one definition for whoever asks.

use std::{ffi::OsString, path::Path};

use clap::{Args, Parser};
use serde_json::{Map, Value};

/// A command line of which only the options are given.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct Line<A: Args> {
    #[command(flatten)]
    args: A,
}

/// The arguments of a command; `fixed` are options that whoever runs it says, `places` what has no name.
///
/// # Errors
/// What the command itself would say.
pub(crate) fn arguments<A: Args>(
    options: &Map<String, Value>,
    fixed: &[(&str, &Path)],
    places: &[OsString],
) -> Result<A, String> {
    let mut line = Vec::new();
    for (name, value) in options {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
            return Err(format!("there is no option '{name}'"));
        }
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            match value {
                Value::Bool(true) => line.push(format!("--{name}").into()),
                Value::Bool(false) => {}
                Value::String(text) => line.push(format!("--{name}={text}").into()),
                Value::Number(number) => line.push(format!("--{name}={number}").into()),
                _ => {
                    return Err(format!(
                        "the option '{name}' is a string, a number, true, or a list of them"
                    ));
                }
            }
        }
    }
    for (name, path) in fixed {
        let mut option = OsString::from(format!("--{name}="));
        option.push(path);
        line.push(option);
    }
    line.push("--".into());
    line.extend_from_slice(places);
    Line::try_parse_from(line).map(|line: Line<A>| line.args).map_err(|error| {
        let text = error.to_string();
        let said = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
        let said = said.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        said.trim_start_matches("error: ").to_owned()
    })
}
