//! Everything that happened, read after it is over.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sqlx::Row as _;

use crate::chaos::Chaos;

/// What the producers, the database and the receiver know.
#[derive(Debug)]
pub(crate) struct History {
    /// Submissions that got a 202, with the deliveries that it named.
    pub(crate) accepted: BTreeMap<String, Vec<String>>,
    /// All deliveries of both tables.
    pub(crate) deliveries: Vec<DeliveryRow>,
    /// How often the receiver took each `webhook-id`.
    pub(crate) received: BTreeMap<String, usize>,
    /// Slots that each endpoint's schedule row counts.
    pub(crate) in_flight: BTreeMap<String, i32>,
    /// What killed workers held, summed over all kills.
    pub(crate) in_flight_at_kills: usize,
    /// How often what was killed.
    pub(crate) kills: BTreeMap<&'static str, usize>,
}

#[derive(Debug)]
pub(crate) struct DeliveryRow {
    pub(crate) id: String,
    pub(crate) submission: String,
    pub(crate) state: i16,
    pub(crate) reason: Option<i16>,
    /// Its own count of attempts.
    pub(crate) counted: i32,
    /// The numbers of its attempts.
    pub(crate) attempts: Vec<i32>,
}

impl History {
    /// What came more than once, beyond the first time.
    pub(crate) fn duplicates(&self) -> usize {
        self.received.values().map(|times| times.saturating_sub(1)).sum()
    }

    pub(crate) fn report(&self) -> String {
        let attempts: usize = self.deliveries.iter().map(|row| row.attempts.len()).sum();
        let mut text = format!(
            "accepted {}, deliveries {}, attempts {attempts}, received {}, of them again {} \
             (killed workers held {})",
            self.accepted.len(),
            self.deliveries.len(),
            self.received.values().sum::<usize>(),
            self.duplicates(),
            self.in_flight_at_kills,
        );
        for (what, times) in &self.kills {
            let _ = write!(text, ", {what} killed {times} times");
        }
        text
    }
}

pub(crate) async fn read(
    chaos: &Chaos,
    accepted: BTreeMap<String, Vec<String>>,
) -> anyhow::Result<History> {
    let mut connection = chaos.postgres().connect().await?;
    let rows = sqlx::query(
        "select d.id::text, d.submission::text, d.state, d.reason, d.attempts, array(
            select a.number from fencepost.attempts a
            where a.endpoint = d.endpoint and a.delivery = d.id) as numbers
        from (
            select endpoint, id, submission, state, reason, attempts from fencepost.deliveries
            union all
            select endpoint, id, submission, state, reason, attempts
            from fencepost.settled_deliveries
        ) d",
    )
    .fetch_all(&mut connection)
    .await?;
    let deliveries = rows
        .into_iter()
        .map(|row| {
            Ok(DeliveryRow {
                id: row.try_get(0)?,
                submission: row.try_get(1)?,
                state: row.try_get(2)?,
                reason: row.try_get(3)?,
                counted: row.try_get(4)?,
                attempts: row.try_get(5)?,
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    let in_flight: Vec<(String, i32)> =
        sqlx::query_as("select endpoint::text, in_flight from fencepost.endpoint_schedule")
            .fetch_all(&mut connection)
            .await?;
    Ok(History {
        accepted,
        deliveries,
        received: chaos.received(),
        in_flight: in_flight.into_iter().collect(),
        in_flight_at_kills: chaos.in_flight_at_kills(),
        kills: chaos.kills(),
    })
}
