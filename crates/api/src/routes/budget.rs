//! What a request to an ingest route spends before anything of it is looked at more closely.
//!
//! Each request spends: one that is refused for its content, and one that repeats an idempotency key,
//! too. One that is over a limit has spent what it was within before.

use std::time::Instant;

use actix_web::HttpRequest;
use domain::id::{EndpointKey, SourceKey};
use domain::rate_limit::RateLimit;
use store::endpoint::Endpoint;
use store::rate_limit::Limiter;

use super::State;
use crate::problem::Problem;
use crate::rate_limit::{Spent, source};

impl State {
    /// Spends from the budget of the address that the request comes from.
    pub(super) async fn spend_of_source(&self, request: &HttpRequest) -> Result<(), Problem> {
        match &self.settings.source_limit {
            Some(source) => {
                let subject = source::subject(request, source);
                self.spend(Limiter::Source, subject, source.limit).await
            }
            None => Ok(()),
        }
    }

    /// Spends from the budget of the endpoint.
    pub(super) async fn spend_of_endpoint(&self, endpoint: &Endpoint) -> Result<(), Problem> {
        self.spend_of_destination(endpoint.key, endpoint.settings.ingest_rate()).await
    }

    /// The same for an endpoint of which no more is known.
    pub(super) async fn spend_of_destination(
        &self,
        endpoint: EndpointKey,
        limit: RateLimit,
    ) -> Result<(), Problem> {
        self.spend(Limiter::Endpoint, endpoint.to_string(), limit).await
    }

    /// Spends from the budget of requests that a source is refused: each of them is noted.
    pub(super) async fn spend_of_refusals(&self, source: SourceKey) -> Result<(), Problem> {
        self.spend(Limiter::Refusals, source.to_string(), RateLimit::REFUSALS).await
    }

    async fn spend(
        &self,
        limiter: Limiter,
        subject: String,
        limit: RateLimit,
    ) -> Result<(), Problem> {
        match self.limiter.spend(limiter, subject, limit).await? {
            Spent::Granted => Ok(()),
            Spent::Denied { until } => {
                let wait = until.saturating_duration_since(Instant::now());
                Err(Problem::rate_limited(limiter, limit, wait))
            }
        }
    }
}
