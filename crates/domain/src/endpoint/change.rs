//! A change of some settings, the others left as they are.

use std::time::Duration;

use super::{CaCertificates, EndpointSettings, SettingsDraft, SettingsError, SigningSchemes};
use crate::delivery::retry::RetrySchedule;
use crate::destination::OnlyNetworks;
use crate::rate_limit::RateLimit;

/// What a caller gives of the settings. See [`SettingsDraft`] for what each means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// For the whole call.
    pub deadline: Option<Duration>,
    /// For DNS, connect and TLS.
    pub connect_deadline: Option<Duration>,
    /// The waits between attempts.
    pub retry_schedule: Option<RetrySchedule>,
    /// The shortest wait after an answer that says "overloaded".
    pub overload_floor: Option<Duration>,
    /// Statuses after which nothing is tried again.
    pub final_statuses: Option<Vec<u16>>,
    /// How many requests may be open at once.
    pub in_flight_max: Option<u16>,
    /// How many requests may be sent in a window; the inner `None` is without a limit.
    pub delivery_rate: Option<Option<RateLimit>>,
    /// How many submissions are taken in a window.
    pub ingest_rate: Option<RateLimit>,
    /// Which signatures deliveries carry.
    pub signing: Option<SigningSchemes>,
    /// Whether the form route takes submissions for it, without a key.
    pub public_ingest: Option<bool>,
    /// Networks outside of which nothing is sent; the inner `None` leaves none out.
    pub only_networks: Option<Option<OnlyNetworks>>,
    /// What vouches for the receiver; the inner `None` leaves it to the roots of the platform.
    pub ca_certificates: Option<Option<CaCertificates>>,
    /// Whether the circuit breaker stops deliveries while they fail.
    pub circuit_breaker: Option<bool>,
}

impl SettingsChange {
    /// The settings after the change, held to the limits of all of them together.
    ///
    /// # Errors
    /// [`SettingsError`], which names the first field that breaks a limit.
    pub fn apply(self, settings: &EndpointSettings) -> Result<EndpointSettings, SettingsError> {
        let old = settings.0.clone();
        let only_deadline = self.deadline.is_some() && self.connect_deadline.is_none();
        let draft = SettingsDraft {
            deadline: self.deadline.unwrap_or(old.deadline),
            connect_deadline: self.connect_deadline.unwrap_or(old.connect_deadline),
            retry_schedule: self.retry_schedule.unwrap_or(old.retry_schedule),
            overload_floor: self.overload_floor.unwrap_or(old.overload_floor),
            final_statuses: self.final_statuses.unwrap_or(old.final_statuses),
            in_flight_max: self.in_flight_max.unwrap_or(old.in_flight_max),
            delivery_rate: self.delivery_rate.unwrap_or(old.delivery_rate),
            ingest_rate: self.ingest_rate.unwrap_or(old.ingest_rate),
            signing: self.signing.unwrap_or(old.signing),
            public_ingest: self.public_ingest.unwrap_or(old.public_ingest),
            only_networks: self.only_networks.unwrap_or(old.only_networks),
            ca_certificates: self.ca_certificates.unwrap_or(old.ca_certificates),
            circuit_breaker: self.circuit_breaker.unwrap_or(old.circuit_breaker),
        };
        EndpointSettings::new(draft).map_err(|error| {
            if only_deadline && error.field == "connect_deadline" {
                // The caller has to be told of the field that was given.
                let message = "must not be shorter than the connect deadline".to_owned();
                SettingsError { field: "deadline", message }
            } else {
                error
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_stays() {
        let before = SettingsChange {
            delivery_rate: Some(Some(RateLimit::INGEST_DEFAULT)),
            public_ingest: Some(true),
            final_statuses: Some(vec![404]),
            ..SettingsChange::default()
        }
        .apply(&EndpointSettings::default())
        .unwrap();
        assert_eq!(SettingsChange::default().apply(&before).unwrap(), before);
        let change = SettingsChange { in_flight_max: Some(7), ..SettingsChange::default() };
        let after = change.apply(&before).unwrap();
        assert_eq!((after.in_flight_max(), after.final_statuses()), (7, &[404][..]));
        assert_eq!(after.delivery_rate(), Some(RateLimit::INGEST_DEFAULT));
        let change = SettingsChange { delivery_rate: Some(None), ..SettingsChange::default() };
        assert_eq!(change.apply(&after).unwrap().delivery_rate(), None);
    }

    #[test]
    fn limits_hold_for_given_and_kept_settings_together() {
        let seconds = |n| Some(Duration::from_secs(n));
        let refused =
            |change: SettingsChange| change.apply(&EndpointSettings::default()).unwrap_err().field;
        let shorter = SettingsChange { deadline: seconds(2), ..SettingsChange::default() };
        assert_eq!(refused(shorter.clone()), "deadline");
        let longer = SettingsChange { connect_deadline: seconds(16), ..SettingsChange::default() };
        assert_eq!(refused(longer.clone()), "connect_deadline");
        let both = SettingsChange { connect_deadline: seconds(1), ..shorter };
        assert!(both.apply(&EndpointSettings::default()).is_ok());
        let both = SettingsChange { deadline: seconds(20), ..longer };
        assert!(both.apply(&EndpointSettings::default()).is_ok());
    }
}
