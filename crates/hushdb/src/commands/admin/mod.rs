//! `hushdb admin`: the command that makes a running server build, change, load and remove tables.

mod api;
mod options;

use std::{error::Error, fs::File, io::Read, path::Path, thread, time::Duration};

use clap::{Args, Subcommand};
use hush_engine::Progress;
use hush_ingest::Input;
use hush_protocol::Name;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use self::{
    api::Api,
    options::{only_options, options},
};
use super::{apply::ApplyArgs, bar::Bar, build::BuildArgs, compact::CompactArgs, trust::TrustArgs};
use crate::report;

/// The number of bytes of a part of an upload.
const PART_BYTES: usize = 8 << 20;
/// The units that tasks count.
const UNITS: [&str; 9] =
    ["bytes", "changes", "keys", "pieces", "plaintexts", "protocols", "records", "rows", "steps"];
/// The interval at which a task is polled.
const LOOK: Duration = Duration::from_millis(200);

/// Build, change, load and remove tables on a running server, by its admin endpoints (`serve --listen-admin --data`).
#[derive(Args)]
pub(crate) struct AdminArgs {
    /// URL of the server's admin endpoints. If not given, HUSHDB_ADMIN.
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,
    /// Token with the scope admin, if the server needs one. If not given, HUSHDB_TOKEN, which other users of this machine cannot
    /// see in the list of processes.
    #[arg(long, value_name = "TOKEN", global = true)]
    token: Option<String>,
    #[command(flatten)]
    trust_in: TrustArgs,
    /// Print lists in JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Print the number of the task, and do not wait for its end.
    #[arg(long, global = true)]
    detach: bool,
    #[command(subcommand)]
    what: AdminCommand,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Build a table and serve it. A file is uploaded; the server itself reads a URL.
    Build {
        /// Name of the table.
        name: Name,
        /// Records, as `hushdb build` takes them: a file, or a URL.
        input: String,
        /// More files or URLs of the same columns, and options of `hushdb build`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<String>,
    },
    /// Apply changes to a table.
    Apply {
        /// Name of the table.
        name: Name,
        /// New records, and records with a new value: a file or a URL, or - for none.
        input: String,
        /// Delete the records with these keys, from a file or a URL.
        #[arg(long, value_name = "FILE")]
        delete: Option<String>,
        /// Options of `hushdb apply`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<String>,
    },
    /// Apply a file of changes to a table, all or none: a JSON object a line, as of `apply --follow`.
    Changes {
        /// Name of the table.
        name: Name,
        /// The file.
        input: String,
    },
    /// Fold the changes of a table into a new base.
    Compact {
        /// Name of the table.
        name: Name,
        /// Options of `hushdb compact`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        options: Vec<String>,
    },
    /// Serve a kept build of a table: that of an epoch, or the newest. With a URL, fetch a table that was built elsewhere.
    Load {
        /// Name of the table.
        name: Name,
        /// URL of the table: s3://, gs://, az:// or https://.
        #[arg(value_name = "URL", conflicts_with = "epoch")]
        from: Option<String>,
        /// Epoch, as `tables` prints it.
        #[arg(long, value_name = "HEX")]
        epoch: Option<String>,
    },
    /// Stop serving a table, and keep it.
    Unload {
        /// Name of the table.
        name: Name,
    },
    /// Remove a table, or its kept build of one epoch.
    Delete {
        /// Name of the table.
        name: Name,
        /// Epoch, as `tables` prints it.
        #[arg(long, value_name = "HEX")]
        epoch: Option<String>,
    },
    /// List the tables that the server keeps, with the epochs of each.
    Tables,
    /// List the latest tasks.
    Tasks,
    /// Print a task in JSON.
    Task {
        /// Number of the task.
        id: u64,
    },
    /// Cancel a task.
    Cancel {
        /// Number of the task.
        id: u64,
    },
}

