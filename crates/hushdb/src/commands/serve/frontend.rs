//! The command line as the front end of a server's tables: lines on standard error, bars, and the options of its commands.

use std::{ffi::OsString, fmt, path::Path};

use hush_build::{ApplyRequest, CompactRequest, JobRequest};
use hush_operator::{Frontend, Shown};
use serde_json::{Map, Value};
use tracing::Level;

use crate::{
    commands::{apply, bar::Bar, build, compact, options::arguments},
    report,
};

/// The command line, as the front end of a server's tables.
pub(super) struct CommandLine;

impl Frontend for CommandLine {
    fn tell(&self, level: Level, table: Option<&str>, line: fmt::Arguments<'_>) {
        report::write_line(level, table, line);
    }

    fn show(&self) -> Box<dyn Shown> {
        Box::new(Bar::new())
    }

    fn build(
        &self,
        options: &Map<String, Value>,
        inputs: &[OsString],
        out: &Path,
    ) -> Result<JobRequest, String> {
        build::request(arguments(options, &[("out", out)], inputs)?)
    }

    fn apply(
        &self,
        options: &Map<String, Value>,
        changes: Option<OsString>,
        delete: Option<&Path>,
    ) -> Result<ApplyRequest, String> {
        let delete: Vec<_> = delete.map(|path| ("delete", path)).into_iter().collect();
        // The task knows its table, so any name will do here.
        let places: Vec<_> = [OsString::from("table")].into_iter().chain(changes).collect();
        let (_, request, _) = apply::request(arguments(options, &delete, &places)?);
        Ok(request)
    }

    fn compact(&self, options: &Map<String, Value>) -> Result<CompactRequest, String> {
        let (_, request, _) = compact::request(arguments(options, &[], &["table".into()])?);
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build(options: Value) -> Result<JobRequest, String> {
        CommandLine.build(options.as_object().unwrap(), &["--help".into()], Path::new("/data/-x"))
    }

    #[test]
    fn options_are_those_of_the_command() {
        assert!(
            build(json!({"key": ["a", "b"], "protocol": "simple", "updatable": true, "changes": 7})).is_ok()
        );
        assert!(build(json!({"key": "--out=/etc", "hidden": false})).is_ok(), "a value is never an option");
        assert!(
            build(
                json!({"normalize": ["lower", "nfc"], "expect-rows": 7, "separator": ";", "no-header": true})
            )
            .is_ok()
        );
        for (options, said) in [
            (json!({"protocol": "fast"}), "unknown protocol 'fast'"),
            (json!({"colums": 7}), "there is no option 'colums'; the nearest is 'columns'"),
            (json!({"key=a --out": "/etc"}), "there is no option"),
            (json!({"help": true}), "there is no option 'help'"),
            (json!({"key": {"a": 1}}), "a string, a number"),
            (json!({"changes": 7}), "required, and not given: 'updatable'"),
        ] {
            let error = build(options).err().unwrap();
            assert!(error.contains(said) && !error.contains("Usage") && !error.contains('\n'), "{error}");
        }
    }
}
