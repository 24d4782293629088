//! The request of a task in JSON. Its options have the names of the command line.

use hush_protocol::Name;
use hush_server::OperatorError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The options of a command that a task refuses: they name files of the machine, or are the server's to decide.
const NOT_TAKEN: [&str; 16] = [
    "out",
    "machine",
    "sign",
    "sign-as",
    "serial",
    "force",
    "threads",
    "backend",
    "delete",
    "skip-bad-rows",
    "follow",
    "every",
    "most",
    "keep-epochs",
    "slot",
    "publication",
];

/// The request of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TaskRequest))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// Build a table, and serve it, also in place of one with the same name.
    Build {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        input: TaskInputs,
        /// Options of the command of the same name.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        options: Map<String, Value>,
    },
    /// Apply changes to a table.
    Apply {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<TaskInput>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delete: Option<TaskInput>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        options: Map<String, Value>,
    },
    /// Apply all changes of a stream to a table, or none: lines of JSON, as of `apply --follow`.
    Changes {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        input: TaskInput,
    },
    /// Fold the changes of a table into a new base.
    Compact {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        options: Map<String, Value>,
    },
    /// Serve a kept build of a table, of an epoch or the newest; or fetch the table at a URL, and serve it.
    Load {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// Stop serving a table, and keep it.
    Unload {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
    },
    /// Remove a table, or its kept build of one epoch.
    Delete {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        table: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<String>,
    },
}

/// The source of the records of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    expecting = "an input is an upload, {\"upload\": ID}, something elsewhere, {\"url\": URL}, or a list of these"
)]
pub(super) enum TaskInputs {
    /// A single input.
    One(TaskInput),
    /// Files of the same columns.
    Several(Vec<TaskInput>),
}

impl TaskInputs {
    /// Returns the inputs in the order in which they are read.
    pub(super) fn all(&self) -> &[TaskInput] {
        match self {
            Self::One(input) => std::slice::from_ref(input),
            Self::Several(inputs) => inputs,
        }
    }
}

/// The source of records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "an input is an upload, {\"upload\": ID}, or something elsewhere, {\"url\": URL}"
)]
pub(super) enum TaskInput {
    /// An upload.
    Upload {
        #[cfg_attr(feature = "openapi", schema(value_type = hush_server::openapi::Name))]
        upload: Name,
    },
    /// The URL of an object, a file of a web server or a database that the server's setting task-source allows.
    Url { url: String },
}

/// The schema of the request of a task, for the description of the API.
#[cfg(feature = "openapi")]
#[derive(utoipa::OpenApi)]
#[openapi(components(schemas(Request)))]
pub struct DescribedTask;

impl Request {
    /// Parses a request.
    pub(super) fn of(value: &Value) -> Result<Self, OperatorError> {
        serde_json::from_value(value.clone())
            .map_err(|error| OperatorError::Invalid(format!("that is no task: {error}")))
    }

    /// Returns the table of the request.
    pub(super) fn table(&self) -> &Name {
        match self {
            Self::Build { table, .. }
            | Self::Apply { table, .. }
            | Self::Changes { table, .. }
            | Self::Compact { table, .. }
            | Self::Load { table, .. }
            | Self::Unload { table }
            | Self::Delete { table, .. } => table,
        }
    }

    /// Returns the inputs of the request.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &TaskInput> {
        let (built, first, second) = match self {
            Self::Build { input, .. } => (input.all(), None, None),
            Self::Apply { input, delete, .. } => (&[][..], input.as_ref(), delete.as_ref()),
            Self::Changes { input, .. } => (&[][..], Some(input), None),
            _ => (&[][..], None, None),
        };
        built.iter().chain(first).chain(second)
    }
}

/// Refuses options that a task does not take.
///
/// # Errors
/// [`OperatorError::Invalid`].
pub(super) fn check_options(options: &Map<String, Value>) -> Result<(), OperatorError> {
    match options.keys().find(|name| NOT_TAKEN.contains(&name.as_str())) {
        Some(name) => Err(OperatorError::Invalid(format!("a task does not take the option '{name}'"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_of_the_machine_are_not_taken() {
        let check =
            |options: Value| check_options(options.as_object().unwrap()).map_err(|error| error.to_string());
        assert_eq!(check(json!({"key": "a", "updatable": true})), Ok(()));
        for name in ["out", "sign", "skip-bad-rows", "threads"] {
            assert_eq!(
                check(json!({(name): "/etc"})),
                Err(format!("a task does not take the option '{name}'"))
            );
        }
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        assert!(Request::of(&json!({"kind": "unload", "table": "t"})).is_ok());
        let build =
            json!({"kind": "build", "table": "t", "input": {"url": "s3://b/k.csv"}, "options": {"key": "k"}});
        assert_eq!(serde_json::to_value(Request::of(&build).unwrap()).unwrap(), build);
        let several =
            json!({"kind": "build", "table": "t", "input": [{"upload": "u"}, {"url": "s3://b/k.csv"}]});
        let request = Request::of(&several).unwrap();
        assert_eq!(request.inputs().count(), 2);
        assert_eq!(serde_json::to_value(request).unwrap(), several);
        for bad in [
            json!({"kind": "drop", "table": "t"}),
            json!({"kind": "unload"}),
            json!({"kind": "unload", "table": "t", "epoch": "00"}),
            json!({"kind": "build", "table": "t"}),
            json!({"kind": "build", "table": "t", "input": {"path": "/etc/passwd"}}),
            json!({"kind": "build", "table": "t", "input": [{"path": "/etc/passwd"}]}),
            json!({"kind": "build", "table": "t", "input": {"upload": "../t"}}),
            json!({"kind": "unload", "table": ".."}),
            json!({"kind": "delete", "table": "a/b"}),
            json!([]),
        ] {
            assert!(Request::of(&bad).unwrap_err().to_string().starts_with("that is no task: "), "{bad}");
        }
    }
}
