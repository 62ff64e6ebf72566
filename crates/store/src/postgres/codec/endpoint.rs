//! Rows of `endpoints`.

use domain::delivery::retry::RetrySchedule;
use domain::destination::OnlyNetworks;
use domain::endpoint::{CaCertificates, EndpointSettings, SettingsDraft};
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::rate_limit::RateLimit;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{corrupt, duration, millis, millis_i32};
use crate::endpoint::Endpoint;
use crate::sealing::Sealer;
use crate::{StoreError, codes, sealed_headers};

/// The columns of `endpoints` that settings are made of.
#[derive(Debug)]
pub(in crate::postgres) struct SettingsColumns {
    pub deadline_ms: i32,
    pub connect_deadline_ms: i32,
    pub retry_schedule_ms: Vec<i64>,
    pub overload_floor_ms: i64,
    pub final_statuses: Vec<i16>,
    pub in_flight_max: i16,
    pub delivery_rate: Option<i32>,
    pub delivery_rate_ms: Option<i64>,
    pub ingest_rate: i32,
    pub ingest_rate_ms: i64,
    pub signing: i16,
    pub public_ingest: bool,
    pub only_networks: Option<Vec<String>>,
    pub ca_certificates: Option<String>,
    pub circuit_breaker: bool,
}

impl From<&EndpointSettings> for SettingsColumns {
    fn from(settings: &EndpointSettings) -> Self {
        let (rate, ingest) = (settings.delivery_rate(), settings.ingest_rate());
        let signed = |units: u32| i32::try_from(units).unwrap_or(i32::MAX);
        let statuses = settings.final_statuses().iter();
        Self {
            deadline_ms: millis_i32(settings.deadline()),
            connect_deadline_ms: millis_i32(settings.connect_deadline()),
            retry_schedule_ms: settings
                .retry_schedule()
                .delays()
                .iter()
                .copied()
                .map(millis)
                .collect(),
            overload_floor_ms: millis(settings.overload_floor()),
            final_statuses: statuses.filter_map(|status| i16::try_from(*status).ok()).collect(),
            in_flight_max: i16::try_from(settings.in_flight_max()).unwrap_or(i16::MAX),
            delivery_rate: rate.map(|rate| signed(rate.units())),
            delivery_rate_ms: rate.map(|rate| millis(rate.window())),
            ingest_rate: signed(ingest.units()),
            ingest_rate_ms: millis(ingest.window()),
            signing: codes::of_signing(settings.signing()),
            public_ingest: settings.public_ingest(),
            only_networks: settings.only_networks().map(OnlyNetworks::to_texts),
            ca_certificates: settings.ca_certificates().map(|it| it.as_pem().to_owned()),
            circuit_breaker: settings.circuit_breaker(),
        }
    }
}

impl SettingsColumns {
    pub(in crate::postgres) fn settings(
        self,
        endpoint: Uuid,
    ) -> Result<EndpointSettings, StoreError> {
        let bad = |column| corrupt("endpoints", column, endpoint);
        let delays = self.retry_schedule_ms.into_iter().map(duration).collect::<Option<Vec<_>>>();
        let unsigned = |status: i16| u16::try_from(status).ok();
        let delivery_rate = match (self.delivery_rate, self.delivery_rate_ms) {
            (None, None) => None,
            (units, window) => {
                let rate = units.zip(window).and_then(|(units, window)| rate(units, window));
                Some(rate.ok_or_else(|| bad("delivery_rate"))?)
            }
        };
        EndpointSettings::new(SettingsDraft {
            deadline: duration(self.deadline_ms.into()).ok_or_else(|| bad("deadline_ms"))?,
            connect_deadline: duration(self.connect_deadline_ms.into())
                .ok_or_else(|| bad("connect_deadline_ms"))?,
            retry_schedule: delays
                .and_then(|delays| RetrySchedule::new(delays).ok())
                .ok_or_else(|| bad("retry_schedule_ms"))?,
            overload_floor: duration(self.overload_floor_ms)
                .ok_or_else(|| bad("overload_floor_ms"))?,
            final_statuses: self
                .final_statuses
                .into_iter()
                .map(unsigned)
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| bad("final_statuses"))?,
            in_flight_max: unsigned(self.in_flight_max).ok_or_else(|| bad("in_flight_max"))?,
            delivery_rate,
            ingest_rate: rate(self.ingest_rate, self.ingest_rate_ms)
                .ok_or_else(|| bad("ingest_rate"))?,
            signing: codes::signing(self.signing).ok_or_else(|| bad("signing"))?,
            public_ingest: self.public_ingest,
            only_networks: self
                .only_networks
                .map(|texts| OnlyNetworks::parse(&texts))
                .transpose()
                .map_err(|_| bad("only_networks"))?,
            ca_certificates: self
                .ca_certificates
                .map(|pem| CaCertificates::parse(&pem))
                .transpose()
                .map_err(|_| bad("ca_certificates"))?,
            circuit_breaker: self.circuit_breaker,
        })
        .map_err(|error| bad(error.field))
    }
}

