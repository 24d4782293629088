//! The layers beneath the command line of `serve`: the environment, then a file.
//!
//! Both become defaults of the arguments of `serve`. Each setting is therefore defined once, as an argument, and its value is
//! parsed and refused in the same way in every layer.

use std::{env, fs, path::Path};

use clap::{Arg, ArgAction, Command, builder::OsStr};
use toml::{Table, Value};

use crate::commands::environment::ALIKE;

/// The most bytes of a settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The values of some settings, by the id of their argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingLayer(Vec<(String, Vec<String>)>);

impl SettingLayer {
    /// Reads the settings of `serve` from a file.
    pub(crate) fn file(path: &Path, serve: &Command) -> Result<Self, String> {
        let shown = path.display();
        let refused = |reason: String| format!("{shown}: {reason}");
        let bytes = fs::metadata(path).map_err(|error| refused(error.to_string()))?.len();
        if bytes > MAX_FILE_BYTES {
            return Err(refused(format!("it has {bytes} bytes, too many for settings")));
        }
        let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        Self::text(&text, serve).map_err(refused)
    }

    fn text(text: &str, serve: &Command) -> Result<Self, String> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())?;
        let mut layer = Self::default();
        for (key, value) in table {
            let id = key.replace('-', "_");
            let Some(arg) = settings(serve).find(|arg| arg.get_id().as_str() == id && !key.contains('_'))
            else {
                return Err(unknown(&key, serve));
            };
            let values = match value {
                Value::Array(all) => {
                    all.iter().map(|value| text_of(&key, value)).collect::<Result<_, _>>()?
                }
                one => vec![text_of(&key, &one)?],
            };
            layer.add(serve, arg, values).map_err(|reason| format!("{key}: {reason}"))?;
        }
        Ok(layer)
    }

    /// Reads the settings of `serve` from the environment.
    pub(crate) fn environment(serve: &Command) -> Result<Self, String> {
        let mut layer = Self::default();
        for arg in settings(serve) {
            let name = variable(arg);
            let Some(value) = env::var_os(&name) else { continue };
            let value = value.into_string().map_err(|_| format!("{name} is not UTF-8"))?;
            if value.is_empty() {
                continue; // An empty variable counts as unset.
            }
            let value = if takes_none(arg) { truth(&value).to_owned() } else { value };
            let values = match takes_several(arg) {
                true => value.split(',').map(str::to_owned).collect(),
                false => vec![value],
            };
            layer.add(serve, arg, values).map_err(|reason| format!("{name}: {reason}"))?;
        }
        Ok(layer)
    }

    /// Adds a setting. Refuses values that the argument would refuse.
    fn add(&mut self, serve: &Command, arg: &Arg, values: Vec<String>) -> Result<(), String> {
        if values.is_empty() {
            return Err("the list is empty".into());
        }
        if values.len() > 1 && !takes_several(arg) {
            return Err(format!("it is one value, not {}", values.len()));
        }
        let one = Self(vec![(arg.get_id().to_string(), values)]);
        let alone = one.beneath(serve.clone()).mut_args(|arg| arg.required(false));
        alone.try_get_matches_from(["serve"]).map_err(|error| {
            let said = error.to_string();
            said.lines().next().unwrap_or("").trim_start_matches("error: ").to_owned()
        })?;
        self.0.extend(one.0);
        Ok(())
    }

    /// Returns `serve` with these values as defaults.
    pub(crate) fn beneath(&self, serve: Command) -> Command {
        self.0.iter().fold(serve, |serve, (id, values)| {
            let values: Vec<OsStr> = values.iter().map(|value| OsStr::from(value.clone())).collect();
            serve.mut_arg(id, |arg| arg.required(false).default_values(values))
        })
    }

    /// Returns whether the layer has a setting of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(own, _)| own == id)
    }
}

/// Returns the arguments of `serve` that are settings: all except those about the settings themselves.
pub(crate) fn settings(serve: &Command) -> impl Iterator<Item = &Arg> {
    serve
        .get_arguments()
        .filter(|arg| !matches!(arg.get_id().as_str(), "config" | "help" | "help_all" | "version"))
}

/// Returns the key of a setting in the settings file.
pub(crate) fn key(arg: &Arg) -> String {
    arg.get_id().as_str().replace('_', "-")
}

/// Returns the name of the environment variable of a setting.
pub(crate) fn variable(arg: &Arg) -> String {
    format!("HUSHDB_{}", arg.get_id().as_str().to_ascii_uppercase())
}

