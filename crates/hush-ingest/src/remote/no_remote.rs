//! The substitute for object stores, web servers and their policy in a program without the feature `remote`.

use std::{convert::Infallible, ops::Range};

use hush_store::cancel::Cancelled;

use super::{Listed, Part, Refused, RemoteUrl, Scheme};

/// The policy of a program that fetches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePolicy(());

impl SourcePolicy {
    /// Accepts any list: this program fetches nothing in any case. Never fails.
    pub fn only(_sources: &[String], _remedy: &'static str) -> Result<Self, String> {
        Ok(Self(()))
    }
}

/// A remote object, which does not exist in this program.
#[derive(Clone)]
pub(crate) struct Remote(Infallible);

impl Remote {
    pub(crate) fn object(url: &RemoteUrl, scheme: Scheme) -> Result<Self, Refused> {
        Self::folder(url, scheme)
    }

    pub(crate) fn folder(_url: &RemoteUrl, _scheme: Scheme) -> Result<Self, Refused> {
        Err(Refused::new(
            "this program was built without clients of object stores and web servers",
            "build hushdb with the feature remote",
        ))
    }

    pub(crate) fn child(&self, _name: &str) -> Self {
        match self.0 {}
    }

    pub(crate) async fn whole(self, _limit: u64) -> Result<Vec<u8>, Refused> {
        match self.0 {}
    }

    pub(crate) async fn range(self, _range: Range<u64>, _size: u64) -> Result<Vec<u8>, Refused> {
        match self.0 {}
    }

    pub(crate) async fn part(
        self,
        _start: u64,
        _end: Option<u64>,
        _version: Option<String>,
    ) -> Result<Part, Refused> {
        match self.0 {}
    }

    pub(crate) async fn list(&self) -> Result<Vec<Listed>, Refused> {
        match self.0 {}
    }

    pub(crate) async fn remove(&self) -> Result<(), Refused> {
        match self.0 {}
    }

    pub(crate) async fn put(
        &self,
        _content: &[u8],
        _put: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Result<(), Refused>, Cancelled> {
        match self.0 {}
    }
}
