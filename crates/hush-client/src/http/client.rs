//! A server, and a table of it, over HTTP.

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
    /// Asks the server at `url` (`http://host:port` or `https://host`, a path is kept) for its tables.
    ///
    /// # Errors
    /// [`HttpError`] if the URL is none, the server is not reached, or it is no server of this API.
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

    /// Returns the tables, as they were when the server was asked.
    pub fn tables(&self) -> &[TableInfo] {
        self.server.tables()
    }

    /// Opens a table: by name, or the only one. Fetches its descriptor, and its hint unless that is in the cache.
    pub fn open(&self, name: Option<&str>) -> Result<HttpTable, HttpError> {
        self.open_unless(&Cancel::default(), name)
    }

    /// Opens a table as [`HttpClient::open`] does, unless the call is cancelled. The downloaded part of a hint is
    /// kept for the next call.
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

    /// Returns the table as it is known now: a look-up that meets a newer epoch replaces it.
    pub fn table(&self) -> &Table {
        self.session.table()
    }

    /// Returns the cost of the table since it was opened.
    pub fn stats(&self) -> Stats {
        self.session.stats()
    }

    /// Looks records up: one result for each of `wanted`, in order, all from the same epoch. What the server learns is
    /// said at [`Session::look_up`].
    pub fn lookup(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, HttpError> {
        self.lookup_with(wanted, &CallOptions::default())
    }

    /// Looks up as [`HttpTable::lookup`] does, with choices of this call. If the call is cancelled, the next one
    /// begins anew.
    pub fn lookup_with(&mut self, wanted: &[Wanted], options: &CallOptions) -> Result<Vec<Found>, HttpError> {
        let task = match options.max_queries {
            Some(max_queries) => self.session.look_up_by(wanted, max_queries),
            None => self.session.look_up(wanted),
        };
        self.transport.drive(task, &options.cancel)
    }

    /// Looks records up as [`HttpTable::lookup_with`] does, and gives the answers of each request to `give` as they come, in
    /// order. The next request waits for `give`, which must not decode: see [`Session::look_up_each`].
    ///
    /// # Errors
    /// The errors of [`Session::look_up_each`], and [`HttpError::Cancelled`]. What was given before an error counts.
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
