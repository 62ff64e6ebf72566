//! Looks key, application and endpoint up and charges the budgets, one request after the other in one
//! transaction.

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::rate_limit::RateLimit;
use uuid::Uuid;

use crate::StoreError;
use crate::admission::{Admission, AdmissionRequest, Budgets, SUBMITTING_ROLE};
use crate::api_key::ApiKey;
use crate::rate_limit::{Limiter, Reservation};
use crate::sqlite::codec::{corrupt, rate};
use crate::sqlite::errors::Fault;
use crate::sqlite::rate_limit::reserve::reserve_one;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::sqlite::{api_key, application};

pub(in crate::sqlite) async fn admit(
    writer: &Writer,
    requests: &[AdmissionRequest],
    budgets: Budgets,
) -> Result<Vec<Admission>, StoreError> {
    let requests = requests.to_vec();
    writer
        .run("admission::admit", move |tx| {
            Box::pin(async move {
                let mut admissions = Vec::with_capacity(requests.len());
                for request in requests {
                    admissions.push(admit_one(tx, request, budgets).await?);
                }
                Ok(admissions)
            })
        })
        .await
}

async fn admit_one(
    tx: &mut WriteTransaction,
    request: AdmissionRequest,
    budgets: Budgets,
) -> Result<Admission, Fault> {
    let key = api_key::find::find_one(tx.connection(), &request.digest).await?;
    let Some(key) = key else { return Ok(Admission::KeyUnknown) };
    if !key.role.covers(SUBMITTING_ROLE) {
        return Ok(Admission::RoleInsufficient(key));
    }
    let application = match &request.application {
        None => Some(key.application.unwrap_or(DEFAULT_APPLICATION_KEY)),
        Some(id) => application::find::find(tx.connection(), id)
            .await?
            .filter(|found| key.application.is_none_or(|bound_to| bound_to == *found)),
    };
    let Some(application) = application else { return Ok(Admission::ApplicationNotFound(key)) };
    let source = request.source.zip(budgets.source);
    let of_key = budgets.key.map(|limit| (key.id.to_string(), limit));
    for (limiter, budget) in [(Limiter::Source, source), (Limiter::Key, of_key)] {
        let Some((subject, limit)) = budget else { continue };
        if let Some(denied) = charge(tx, &key, limiter, subject, limit).await? {
            return Ok(denied);
        }
    }
    let found = match &request.endpoint {
        None => None,
        Some(id) => find_endpoint(tx, application, id).await?,
    };
    let Some((endpoint, limit)) = found else { return Ok(Admission::EndpointNotFound(key)) };
    match charge(tx, &key, Limiter::Endpoint, endpoint.to_string(), limit).await? {
        Some(denied) => Ok(denied),
        None => Ok(Admission::Admitted { key, application, endpoint }),
    }
}

async fn find_endpoint(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<(EndpointKey, RateLimit)>, Fault> {
    let row: Option<(Uuid, i64, i64)> = sqlx::query_as(
        "-- sqlite::admission::admit
        SELECT key, ingest_rate, ingest_rate_ms FROM endpoints
        WHERE application = ?1 AND id = ?2 AND deleted_at IS NULL",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .fetch_optional(tx.connection())
    .await?;
    let Some((key, units, window_ms)) = row else { return Ok(None) };
    let limit = rate(units, window_ms).ok_or_else(|| corrupt("endpoints", "ingest_rate", key))?;
    Ok(Some((EndpointKey::from_uuid(key), limit)))
}

/// Charges one unit of a budget, and says so if it was spent.
async fn charge(
    tx: &mut WriteTransaction,
    key: &ApiKey,
    limiter: Limiter,
    subject: String,
    limit: RateLimit,
) -> Result<Option<Admission>, Fault> {
    let reserved = reserve_one(tx, &Reservation { limiter, subject, limit, units: 1 }).await?;
    let window_ends_in = reserved.window_ends_in;
    let denied = reserved.granted == 0;
    Ok(denied.then(|| Admission::Denied { key: key.clone(), limiter, limit, window_ends_in }))
}