pub(crate) fn run(args: AdminArgs) -> Result<(), Box<dyn Error>> {
    let url = args.url.or_else(|| super::environment::variable("HUSHDB_ADMIN"));
    let url =
        url.ok_or("which server? --url http://127.0.0.1:7701, or HUSHDB_ADMIN, has its admin endpoints")?;
    let token = args.token.or_else(|| super::environment::variable("HUSHDB_TOKEN")).map(Zeroizing::new);
    let api = Api::new(&url, token, args.trust_in.options()?)?;
    let mut uploads = PendingUploads { api: &api, ids: Vec::new() };
    let request = match args.what {
        AdminCommand::Build { name, input, options: given } => {
            let (options, more) = options::<BuildArgs>(&given, &["--out=x", "x"])?;
            let mut input = uploads.input_of(&input)?;
            if !more.is_empty() {
                let more = more.iter().map(|more| uploads.input_of(more)).collect::<Result<Vec<_>, _>>()?;
                input = std::iter::once(input).chain(more).collect();
            }
            json!({"kind": "build", "table": name, "input": input, "options": options})
        }
        AdminCommand::Apply { name, input, delete, options: given } => {
            let options = only_options::<ApplyArgs>(&given, &["x"])?;
            let mut request = json!({"kind": "apply", "table": name, "options": options});
            let input = Some(input).filter(|input| input != "-");
            for (member, input) in [("input", input), ("delete", delete)] {
                if let Some(input) = input {
                    request[member] = uploads.input_of(&input)?;
                }
            }
            request
        }
        AdminCommand::Changes { name, input } => {
            json!({"kind": "changes", "table": name, "input": uploads.input_of(&input)?})
        }
        AdminCommand::Compact { name, options: given } => {
            json!({"kind": "compact", "table": name, "options": only_options::<CompactArgs>(&given, &["x"])?})
        }
        AdminCommand::Load { name, from: Some(from), .. } => {
            json!({"kind": "load", "table": name, "url": from})
        }
        AdminCommand::Load { name, from: None, epoch } => with_epoch("load", &name, epoch),
        AdminCommand::Unload { name } => json!({"kind": "unload", "table": name}),
        AdminCommand::Delete { name, epoch } => with_epoch("delete", &name, epoch),
        AdminCommand::Tables => return print_tables(&api.get("/v1/admin/tables")?, args.json),
        AdminCommand::Tasks => return print_tasks(&api.get("/v1/admin/tasks")?, args.json),
        AdminCommand::Task { id } => return print(&api.get(&format!("/v1/admin/tasks/{id}"))?),
        AdminCommand::Cancel { id } => {
            return print(&api.post(&format!("/v1/admin/tasks/{id}/cancel"), &json!({}))?);
        }
    };
    let task = api.post("/v1/admin/tasks", &request)?;
    // From here on the uploads belong to the task, unless the task fails.
    let ids = std::mem::take(&mut uploads.ids);
    if args.detach {
        return Ok(report::print(&format!("{}\n", task["id"]))?);
    }
    let task = follow(&api, task)?;
    match task["status"].as_str() {
        Some("succeeded") => {
            match task["epoch"].as_str() {
                Some(epoch) => say!("done: epoch {epoch} is served"),
                None => say!("done"),
            }
            Ok(())
        }
        status => {
            uploads.ids = ids;
            let error = task["error"].as_str().unwrap_or("somebody gave it up");
            Err(format!("task {} {}: {error}", task["id"], status.unwrap_or("is lost")).into())
        }
    }
}

fn with_epoch(kind: &str, table: &Name, epoch: Option<String>) -> Value {
    let mut request = json!({"kind": kind, "table": table});
    if let Some(epoch) = epoch {
        request["epoch"] = epoch.into();
    }
    request
}

/// The uploads that no task uses. When this value is dropped, they are removed from the server, since a retry uploads again.
struct PendingUploads<'a> {
    api: &'a Api,
    ids: Vec<String>,
}

impl Drop for PendingUploads<'_> {
    fn drop(&mut self) {
        for id in &self.ids {
            // The user is told the error that led here.
            let _ = self.api.delete(&format!("/v1/admin/uploads/{id}"));
        }
    }
}

impl PendingUploads<'_> {
    /// Returns an input as a task names it. Uploads a file.
    fn input_of(&mut self, input: &str) -> Result<Value, Box<dyn Error>> {
        match Input::from(input.as_ref()) {
            Input::Path(path) => upload(self, &path),
            Input::Stdin => {
                Err("a task reads a file or a URL: write what comes from standard input to a file".into())
            }
            _ => Ok(json!({ "url": input })),
        }
    }
}

