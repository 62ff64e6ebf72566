//! Endpoints: the settings of one receiver, with their limits.

mod ca_certificates;
mod change;
pub mod circuit;
mod event_pattern;
mod failing;
mod header;
mod results;
mod signing_schemes;

use std::time::Duration;

use crate::delivery::retry::{OVERLOAD_FLOOR_DEFAULT, RetrySchedule};
use crate::destination::OnlyNetworks;
use crate::rate_limit::RateLimit;

pub use ca_certificates::{
    CA_BUNDLE_BYTES_MAX, CA_CERTIFICATES_MAX, CaCertificates, CaCertificatesError,
};
pub use change::SettingsChange;
pub use event_pattern::{EVENT_PATTERNS_MAX, EventPatterns, EventPatternsError};
pub use failing::{DAY, FAILING_LAST, FAILING_MAX, Failing};
pub use header::{
    CustomHeaders, HEADER_NAME_BYTES_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX,
    HeaderError, REDACTED, is_reserved,
};
pub use results::{Signal, Tally};
pub use signing_schemes::SigningSchemes;

/// How long an endpoint's name may be, in characters.
pub const NAME_CHARACTERS_MAX: usize = 200;
/// The shortest deadline or connect deadline.
pub const DEADLINE_MIN: Duration = Duration::from_millis(100);
/// The longest deadline or connect deadline (Standard Webhooks, "Request timeouts": 15 to 30 s).
pub const DEADLINE_MAX: Duration = Duration::from_secs(30);
/// The most requests that may be open to one endpoint at once.
pub const IN_FLIGHT_MAX: u16 = 1_000;
/// The longest overload floor.
pub const OVERLOAD_FLOOR_MAX: Duration = Duration::from_hours(24);

/// The longest pause that is given as a duration.
pub const PAUSE_MAX: Duration = Duration::from_hours(366 * 24);

/// Why an endpoint takes no deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DisabledCause {
    /// A person switched it off.
    Operator,
    /// The receiver answered 410 Gone (RFC 9110, section 15.5.11).
    Gone,
    /// It failed for too long, see [`Failing`].
    Failing,
}

impl DisabledCause {
    /// Every cause.
    pub const ALL: [Self; 3] = [Self::Operator, Self::Gone, Self::Failing];

    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// A label for people: at most [`NAME_CHARACTERS_MAX`] characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointName(String);

impl EndpointName {
    /// Parses the text, which is kept as it stands.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let refuse = |message: String| SettingsError { field: "name", message };
        if text.chars().count() > NAME_CHARACTERS_MAX {
            return Err(refuse(format!("must have at most {NAME_CHARACTERS_MAX} characters")));
        }
        if text.chars().any(char::is_control) {
            return Err(refuse("must not contain control characters".to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A setting outside its limits: which one, and what the limit is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {message}")]
pub struct SettingsError {
    /// The field's name in the API.
    pub field: &'static str,
    /// What is wrong with it, naming the limit.
    pub message: String,
}

/// The settings that a caller asks for. [`EndpointSettings::new`] holds them to their limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsDraft {
    /// For the whole call: DNS, connect, TLS, head and body. 100 ms to 30 s, 15 s by default.
    pub deadline: Duration,
    /// For DNS, connect and TLS within it. 100 ms to the deadline, 5 s by default.
    pub connect_deadline: Duration,
    /// The waits between attempts.
    pub retry_schedule: RetrySchedule,
    /// The shortest wait after an answer that says "overloaded". Up to 24 h, 60 s by default.
    pub overload_floor: Duration,
    /// Statuses other than 2xx after which nothing is tried again. None by default.
    pub final_statuses: Vec<u16>,
    /// How many requests may be open at once. 1 to 1,000, 32 by default.
    pub in_flight_max: u16,
    /// How many requests may be sent in a window. No limit by default.
    pub delivery_rate: Option<RateLimit>,
    /// How many submissions are taken in a window. 600 in 60 s by default.
    pub ingest_rate: RateLimit,
    /// Which signatures deliveries carry. `v1` by default.
    pub signing: SigningSchemes,
    /// Whether the form route takes submissions for it, without a key. Not by default.
    pub public_ingest: bool,
    /// Networks outside of which nothing is sent. All that the deployment allows by default.
    pub only_networks: Option<OnlyNetworks>,
    /// What vouches for the receiver beside the roots of the platform. Nothing by default.
    pub ca_certificates: Option<CaCertificates>,
    /// Whether [`circuit`] stops deliveries while they fail. By default.
    pub circuit_breaker: bool,
}

impl Default for SettingsDraft {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(15),
            connect_deadline: Duration::from_secs(5),
            retry_schedule: RetrySchedule::default(),
            overload_floor: OVERLOAD_FLOOR_DEFAULT,
            final_statuses: Vec::new(),
            in_flight_max: 32,
            delivery_rate: None,
            ingest_rate: RateLimit::INGEST_DEFAULT,
            signing: SigningSchemes::V1,
            public_ingest: false,
            only_networks: None,
            ca_certificates: None,
            circuit_breaker: true,
        }
    }
}

/// Settings within their limits. See [`SettingsDraft`] for what each means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointSettings(SettingsDraft);

impl EndpointSettings {
    /// Accepts the draft, or names the first field that breaks a limit. Statuses are put in order, each
    /// once.
    pub fn new(mut draft: SettingsDraft) -> Result<Self, SettingsError> {
        let refuse =
            |field, message: &str| Err(SettingsError { field, message: message.to_owned() });
        if !(DEADLINE_MIN..=DEADLINE_MAX).contains(&draft.deadline) {
            return refuse("deadline", "must be between 100 ms and 30 s");
        }
        if !(DEADLINE_MIN..=draft.deadline).contains(&draft.connect_deadline) {
            return refuse("connect_deadline", "must be between 100 ms and the deadline");
        }
        if draft.overload_floor > OVERLOAD_FLOOR_MAX {
            return refuse("overload_floor", "must be at most 24 h");
        }
        if !(1..=IN_FLIGHT_MAX).contains(&draft.in_flight_max) {
            return refuse("in_flight_max", "must be between 1 and 1,000");
        }
        if draft.final_statuses.iter().any(|s| !(300..=599).contains(s)) {
            return refuse("final_statuses", "may only list statuses from 300 to 599");
        }
        draft.final_statuses.sort_unstable();
        draft.final_statuses.dedup();
        Ok(Self(draft))
    }

