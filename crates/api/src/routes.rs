//! The calls, and the paths that lead to them.
//!
//! An id in a path that is malformed gets the answer of one that does not exist: it names nothing,
//! and a caller has one case to handle instead of two.

mod api_key;
mod application;
mod budget;
mod created;
mod delivery;
mod docs;
mod document;
mod endpoint;
mod form;
mod inbound;
mod livez;
mod metrics;
mod operational_endpoint;
mod readyz;
mod source;
mod submission;
mod table;

use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderValue};
use actix_web::web::{Bytes, ServiceConfig};
use domain::id::{ApplicationKey, PublicId};
use store::Store;
use store::admission::{Admission, AdmissionRequest, Budgets};
use store::api_key::{ApiKey, ApiKeyDigest};
use store::endpoint::Endpoint;

use self::table::{Access, Call};
use crate::auth::Uses;
use crate::batches::Batches;
use crate::body::BodyLimit;
use crate::openapi;
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
    /// The one way for a submission to be let in.
    pub(crate) admissions: Batches<AdmissionRequest, Admission>,
    /// The one way to look a key up.
    pub(crate) keys: Batches<ApiKeyDigest, Option<ApiKey>>,
    /// The one way to look an endpoint up.
    pub(crate) endpoints: Batches<(ApplicationKey, PublicId), Option<Arc<Endpoint>>>,
    /// The limits.
    pub(crate) settings: Settings,
    /// When keys were used.
    pub(crate) uses: Uses,
    /// The description of the calls, as JSON.
    pub(crate) document: Bytes,
}

impl State {
    /// Must be called inside the Tokio runtime that the store's connections belong to.
    pub(crate) fn new(settings: Settings, store: Arc<dyn Store>, document: Bytes) -> Self {
        let waker = Waker::new(Arc::clone(&store));
        let [for_admissions, for_keys, for_endpoints] = [(); 3].map(|()| Arc::clone(&store));
        let budgets = Budgets {
            source: settings.source_limit.as_ref().map(|source| source.limit),
            key: settings.key_limit,
        };
        Self {
            committer: Committer::new(Arc::clone(&store), waker.clone(), settings.commit),
            waker,
            limiter: RateLimiter::new(Arc::clone(&store), settings.rate_waiting_max),
            admissions: Batches::new(move |requests: Vec<AdmissionRequest>| {
                let store = Arc::clone(&for_admissions);
                async move { store.admit(&requests, budgets).await }
            }),
            keys: Batches::of_look_ups(move |digests: Vec<ApiKeyDigest>| {
                let store = Arc::clone(&for_keys);
                async move { store.find_api_keys(&digests).await }
            }),
            endpoints: Batches::of_look_ups(move |ids: Vec<(ApplicationKey, PublicId)>| {
                let store = Arc::clone(&for_endpoints);
                async move {
                    let found = store.find_endpoints(&ids).await?;
                    Ok(found.into_iter().map(|it| it.map(Arc::new)).collect())
                }
            }),
            settings,
            uses: Uses::default(),
            document,
            store,
        }
    }

    /// What the body of a submission may be.
    pub(crate) fn payload_limit(&self) -> BodyLimit {
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
    let mut calls = vec![
        Call::get("/livez", Access::Anyone, livez::doc(), livez::live),
        Call::get("/openapi.json", Access::Anyone, document::doc(), document::document),
    ];
    calls.extend(docs::calls());
    for (tag, more) in [
        ("keys", api_key::calls()),
        ("applications", application::calls()),
        ("deliveries", delivery::calls()),
        ("endpoints", endpoint::calls()),
        ("forms", form::calls()),
        ("inbound", inbound::calls()),
        ("operational events", operational_endpoint::calls()),
        ("sources", source::calls()),
        ("submissions", submission::calls()),
    ] {
        calls.extend(more.into_iter().map(|call| call.tagged(tag)));
    }
    calls
}

/// Every call that is served to callers.
#[must_use]
pub fn described_calls() -> Vec<DescribedCall> {
    calls().iter().map(Call::describe).collect()
}

/// The OpenAPI document of all of them, as JSON.
///
/// # Errors
/// A part of it cannot be written, which its tests exclude.
pub fn document() -> serde_json::Result<Bytes> {
    let calls = calls();
    let document = openapi::document(calls.iter().map(Call::documented));
    document.to_json().map(Bytes::from)
}

/// The routes for callers.
pub(crate) fn public(config: &mut ServiceConfig) {
    table::serve(config, calls());
}

/// The routes for operators, who need no key: the address is private.
pub(crate) fn private(config: &mut ServiceConfig) {
    let calls = vec![
        Call::get("/livez", Access::Anyone, livez::doc(), livez::live),
        Call::get("/readyz", Access::Anyone, readyz::doc(), readyz::ready),
        Call::get("/metrics", Access::Anyone, metrics::doc(), metrics::metrics),
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
