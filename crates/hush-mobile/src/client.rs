//! A server.

use std::sync::Arc;

use hush_client::http::{Cancel, HttpClient};

use crate::{
    HushError, Observer, Options, Table, TableInfo,
    thread::{guarded, on_thread},
};

/// A server. `connect` makes one.
#[derive(uniffi::Object)]
pub struct Client {
    http: Arc<HttpClient>,
}

impl Client {
    fn reach(
        url: &str,
        options: Options,
        observer: Option<Arc<dyn Observer>>,
        cancel: &Cancel,
    ) -> Result<Arc<Self>, HushError> {
        let http = HttpClient::connect_unless(cancel, url, options.parse(observer)?)?;
        Ok(Arc::new(Self { http: Arc::new(http) }))
    }
}

#[uniffi::export]
impl Client {
    /// Asks the server at `url` for its tables. `observer` gets the events of this and all later calls. Throws an error if the URL
    /// or an option is invalid, or the server cannot be reached, refuses the token, or does not answer in time.
    #[uniffi::constructor(default(observer = None, options))]
    pub async fn connect(
        url: String,
        options: Options,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Arc<Self>, HushError> {
        on_thread(move |cancel| Self::reach(&url, options, observer, cancel)).await
    }

    /// Connects like `connect`, and blocks. Throws the same errors.
    #[uniffi::constructor(default(observer = None, options))]
    pub fn connect_blocking(
        url: String,
        options: Options,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Arc<Self>, HushError> {
        guarded(|| Self::reach(&url, options, observer, &Cancel::default()))
    }

    /// Returns the tables, as they were when the server was asked.
    pub fn tables(&self) -> Vec<TableInfo> {
        self.http.tables().to_vec()
    }

    /// Opens the table with this name, or the server's only one. Downloads its hint and dictionary unless they are in the cache.
    /// Throws an error if there is no such table, the table is not accepted, or a request fails.
    #[uniffi::method(default(name))]
    pub async fn table(&self, name: Option<String>) -> Result<Arc<Table>, HushError> {
        let http = self.http.clone();
        on_thread(move |cancel| Ok(Table::new(http.open_unless(cancel, name.as_deref())?))).await
    }

    /// Opens a table like `table`, and blocks. Throws the same errors.
    #[uniffi::method(default(name))]
    pub fn table_blocking(&self, name: Option<String>) -> Result<Arc<Table>, HushError> {
        guarded(|| Ok(Table::new(self.http.open(name.as_deref())?)))
    }
}