/// Returns whether an argument takes no value on the command line.
fn takes_none(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Converts the words for true and false in environments to `true` and `false`.
fn truth(value: &str) -> &str {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => "true",
        "0" | "false" | "no" | "off" => "false",
        _ => value,
    }
}

fn takes_several(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn text_of(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(is) => Ok(is.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            Err(format!("{key}: it is a text, a number, true or false, or a list of texts"))
        }
    }
}

fn unknown(name: &str, serve: &Command) -> String {
    let alike = settings(serve).map(key).map(|key| (strsim::jaro_winkler(name, &key), key));
    let nearest = alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|&(alike, _)| alike >= ALIKE);
    match nearest {
        Some((_, nearest)) => format!("there is no setting '{name}': did you mean '{nearest}'?"),
        None => format!(
            "there is no setting '{name}': they are the options of hushdb serve --help, without dashes"
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::commands::serve::ServeArgs;

    fn serve() -> Command {
        ServeArgs::augment_args(Command::new("serve"))
    }

    #[test]
    fn a_file_is_beneath_the_command_line() {
        let text =
            "tables = ['a', 'b']\nlisten = '127.0.0.1:1'\nwindow = 7\nwatch = true\nclient-share = 50\n";
        let layer = SettingLayer::text(text, &serve()).unwrap();
        let args = |given: &[&str]| {
            let command = layer.beneath(serve());
            let matches = command.try_get_matches_from([&["serve"], given].concat()).unwrap();
            let get =
                |id: &str| matches.get_raw(id).map(|all| all.map(|one| one.to_str().unwrap().to_owned()));
            let settings = ["tables", "listen", "window", "watch", "client_share", "max_queue"];
            let all =
                settings.map(|id| get(id).map(|all| all.collect::<Vec<_>>().join(",")).unwrap_or_default());
            assert!(ServeArgs::from_arg_matches(&matches).is_ok());
            all
        };
        assert_eq!(args(&[]), ["a,b", "127.0.0.1:1", "7", "true", "50", "1024"]);
        assert_eq!(args(&["c", "--window", "1"]), ["c", "127.0.0.1:1", "1", "true", "50", "1024"]);
    }

    #[test]
    fn what_is_wrong_is_said_and_where() {
        for (text, words) in [
            ("lsiten = '127.0.0.1:1'", "no setting 'lsiten': did you mean 'listen'?"),
            ("max_queue = 5", "did you mean 'max-queue'?"),
            ("config = 'x'", "there is no setting 'config'"),
            ("zzz = 1", "hushdb serve --help"),
            ("window = 'long'", "window: invalid value 'long' for '--window <MS>'"),
            ("window = [1, 2]", "window: it is one value, not 2"),
            ("client-share = 101", "client-share: invalid value '101'"),
            ("tables = []", "tables: the list is empty"),
            ("watch = 1", "watch: invalid value '1'"),
            ("threads = 1979-05-27", "threads: it is a text"),
            ("window = 1\nwindow = 2", "duplicate key"),
            ("window =", "line 1"),
        ] {
            let error = SettingLayer::text(text, &serve()).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_switch_in_the_environment_has_the_words_of_environments() {
        for (word, truth_of) in [
            ("1", "true"),
            ("Yes", "true"),
            ("on", "true"),
            ("TRUE", "true"),
            ("0", "false"),
            ("Off", "false"),
        ] {
            assert_eq!(truth(word), truth_of);
        }
        assert_eq!(truth("maybe"), "maybe", "which is refused as it is");
    }

    /// Checks that the example has every setting with its default, in comments, and is valid once it is uncommented.
    #[test]
    fn the_example_has_every_setting() {
        let example = include_str!("../../../../../docs/reference/hushdb.toml");
        let text: Vec<&str> = example.lines().filter_map(|line| line.strip_prefix("#:")).collect();
        let text = text.join("\n");
        SettingLayer::text(&text, &serve()).unwrap();
        let table: Table = text.parse().unwrap();
        for arg in settings(&serve()) {
            let key = key(arg);
            let Some(value) = table.get(&key) else { panic!("{key} is not in the example") };
            let default = match arg.get_default_values() {
                [default] => default.to_str().unwrap(),
                _ if takes_none(arg) => "false",
                _ => continue,
            };
            assert_eq!(text_of(&key, value).unwrap(), default, "{key}");
        }
    }
}
