//! The caller of a request, and the tables that it may act on.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use hush_protocol::Name;

use crate::{
    access::tokens::{Grant, Scope},
    problem::{Code, Problem},
};

/// The caller of a request. A handler asks it before it reads or changes anything of a table.
#[derive(Clone)]
pub struct Caller(CallerIdentity);

#[derive(Clone)]
enum CallerIdentity {
    /// A caller without a token at an endpoint that asks for one. Nothing is allowed.
    Nobody,
    /// A caller of a listener that asks for no token. Everything is allowed.
    Anyone,
    /// The holder of a token.
    Holder(Arc<Grant>),
}

impl Caller {
    /// Creates the caller of a listener that asks for no token.
    pub fn anyone() -> Self {
        Self(CallerIdentity::Anyone)
    }

    /// Creates the caller that holds a token.
    pub(crate) fn holder(grant: Arc<Grant>) -> Self {
        Self(CallerIdentity::Holder(grant))
    }

    /// Returns the caller that the gate attached to a request, or a caller without rights.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or(Self(CallerIdentity::Nobody))
    }

    /// Returns whether the caller may do with `table` what `scope` is for.
    pub fn may(&self, scope: Scope, table: &Name) -> bool {
        self.has(scope, |tables| tables.contains(table))
    }

    /// Returns whether the caller may do with every table what `scope` is for.
    pub fn may_all(&self, scope: Scope) -> bool {
        self.has(scope, |_| false)
    }

    /// Returns whether the caller has a scope, for all tables or for those that `is_for` accepts.
    fn has(&self, scope: Scope, is_for: impl FnOnce(&[Name]) -> bool) -> bool {
        match &self.0 {
            CallerIdentity::Nobody => false,
            CallerIdentity::Anyone => true,
            CallerIdentity::Holder(grant) => {
                let token = &grant.token;
                token.scopes.contains(&scope) && token.tables.as_deref().is_none_or(is_for)
            }
        }
    }

    /// Refuses, with the code `forbidden`, a caller that may not do with `table` what `scope` is for.
    pub(crate) fn check(&self, scope: Scope, table: &Name) -> Result<(), Problem> {
        if self.may(scope, table) {
            return Ok(());
        }
        Err(Problem::new(Code::Forbidden, "the token is for other tables"))
    }

    /// Returns the ID of the caller's token, if it has one.
    pub fn token_id(&self) -> Option<&str> {
        self.grant().map(|grant| &*grant.token.id)
    }

    /// Returns the caller's token with its counts, if the caller has one.
    pub(crate) fn grant(&self) -> Option<&Grant> {
        match &self.0 {
            CallerIdentity::Nobody | CallerIdentity::Anyone => None,
            CallerIdentity::Holder(grant) => Some(grant),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
