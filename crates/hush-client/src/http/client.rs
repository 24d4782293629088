//! A server and its tables, over HTTP.

use std::sync::Arc;

use super::{CallOptions, Cancel, HttpError, HttpOptions, files::FileHost, transport::Transport};
use crate::{
    Found, Table, Wanted,
    session::{Answers, Server, ServerUrl, Session, Stats, TableInfo},
};

/// A server and its tables.
pub struct HttpClient {
    transport: Transport,
    server: Server,
}

impl HttpClient {
    /// Asks the server at `url` for its tables. The URL is `http://host:port` or `https://host`, and may have a path.
    ///
    /// # Errors
    /// [`HttpError`] if the URL is invalid, if the server cannot be reached, or if it does not have this API.
    pub fn connect(url: &str, options: HttpOptions) -> Result<Self, HttpError> {
        Self::connect_unless(&Cancel::default(), url, options)
    }

    /// Connects as [`HttpClient::connect`] does, unless the call is cancelled.
    pub fn connect_unless(cancel: &Cancel, url: &str, options: HttpOptions) -> Result<Self, HttpError> {
        let url = ServerUrl::parse(url)?;
        let transport = Transport::new(&url, &options)?;
        let host = FileHost::new(&options.cache, options.observer.clone()).map_err(HttpError::Cache)?;
        let server = transport.drive(Server::connect(url, options.session(), Arc::new(host)), cancel)?;
        Ok(Self { transport, server })
    }

    /// Returns the tables that the server had when it was asked.
    pub fn tables(&self) -> &[TableInfo] {
        self.server.tables()
    }

    /// Opens a table by its name, or the only table. Fetches its descriptor, and its hint unless that is in the cache.
    pub fn open(&self, name: Option<&str>) -> Result<HttpTable, HttpError> {
        self.open_unless(&Cancel::default(), name)
    }

    /// Opens a table as [`HttpClient::open`] does, unless cancelled. A partly loaded hint is kept.
    pub fn open_unless(&self, cancel: &Cancel, name: Option<&str>) -> Result<HttpTable, HttpError> {
        let session = self.transport.drive(self.server.open(name), cancel)?;
        Ok(HttpTable { transport: self.transport.clone(), session })
    }
}

/// An open table of a server.
pub struct HttpTable {
    transport: Transport,
    session: Session,
}

impl HttpTable {
    /// Returns the table's name.
    pub fn name(&self) -> &str {
        self.session.name()
    }

    /// Returns the table as last known. A look-up that meets a newer epoch replaces it.
    pub fn table(&self) -> &Table {
        self.session.table()
    }

    /// Returns the traffic and time spent on the table since it was opened.
    pub fn stats(&self) -> Stats {
        self.session.stats()
    }

    /// Prepares queries for `count` look-ups. Returns the number that is ready. [`Session::prepare`] explains what it saves, and
    /// lists the errors.
    pub fn prepare(&mut self, count: usize) -> Result<usize, HttpError> {
        self.session.prepare(count)
    }

    /// Looks records up. Returns one result for each of `wanted`, in order, all from the same epoch. [`Session::look_up`]
    /// explains what the server learns, and lists the errors.
    pub fn lookup(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        self.lookup_with(wanted, &CallOptions::default())
    }

    /// Looks records up like [`HttpTable::lookup`], with options for this call. After a cancelled call, which fails with
    /// [`HttpError::Cancelled`], the next call starts from the beginning. Other errors are those of [`Session::look_up`].
    pub fn lookup_with(&mut self, wanted: &[Wanted], options: &CallOptions) -> Result<Vec<Found>, HttpError> {
        let task = match options.max_queries {
            Some(max_queries) => self.session.look_up_by(wanted, max_queries),
            None => self.session.look_up(wanted),
        };
        self.transport.drive(task, &options.cancel)
    }

    /// Looks records up as [`HttpTable::lookup_with`] does, and passes the answers of each request to `give` as they
    /// arrive, in order. The next request waits for `give`, which must not decode: see [`Session::look_up_each`].
    ///
    /// # Errors
    /// The errors of [`Session::look_up_each`], and [`HttpError::Cancelled`]. Answers that were given before an error are valid.
    pub fn lookup_each(
        &mut self,
        wanted: &[Wanted],
        options: &CallOptions,
        give: impl FnMut(Answers) + Send,
    ) -> Result<(), HttpError> {
        let task = self.session.look_up_each(wanted, options.max_queries, give);
        self.transport.drive(task, &options.cancel)
    }
}
