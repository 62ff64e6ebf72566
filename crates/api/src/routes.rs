//! The calls, and the paths that lead to them.
//!
//! An id in a path that is malformed gets the answer of one that does not exist: it names nothing,
//! and a caller has one case to handle instead of two.

mod api_key;
mod application;
mod budget;
mod created;
mod delivery;
mod endpoint;
mod form;
mod livez;
mod readyz;
mod submission;
mod table;

use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderValue};
use actix_web::web::ServiceConfig;
use store::Store;

use self::table::{Access, Call};
use crate::auth::Uses;
use crate::body::BodyLimit;
use crate::rate_limit::RateLimiter;
use crate::{Committer, Settings, Waker};

pub use self::table::DescribedCall;

/// What every route works with.
#[derive(Debug)]
pub(crate) struct State {
    /// All state there is.
    pub(crate) store: Arc<dyn Store>,
    /// The one way to store a submission.
    pub(crate) committer: Committer,
    /// To be woken after every commit that made something due.
    pub(crate) waker: Waker,
    /// The one way to spend from a rate limit.
    pub(crate) limiter: RateLimiter,
    /// The limits.
    pub(crate) settings: Settings,
    /// When keys were used.
    pub(crate) uses: Uses,
}

impl State {
    /// What the body of a submission may be.
    fn payload_limit(&self) -> BodyLimit {
        let Settings { body_limit_bytes, body_deadline, .. } = self.settings;
        BodyLimit { bytes: body_limit_bytes, deadline: body_deadline }
    }

    /// What any other body may be.
    fn management_limit(&self) -> BodyLimit {
        let Settings { management_body_limit_bytes, body_deadline, .. } = self.settings;
        BodyLimit { bytes: management_body_limit_bytes, deadline: body_deadline }
    }
}

/// Every call for callers: the table, see [`table`].
fn calls() -> Vec<Call> {
    let mut calls = vec![Call::get("/livez", Access::Anyone, livez::live)];
    calls.extend(api_key::calls());
    calls.extend(application::calls());
    calls.extend(delivery::calls());
    calls.extend(endpoint::calls());
    calls.extend(form::calls());
    calls.extend(submission::calls());
    calls
}

/// Every call that is served to callers.
#[must_use]
pub fn described_calls() -> Vec<DescribedCall> {
    calls().iter().map(Call::describe).collect()
}

/// The routes for callers.
pub(crate) fn public(config: &mut ServiceConfig) {
    table::serve(config, calls());
}

/// The routes for operators, who need no key: the address is private.
pub(crate) fn private(config: &mut ServiceConfig) {
    let calls = vec![
        Call::get("/livez", Access::Anyone, livez::live),
        Call::get("/readyz", Access::Anyone, readyz::ready),
    ];
    table::serve(config, calls);
}

/// A header that may be given once. `Err` if it is given more often.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Repeated> {
    let mut values = headers.get_all(name);
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Repeated),
    }
}

/// A header that may be given once is given more often.
#[derive(Debug, PartialEq, Eq)]
struct Repeated;
