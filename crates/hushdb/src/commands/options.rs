//! The options of a command as data, by the names of its command line, for every caller that has options in JSON.

use std::{error::Error as _, ffi::OsString, path::Path};

use clap::{
    Args, Error, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use hush_protocol::wording::Slot;
use serde_json::{Map, Value};

/// A command line without the name of the program.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct OptionLine<A: Args> {
    #[command(flatten)]
    args: A,
}

/// Parses the arguments of a command. `fixed` are options that the caller sets, `places` the positional arguments.
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
    OptionLine::try_parse_from(line).map(|line: OptionLine<A>| line.args).map_err(|error| told(&error))
}

/// Formats the error of invalid options, with the option names of the caller's interface.
fn told(error: &Error) -> String {
    let all = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.as_str()],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    // An argument looks like `--columns <N>`.
    let option = |arg: &str| match arg.strip_prefix("--").and_then(|arg| arg.split([' ', '=']).next()) {
        Some(name) => Slot::Option(name).to_string(),
        None => arg.to_owned(),
    };
    let options = |kind| all(kind).into_iter().map(option).collect::<Vec<_>>().join(", ");
    let given = options(ContextKind::InvalidArg);
    let value = all(ContextKind::InvalidValue).concat();
    match (error.kind(), error.source()) {
        (ErrorKind::UnknownArgument, _) => match options(ContextKind::SuggestedArg) {
            nearest if nearest.is_empty() => format!("there is no option {given}"),
            nearest => format!("there is no option {given}; the nearest is {nearest}"),
        },
        (ErrorKind::MissingRequiredArgument, _) => format!("required, and not given: {given}"),
        (ErrorKind::ArgumentConflict, _) => match options(ContextKind::PriorArg) {
            other if other == given => format!("{given} is given more than once"),
            other => format!("{given} and {other} exclude each other"),
        },
        (ErrorKind::ValueValidation, Some(reason)) => format!("{given} cannot be '{value}': {reason}"),
        (ErrorKind::InvalidValue, _) => {
            format!("{given} cannot be '{value}': use one of {}", all(ContextKind::ValidValue).join(", "))
        }
        (kind, _) => format!("{given}: {kind}"),
    }
}