/// Uploads a file in parts, in order. The error of a part ends the upload.
fn upload(uploads: &mut PendingUploads<'_>, path: &Path) -> Result<Value, Box<dyn Error>> {
    let api = uploads.api;
    let unreadable = |error| format!("cannot read {}: {error}", path.display());
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(format!("{} is no file: a task reads a file or a URL", path.display()).into());
    }
    let name = upload_name(&path.file_name().unwrap_or_default().to_string_lossy());
    let begun = api.post("/v1/admin/uploads", &json!({ "name": name }))?;
    let id = begun["id"].as_str().ok_or("the server gave the upload no name")?.to_owned();
    uploads.ids.push(id.clone());
    let bar = Bar::new();
    bar.start("upload", metadata.len(), "bytes");
    let mut offset = 0;
    let mut part = vec![0; PART_BYTES];
    loop {
        let mut length = 0;
        while length < part.len() {
            match file.read(&mut part[length..]).map_err(unreadable)? {
                0 => break,
                count => length += count,
            }
        }
        if length == 0 {
            bar.finish();
            return Ok(json!({ "upload": id }));
        }
        api.append(&format!("/v1/admin/uploads/{id}"), offset, &part[..length])?;
        offset += length as u64;
        bar.advance(length as u64);
    }
}

/// Returns the name for the upload of a file: the end of the file's own name, which states the format.
fn upload_name(file: &str) -> String {
    let name: String = file
        .chars()
        .map(|c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    name[name.len().saturating_sub(Name::MAX_BYTES)..].trim_start_matches('.').into()
}

/// Shows the progress of a task until its end. Returns the finished task.
fn follow(api: &Api, mut task: Value) -> Result<Value, Box<dyn Error>> {
    let path = format!("/v1/admin/tasks/{}", task["id"]);
    let bar = Bar::new();
    let mut stage = String::new();
    let mut done = 0;
    let mut notes = 0;
    loop {
        for note in task["notes"].as_array().into_iter().flatten().skip(notes) {
            bar.note(note.as_str().unwrap_or(""));
            notes += 1;
        }
        let progress = &task["progress"];
        if let Some(now) = progress["stage"].as_str().filter(|now| !now.is_empty()) {
            if now != stage {
                let unit = UNITS.into_iter().find(|unit| progress["unit"] == *unit).unwrap_or("");
                bar.start(now, progress["total"].as_u64().unwrap_or(0), unit);
                (stage, done) = (now.to_owned(), 0);
            }
            let now = progress["done"].as_u64().unwrap_or(0);
            bar.advance(now.saturating_sub(done));
            done = now;
        }
        if !matches!(task["status"].as_str(), Some("enqueued" | "processing")) {
            bar.finish();
            return Ok(task);
        }
        thread::sleep(LOOK);
        task = api.get(&path)?;
    }
}

fn print(value: &Value) -> Result<(), Box<dyn Error>> {
    Ok(report::print(&format!("{}\n", serde_json::to_string_pretty(value)?))?)
}

fn print_tables(answer: &Value, json: bool) -> Result<(), Box<dyn Error>> {
    if json {
        return print(answer);
    }
    let mut lines = String::new();
    for table in answer["tables"].as_array().into_iter().flatten() {
        lines += &format!("{}\n", text(&table["name"]));
        for build in table["builds"].as_array().into_iter().flatten() {
            let mark = if build["epoch"] == table["serves"] { "serves" } else { "      " };
            lines += &format!("  {mark} {} {} records\n", text(&build["epoch"]), build["records"]);
        }
    }
    Ok(report::print(&lines)?)
}

fn print_tasks(answer: &Value, json: bool) -> Result<(), Box<dyn Error>> {
    if json {
        return print(answer);
    }
    let mut lines = String::new();
    for task in answer["tasks"].as_array().into_iter().flatten() {
        let request = &task["request"];
        let kind = text(&request["kind"]);
        let table = text(&request["table"]);
        let status = text(&task["status"]);
        let error = task["error"].as_str().map_or(String::new(), |error| format!(": {error}"));
        lines += &format!("{:>5}  {kind} {table}: {status}{error}\n", task["id"]);
    }
    Ok(report::print(&lines)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
