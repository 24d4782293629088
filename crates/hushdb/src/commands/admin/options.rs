//! The options of a command line as JSON, for a task.

use std::error::Error;

use clap::{ArgAction, Args, Command, parser::ValueSource};
use serde_json::{Map, Value};

/// Returns the given options of a command, as [`options`] does. Refuses positional arguments.
pub(super) fn only_options<A: Args>(
    given: &[String],
    rest: &[&str],
) -> Result<Map<String, Value>, Box<dyn Error>> {
    let (options, places) = options::<A>(given, rest)?;
    match places.first() {
        Some(place) => Err(format!("unexpected argument '{place}': options begin with --").into()),
        None => Ok(options),
    }
}

/// The given options of a command, by name, and the given positional arguments.
type GivenOptions = (Map<String, Value>, Vec<String>);

/// Parses the given arguments of a command. Returns its options, by name, and its positional arguments. `rest` is what the command
/// requires beside them, and is left out of the result.
pub(super) fn options<A: Args>(given: &[String], rest: &[&str]) -> Result<GivenOptions, Box<dyn Error>> {
    let command = A::augment_args(Command::new("options").no_binary_name(true).disable_help_flag(true));
    let line = given.iter().map(String::as_str).chain(rest.iter().copied());
    let matches = command.clone().try_get_matches_from(line)?;
    let mut options = Map::new();
    let places = command
        .get_positionals()
        .flat_map(|arg| matches.get_raw(arg.get_id().as_str()).into_iter().flatten());
    let mut places: Vec<String> = places.map(|place| place.to_string_lossy().into_owned()).collect();
    // The positional arguments of `rest` come last.
    places.truncate(places.len() - rest.iter().filter(|given| !given.starts_with('-')).count());
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let Some(name) =
            arg.get_long().filter(|_| matches.value_source(id) == Some(ValueSource::CommandLine))
        else {
            continue;
        };
        if name == "out" {
            continue;
        }
        let value = match arg.get_action() {
            ArgAction::SetTrue => true.into(),
            _ => {
                let values = matches.get_raw(id).into_iter().flatten();
                values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>().into()
            }
        };
        options.insert(name.to_owned(), value);
    }
    Ok((options, places))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::build::BuildArgs;

    fn of(given: &[&str]) -> Result<Value, String> {
        let given: Vec<String> = given.iter().map(|&arg| arg.to_owned()).collect();
        let options = only_options::<BuildArgs>(&given, &["--out=x", "x"]);
        options.map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn options_that_are_given_are_passed_on() {
        let options = of(&["--key", "a", "--key=b", "--updatable", "--changes", "7"]).unwrap();
        assert_eq!(options, json!({"key": ["a", "b"], "updatable": true, "changes": ["7"]}));
        assert_eq!(of(&[]), Ok(json!({})));
        assert!(of(&["--colums", "7"]).unwrap_err().contains("--colums"));
        let given = ["b.csv", "--key", "a", "c.csv"].map(String::from);
        let (passed, more) = super::options::<BuildArgs>(&given, &["--out=x", "x"]).unwrap();
        assert_eq!(
            (Value::Object(passed), more),
            (json!({"key": ["a"]}), vec!["b.csv".into(), "c.csv".into()])
        );
        assert!(of(&["b.csv"]).unwrap_err().contains("unexpected argument 'b.csv'"));
    }
}
