//! Rows of `endpoints`.

use domain::destination::OnlyNetworks;
use domain::endpoint::{CaCertificates, EndpointSettings, SettingsDraft};
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::rate_limit::RateLimit;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use super::{UnixMicros, corrupt, duration, json_of_numbers, millis, retry_schedule};
use crate::endpoint::Endpoint;
use crate::sealing::Sealer;
use crate::{StoreError, codes, sealed_headers};

/// The columns of `endpoints` that settings are made of.
#[derive(Debug, FromRow)]
pub(in crate::sqlite) struct SettingsColumns {
    pub deadline_ms: i64,
    pub connect_deadline_ms: i64,
    pub retry_schedule_ms: String,
    pub overload_floor_ms: i64,
    pub final_statuses: String,
    pub in_flight_max: i64,
    pub delivery_rate: Option<i64>,
    pub delivery_rate_ms: Option<i64>,
    pub ingest_rate: i64,
    pub ingest_rate_ms: i64,
    pub signing: i16,
    pub public_ingest: bool,
    pub only_networks: Option<String>,
    pub ca_certificates: Option<String>,
    pub circuit_breaker: bool,
}

impl From<&EndpointSettings> for SettingsColumns {
    fn from(settings: &EndpointSettings) -> Self {
        let (rate, ingest) = (settings.delivery_rate(), settings.ingest_rate());
        let delays = settings.retry_schedule().delays().iter().copied().map(millis);
        let statuses = settings.final_statuses().iter().copied().map(i64::from);
        Self {
            deadline_ms: millis(settings.deadline()),
            connect_deadline_ms: millis(settings.connect_deadline()),
            retry_schedule_ms: json_of_numbers(delays),
            overload_floor_ms: millis(settings.overload_floor()),
            final_statuses: json_of_numbers(statuses),
            in_flight_max: settings.in_flight_max().into(),
            delivery_rate: rate.map(|rate| rate.units().into()),
            delivery_rate_ms: rate.map(|rate| millis(rate.window())),
            ingest_rate: ingest.units().into(),
            ingest_rate_ms: millis(ingest.window()),
            signing: codes::of_signing(settings.signing()),
            public_ingest: settings.public_ingest(),
            only_networks: settings.only_networks().map(|it| json_of_texts(&it.to_texts())),
            ca_certificates: settings.ca_certificates().map(|it| it.as_pem().to_owned()),
            circuit_breaker: settings.circuit_breaker(),
        }
    }
}

impl SettingsColumns {
    pub(in crate::sqlite) fn settings(
        self,
        endpoint: Uuid,
    ) -> Result<EndpointSettings, StoreError> {
        let bad = |column| corrupt("endpoints", column, endpoint);
        let delivery_rate = match (self.delivery_rate, self.delivery_rate_ms) {
            (None, None) => None,
            (units, window) => {
                let rate = units.zip(window).and_then(|(units, window)| rate(units, window));
                Some(rate.ok_or_else(|| bad("delivery_rate"))?)
            }
        };
        EndpointSettings::new(SettingsDraft {
            deadline: duration(self.deadline_ms).ok_or_else(|| bad("deadline_ms"))?,
            connect_deadline: duration(self.connect_deadline_ms)
                .ok_or_else(|| bad("connect_deadline_ms"))?,
            retry_schedule: retry_schedule(&self.retry_schedule_ms, endpoint)?,
            overload_floor: duration(self.overload_floor_ms)
                .ok_or_else(|| bad("overload_floor_ms"))?,
            final_statuses: serde_json::from_str(&self.final_statuses)
                .map_err(|_| bad("final_statuses"))?,
            in_flight_max: u16::try_from(self.in_flight_max).map_err(|_| bad("in_flight_max"))?,
            delivery_rate,
            ingest_rate: rate(self.ingest_rate, self.ingest_rate_ms)
                .ok_or_else(|| bad("ingest_rate"))?,
            signing: codes::signing(self.signing).ok_or_else(|| bad("signing"))?,
            public_ingest: self.public_ingest,
            only_networks: self
                .only_networks
                .map(|json| only_networks(&json).ok_or_else(|| bad("only_networks")))
                .transpose()?,
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

/// The rate of two columns.
pub(in crate::sqlite) fn rate(units: i64, window_ms: i64) -> Option<RateLimit> {
    RateLimit::new(u32::try_from(units).ok()?, duration(window_ms)?).ok()
}

fn only_networks(json: &str) -> Option<OnlyNetworks> {
    let texts: Vec<String> = serde_json::from_str(json).ok()?;
    OnlyNetworks::parse(&texts).ok()
}

/// Texts as a JSON array.
pub(in crate::sqlite) fn json_of_texts(texts: &[String]) -> String {
    texts.iter().cloned().collect::<Value>().to_string()
}

/// A row of `endpoints`, with its pause from `endpoint_schedule`.
#[derive(Debug, FromRow)]
pub(in crate::sqlite) struct EndpointRow {
    key: Uuid,
    application: Uuid,
    id: String,
    url: String,
    name: Option<String>,
    event_types: Option<String>,
    headers_sealed: Option<Vec<u8>>,
    headers_sealing_key: Option<String>,
    disabled_cause: Option<i16>,
    paused_until: Option<UnixMicros>,
    version: i64,
    #[sqlx(flatten)]
    settings: SettingsColumns,
    created_at: UnixMicros,
    updated_at: UnixMicros,
}

impl EndpointRow {
    pub(in crate::sqlite) fn endpoint(self, sealer: &Sealer) -> Result<Endpoint, StoreError> {
        let bad = |column| corrupt("endpoints", column, self.key);
        let cause = |code| codes::disabled_cause(code).ok_or_else(|| bad("disabled_cause"));
        let texts = |json: &str| serde_json::from_str(json).map_err(|_| bad("event_types"));
        let key = EndpointKey::from_uuid(self.key);
        let headers =
            sealed_headers::open(sealer, key, self.headers_sealed, self.headers_sealing_key);
        Ok(Endpoint {
            key,
            application: ApplicationKey::from_uuid(self.application),
            id: PublicId::parse(&self.id).map_err(|_| bad("id"))?,
            url: self.url,
            name: self.name,
            event_types: self.event_types.as_deref().map(texts).transpose()?,
            headers: headers.map(|headers| headers.names().map(str::to_owned).collect()),
            disabled: self.disabled_cause.map(cause).transpose()?,
            paused_until: self.paused_until.map(|UnixMicros(until)| until),
            settings: self.settings.settings(self.key)?,
            version: self.version,
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
        })
    }
}
