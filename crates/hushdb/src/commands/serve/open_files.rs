//! The number of connections of a server, limited by the files that its process may open.

use std::{fs, path::Path};

use hush_server::ServerConfig;

use crate::process::{open_files, raise_open_files};

/// The number of files of the runtime, signals, keys and reloaded settings, and of those that a request opens briefly.
const OWN: usize = 24;
/// The number of files of a table whose folder is not known yet.
const OF_TABLE: usize = 32;
/// The number of connections and files of a table that is fetched.
const OF_COPY: usize = 16;
/// The number of files of a build or a change beside the look-ups: records are sorted in 256 files.
const OF_TASKS: usize = 320;
/// The fewest connections of the public listener. Fewer would lock out well-behaved clients.
const LEAST: usize = 16;

/// The files that a server needs beside its connections.
#[derive(Default)]
pub(in crate::commands) struct Needs {
    /// The number of files for tables, sources and tasks.
    pub(in crate::commands) files: usize,
    /// The number of listeners beside the public one.
    pub(in crate::commands) other_listeners: usize,
}

impl Needs {
    /// Adds a table in a folder, of which two epochs may be open. A copy also needs files while it is fetched.
    pub(super) fn table(&mut self, dir: &Path, is_copy: bool) {
        let files = fs::read_dir(dir).map_or(OF_TABLE, Iterator::count);
        self.files += 2 * files + if is_copy { OF_COPY } else { 0 };
    }

    /// Adds tasks, which build and change tables.
    pub(super) fn tasks(&mut self) {
        self.files += OF_TASKS;
    }
}

/// Raises the limit of open files, and lowers the connections of `config` to what it allows. Returns a line if they are lowered.
///
/// # Errors
/// The limit is too low for a server.
pub(in crate::commands) fn fit(config: &mut ServerConfig, needs: &Needs) -> Result<Option<String>, String> {
    let limit = raise_open_files();
    fit_into(config, needs, limit, open_files())
}

fn fit_into(
    config: &mut ServerConfig,
    needs: &Needs,
    limit: usize,
    used: usize,
) -> Result<Option<String>, String> {
    let remedy = "raise the limit: ulimit -n, LimitNOFILE= of systemd, --ulimit nofile= of a container";
    let free = limit.saturating_sub(used);
    if free < 2 * LEAST {
        return Err(format!("this process may have {limit} files open, and has {used}: {remedy}"));
    }
    let left = free.saturating_sub(OWN + needs.files);
    // Health and admin endpoints are few, and must be reachable however busy the public address is.
    config.max_other_connections = config.max_other_connections.min((left / 8).max(LEAST / 4));
    let left = left.saturating_sub(needs.other_listeners * config.max_other_connections).max(LEAST);
    if left >= config.max_connections {
        return Ok(None);
    }
    let asked = std::mem::replace(&mut config.max_connections, left);
    Ok(Some(format!(
        "at most {left} connections, not {asked}: this process may have {limit} files open; {remedy}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(limit: usize, needs: &Needs) -> (usize, usize, bool) {
        let mut config = ServerConfig::default();
        let line = fit_into(&mut config, needs, limit, 10).unwrap();
        (config.max_connections, config.max_other_connections, line.is_some())
    }

    #[test]
    fn connections_fit_into_the_limit() {
        let none = Needs::default();
        let some = Needs { files: 30, other_listeners: 2 };
        assert_eq!(fitted(1 << 20, &some), (1024, 64, false));
        assert_eq!(fitted(usize::MAX, &none), (1024, 64, false));
        for (limit, needs) in [(1024, &some), (256, &some), (200, &none), (1024, &none)] {
            let (public, other, is_told) = fitted(limit, needs);
            assert!(is_told && public >= LEAST && other >= LEAST / 4, "{limit}");
            assert!(10 + OWN + needs.files + public + needs.other_listeners * other <= limit, "{limit}");
        }
        // With too few files for all needs, some clients may have to wait, but nobody forever.
        assert_eq!(fitted(64, &some), (LEAST, LEAST / 4, true));
        // The configured number is an upper limit.
        let mut few =
            ServerConfig { max_connections: 2, max_other_connections: 1, ..ServerConfig::default() };
        assert_eq!(fit_into(&mut few, &some, 1 << 20, 10).unwrap(), None);
        assert_eq!((few.max_connections, few.max_other_connections), (2, 1));
        let error = fit_into(&mut ServerConfig::default(), &none, 40, 10).unwrap_err();
        assert!(error.contains("may have 40 files open, and has 10: raise the limit"), "{error}");
    }

    #[test]
    fn two_epochs_of_a_table_are_open() {
        let folder = tempfile::tempdir().unwrap();
        (0..3).for_each(|name| drop(fs::File::create(folder.path().join(name.to_string())).unwrap()));
        let mut needs = Needs::default();
        needs.table(folder.path(), false);
        assert_eq!(needs.files, 6);
        needs.table(&folder.path().join("none"), true);
        assert_eq!(needs.files, 6 + 2 * OF_TABLE + OF_COPY);
    }
}
