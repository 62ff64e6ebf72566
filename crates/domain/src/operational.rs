//! Events about the service itself, which an operator's endpoint receives as submissions.

use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::delivery::FailureReason;
use crate::endpoint::DisabledCause;
use crate::endpoint::circuit::OpenCause;
use crate::id::{DeliveryId, SubmissionId};
use crate::instant;

/// Something happened to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationalEvent {
    /// What.
    pub what: What,
    /// When, on the database's clock.
    pub occurred_at: OffsetDateTime,
    /// Whose endpoint, by the application's public id.
    pub application: String,
    /// Which endpoint, by its public id.
    pub endpoint: String,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The endpoint takes no deliveries any more.
    EndpointDisabled(DisabledCause),
    /// Its circuit opened.
    EndpointFailing(OpenCause),
    /// Its circuit closed.
    EndpointRecovered,
    /// A delivery to it failed for good.
    DeliveryFailed {
        /// Which.
        delivery: DeliveryId,
        /// Of which submission.
        submission: SubmissionId,
        /// Why.
        reason: FailureReason,
    },
    /// It has a new secret.
    SecretRotated,
}

impl What {
    /// The type of the event, as the submission has it and as `type` of its body.
    #[must_use]
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::EndpointDisabled(_) => "fencepost.endpoint.disabled",
            Self::EndpointFailing(_) => "fencepost.endpoint.failing",
            Self::EndpointRecovered => "fencepost.endpoint.recovered",
            Self::DeliveryFailed { .. } => "fencepost.delivery.failed",
            Self::SecretRotated => "fencepost.secret.rotated",
        }
    }

    fn describe(&self, data: &mut Map<String, Value>) {
        match self {
            Self::EndpointDisabled(cause) => {
                data.insert("cause".to_owned(), json!(cause.as_str()));
            }
            Self::EndpointFailing(cause) => {
                data.insert("cause".to_owned(), json!(cause.as_str()));
            }
            Self::DeliveryFailed { delivery, submission, reason } => {
                data.insert("delivery_id".to_owned(), json!(delivery.to_string()));
                data.insert("submission_id".to_owned(), json!(submission.to_string()));
                data.insert("reason".to_owned(), json!(reason.as_str()));
            }
            Self::EndpointRecovered | Self::SecretRotated => {}
        }
    }
}

impl OperationalEvent {
    /// The body of its submission: `type`, `timestamp` and `data` (Standard Webhooks, "Payload structure").
    /// The same event has the same body, however often it is written.
    #[must_use]
    pub fn body(&self) -> String {
        let mut data = Map::new();
        data.insert("application_id".to_owned(), json!(self.application));
        data.insert("endpoint_id".to_owned(), json!(self.endpoint));
        self.what.describe(&mut data);
        // No event is of a year of five digits.
        let timestamp = instant::render(self.occurred_at).unwrap_or_default();
        json!({"type": self.what.event_type(), "timestamp": timestamp, "data": data}).to_string()
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    fn body(what: What) -> Value {
        let event = OperationalEvent {
            what,
            occurred_at: datetime!(2026-12-01 03:04:05.000006 UTC),
            application: "default".to_owned(),
            endpoint: "orders".to_owned(),
        };
        serde_json::from_str(&event.body()).unwrap()
    }

    #[test]
    fn a_body_has_type_timestamp_and_data() {
        let (delivery, submission) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let failed = What::DeliveryFailed {
            delivery: DeliveryId::from_uuid(delivery),
            submission: SubmissionId::from_uuid(submission),
            reason: FailureReason::AttemptsExhausted,
        };
        assert_eq!(
            body(failed),
            json!({
                "type": "fencepost.delivery.failed",
                "timestamp": "2026-12-01T03:04:05.000006Z",
                "data": {
                    "application_id": "default", "endpoint_id": "orders",
                    "delivery_id": delivery.to_string(), "submission_id": submission.to_string(),
                    "reason": "attempts_exhausted",
                },
            })
        );
        for (what, name, cause) in [
            (What::EndpointDisabled(DisabledCause::Gone), "fencepost.endpoint.disabled", "gone"),
            (
                What::EndpointFailing(OpenCause::InARow),
                "fencepost.endpoint.failing",
                "failures_in_a_row",
            ),
        ] {
            let body = body(what);
            assert_eq!((&body["type"], &body["data"]["cause"]), (&json!(name), &json!(cause)));
        }
        for (what, name) in [
            (What::EndpointRecovered, "fencepost.endpoint.recovered"),
            (What::SecretRotated, "fencepost.secret.rotated"),
        ] {
            let data = json!({"application_id": "default", "endpoint_id": "orders"});
            let body = body(what);
            assert_eq!((&body["type"], &body["data"]), (&json!(name), &data));
            assert!(crate::submission::EventType::parse(name).is_ok());
        }
    }
}