    /// For the whole call: DNS, connect, TLS, head and body.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.0.deadline
    }

    /// For DNS, connect and TLS.
    #[must_use]
    pub fn connect_deadline(&self) -> Duration {
        self.0.connect_deadline
    }

    /// The waits between attempts.
    #[must_use]
    pub fn retry_schedule(&self) -> &RetrySchedule {
        &self.0.retry_schedule
    }

    /// The shortest wait after an answer that says "overloaded".
    #[must_use]
    pub fn overload_floor(&self) -> Duration {
        self.0.overload_floor
    }

    /// Statuses after which nothing is tried again.
    #[must_use]
    pub fn final_statuses(&self) -> &[u16] {
        &self.0.final_statuses
    }

    /// How many requests may be open at once.
    #[must_use]
    pub fn in_flight_max(&self) -> u16 {
        self.0.in_flight_max
    }

    /// How many requests may be sent in a window.
    #[must_use]
    pub fn delivery_rate(&self) -> Option<RateLimit> {
        self.0.delivery_rate
    }

    /// How many submissions are taken in a window.
    #[must_use]
    pub fn ingest_rate(&self) -> RateLimit {
        self.0.ingest_rate
    }

    /// Which signatures deliveries carry.
    #[must_use]
    pub fn signing(&self) -> SigningSchemes {
        self.0.signing
    }

    /// Whether the form route takes submissions for it, without a key.
    #[must_use]
    pub fn public_ingest(&self) -> bool {
        self.0.public_ingest
    }

    /// Whether [`circuit`] stops deliveries while they fail.
    #[must_use]
    pub fn circuit_breaker(&self) -> bool {
        self.0.circuit_breaker
    }

    /// Networks outside of which nothing is sent.
    #[must_use]
    pub fn only_networks(&self) -> Option<&OnlyNetworks> {
        self.0.only_networks.as_ref()
    }

    /// What vouches for the receiver beside the roots of the platform.
    #[must_use]
    pub fn ca_certificates(&self) -> Option<&CaCertificates> {
        self.0.ca_certificates.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut SettingsDraft)) -> &'static str {
        let mut draft = SettingsDraft::default();
        change(&mut draft);
        EndpointSettings::new(draft).unwrap_err().field
    }

    #[test]
    fn the_defaults_are_within_their_own_limits() {
        assert_eq!(
            EndpointSettings::new(SettingsDraft::default()),
            Ok(EndpointSettings::default())
        );
    }

    #[test]
    fn each_setting_outside_its_limits_is_named() {
        let ms = Duration::from_millis;
        assert_eq!(refused(|d| d.deadline = ms(99)), "deadline");
        assert_eq!(refused(|d| d.deadline = ms(30_001)), "deadline");
        assert_eq!(refused(|d| d.connect_deadline = ms(99)), "connect_deadline");
        assert_eq!(refused(|d| d.connect_deadline = ms(15_001)), "connect_deadline");
        assert_eq!(refused(|d| d.overload_floor = ms(86_400_001)), "overload_floor");
        assert_eq!(refused(|d| d.in_flight_max = 0), "in_flight_max");
        assert_eq!(refused(|d| d.in_flight_max = 1_001), "in_flight_max");
        assert_eq!(refused(|d| d.final_statuses = vec![204]), "final_statuses");
    }

    #[test]
    fn final_statuses_stand_in_order_each_once() {
        let final_statuses = vec![422, 404, 422];
        let draft = SettingsDraft { final_statuses, ..SettingsDraft::default() };
        assert_eq!(EndpointSettings::new(draft).unwrap().final_statuses(), [404, 422]);
    }

    #[test]
    fn a_name_has_at_most_two_hundred_characters_and_no_control_characters() {
        assert!(EndpointName::parse(&"é".repeat(200)).is_ok());
        assert!(EndpointName::parse(&"é".repeat(201)).is_err());
        assert!(EndpointName::parse("a\u{1b}[31m").is_err());
    }
}
