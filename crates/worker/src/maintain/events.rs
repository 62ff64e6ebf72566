//! Submits events about the service to the operator's endpoint.

use bytes::Bytes;
use domain::id::EndpointKey;
use domain::submission::{ContentType, EventType, IdempotencyKey};
use store::operational::StoredEvent;
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreError};
use uuid::Uuid;

/// How many events one step submits at most.
const EVENTS_MAX: u32 = 100;

/// Submits the oldest events, each under its own idempotency key, and takes them away when that is
/// committed: what a crash leaves between is recognised the next time. Answers whether there may be more.
pub(super) async fn submit_events(store: &dyn Store) -> Result<bool, StoreError> {
    let events = store.read_events(EVENTS_MAX).await?;
    if events.is_empty() {
        return Ok(false);
    }
    let Some(operator) = store.read_operational_endpoint().await? else {
        let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
        store.forget_events(&ids).await?;
        return Ok(true);
    };
    let mut done = Vec::with_capacity(events.len());
    let (mut submitted, mut submissions) = (Vec::new(), Vec::new());
    for event in &events {
        match submission(operator.key, event).filter(|_| event.about != operator.key) {
            Some(submission) => {
                submitted.push(event.id);
                submissions.push(submission);
            }
            // About the operator's endpoint, which was not that when this happened.
            None => done.push(event.id),
        }
    }
    for (id, acceptance) in submitted.into_iter().zip(store.accept(&submissions).await?) {
        match acceptance {
            Acceptance::KeyInProgress => {}
            Acceptance::Accepted(_)
            | Acceptance::Replayed(_)
            | Acceptance::Conflicted
            | Acceptance::EndpointMissing => done.push(id),
        }
    }
    store.forget_events(&done).await?;
    Ok(!done.is_empty() && events.len() >= EVENTS_MAX as usize)
}

/// None if one of its parts cannot be written, which tests of the domain exclude.
fn submission(operator: EndpointKey, stored: &StoredEvent) -> Option<NewSubmission> {
    let key = IdempotencyKey::parse(format!("event-{}", stored.id).as_bytes()).ok()?;
    let event_type = EventType::parse(stored.event.what.event_type()).ok()?;
    let body = Bytes::from(stored.event.body());
    Some(NewSubmission::new(operator, Some(key), Some(event_type), ContentType::json(), body))
}