pub(in crate::postgres) fn rate(units: i32, window_ms: i64) -> Option<RateLimit> {
    RateLimit::new(u32::try_from(units).ok()?, duration(window_ms)?).ok()
}

/// A row of `endpoints`, with its pause from `endpoint_schedule`.
#[derive(Debug)]
pub(in crate::postgres) struct EndpointRow {
    pub key: Uuid,
    pub application: Uuid,
    pub id: String,
    pub url: String,
    pub name: Option<String>,
    pub event_types: Option<Vec<String>>,
    pub headers_sealed: Option<Vec<u8>>,
    pub headers_sealing_key: Option<String>,
    pub disabled_cause: Option<i16>,
    pub paused_until: Option<OffsetDateTime>,
    pub version: i64,
    pub deadline_ms: i32,
    pub connect_deadline_ms: i32,
    pub retry_schedule_ms: Vec<i64>,
    pub overload_floor_ms: i64,
    pub final_statuses: Vec<i16>,
    pub in_flight_max: i16,
    pub delivery_rate: Option<i32>,
    pub delivery_rate_ms: Option<i64>,
    pub ingest_rate: i32,
    pub ingest_rate_ms: i64,
    pub signing: i16,
    pub public_ingest: bool,
    pub only_networks: Option<Vec<String>>,
    pub ca_certificates: Option<String>,
    pub circuit_breaker: bool,
    pub created_at: OffsetDateTime,
    pub updated_at: OffsetDateTime,
}

impl EndpointRow {
    pub(in crate::postgres) fn endpoint(self, sealer: &Sealer) -> Result<Endpoint, StoreError> {
        let settings = SettingsColumns {
            deadline_ms: self.deadline_ms,
            connect_deadline_ms: self.connect_deadline_ms,
            retry_schedule_ms: self.retry_schedule_ms,
            overload_floor_ms: self.overload_floor_ms,
            final_statuses: self.final_statuses,
            in_flight_max: self.in_flight_max,
            delivery_rate: self.delivery_rate,
            delivery_rate_ms: self.delivery_rate_ms,
            ingest_rate: self.ingest_rate,
            ingest_rate_ms: self.ingest_rate_ms,
            signing: self.signing,
            public_ingest: self.public_ingest,
            only_networks: self.only_networks,
            ca_certificates: self.ca_certificates,
            circuit_breaker: self.circuit_breaker,
        };
        let cause = |code| {
            codes::disabled_cause(code)
                .ok_or_else(|| corrupt("endpoints", "disabled_cause", self.key))
        };
        let key = EndpointKey::from_uuid(self.key);
        let headers =
            sealed_headers::open(sealer, key, self.headers_sealed, self.headers_sealing_key);
        Ok(Endpoint {
            key,
            application: ApplicationKey::from_uuid(self.application),
            id: PublicId::parse(&self.id).map_err(|_| corrupt("endpoints", "id", self.key))?,
            url: self.url,
            name: self.name,
            event_types: self.event_types,
            headers: headers.map(|headers| headers.names().map(str::to_owned).collect()),
            disabled: self.disabled_cause.map(cause).transpose()?,
            paused_until: self.paused_until,
            settings: settings.settings(self.key)?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
