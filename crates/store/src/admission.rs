//! Who may submit: the key, the endpoint and the budgets of a request, settled together.
//!
//! A submission asks three things of the database before it is stored: whose key this is, which endpoint is
//! meant, and whether source, key and endpoint have units left. Each by itself is a statement that the
//! others wait for. Here all are one, for as many requests as came meanwhile.

use std::time::Duration;

use async_trait::async_trait;
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::rate_limit::RateLimit;

use crate::StoreError;
use crate::api_key::{ApiKey, ApiKeyDigest, Role};
use crate::rate_limit::{Limiter, Reservation, Reserved};

/// The least role that may submit.
pub const SUBMITTING_ROLE: Role = Role::Publish;

/// A request to submit, as far as its head tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRequest {
    /// Of the key that it presents.
    pub digest: ApiKeyDigest,
    /// The application that it names, if it names one.
    pub application: Option<PublicId>,
    /// The endpoint. None: what it names cannot exist.
    pub endpoint: Option<PublicId>,
    /// The address that it comes from, as a keyed digest. None: addresses are not limited.
    pub source: Option<String>,
}

/// The limits that are the same for every request. None: there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budgets {
    /// Of each address.
    pub source: Option<RateLimit>,
    /// Of each key.
    pub key: Option<RateLimit>,
}

/// What a request is told, by the first of these that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// No live key has this digest.
    KeyUnknown,
    /// The key's role does not cover [`SUBMITTING_ROLE`].
    RoleInsufficient(ApiKey),
    /// The named application is not there for this key.
    ApplicationNotFound(ApiKey),
    /// A budget is spent. Those before it have been charged, those after it have not.
    Denied {
        /// Who asked.
        key: ApiKey,
        /// Which budget.
        limiter: Limiter,
        /// How much it allows.
        limit: RateLimit,
        /// How long its window went on when the database was asked.
        window_ends_in: Duration,
    },
    /// There is no such endpoint. The budgets of source and key have been charged.
    EndpointNotFound(ApiKey),
    /// It may submit.
    Admitted {
        /// Who asked.
        key: ApiKey,
        /// Whose endpoint it is.
        application: ApplicationKey,
        /// Where to.
        endpoint: EndpointKey,
    },
}

impl Admission {
    /// The key that was presented, if it is known.
    #[must_use]
    pub fn key(&self) -> Option<&ApiKey> {
        match self {
            Self::KeyUnknown => None,
            Self::RoleInsufficient(key)
            | Self::ApplicationNotFound(key)
            | Self::EndpointNotFound(key)
            | Self::Denied { key, .. }
            | Self::Admitted { key, .. } => Some(key),
        }
    }
}

/// The roles that may submit, as the numbers that keys carry.
pub(crate) fn submitting_roles() -> Vec<i16> {
    let may = Role::ALL.into_iter().filter(|role| role.covers(SUBMITTING_ROLE));
    may.map(crate::codes::of_role).collect()
}

/// What is asked before something is taken in.
#[async_trait]
pub trait Admissions {
    /// Settles key, application, endpoint and budgets of some requests, in the order of the input: of
    /// a budget the first ones get what is left. Each request is charged one unit of its source's budget,
    /// then of its key's, then of its endpoint's, until one of them is spent.
    ///
    /// After an error they may have been charged.
    async fn admit(
        &self,
        requests: &[AdmissionRequest],
        budgets: Budgets,
    ) -> Result<Vec<Admission>, StoreError>;

    /// Reserves units of rate limits in the windows of the database's clock, and answers for each
    /// how many of them are within its limit, in the order of the input.
    ///
    /// Every unit is counted, those over the limit too. After an error they may have been.
    async fn reserve(&self, reservations: &[Reservation]) -> Result<Vec<Reserved>, StoreError>;
}
