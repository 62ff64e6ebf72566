//! G2 and G3: a worker that lost its claim changes nothing, and its attempt is history with a number of
//! its own.

use async_trait::async_trait;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{FailureReason, Outcome, StateName, Verdict};
use domain::id::DeliveryId;
use store::delivery::{Evidence, HeldClaim, Recording, Report};
use time::OffsetDateTime;
use uuid::Uuid;

use super::check::{Check, Round};
use crate::barrier::race;
use crate::connections::{Connection, Value};
use crate::ground::{Ground, URL, WORKER, claim, end_leases, patiently};

#[derive(Debug)]
pub(super) struct Fence;

#[async_trait]
impl Check for Fence {
    fn name(&self) -> &'static str {
        "fence"
    }

    fn guarantee(&self) -> &'static str {
        "G2, G3"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "of {} deliveries the worker that lost its claim (it failed) and the one that holds it \
             (it delivered) report at once, each of them twice",
            deliveries(ground)
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let owed = superseded(ground, deliveries(ground)).await?;
        let reports = owed.iter().flat_map(|(late, owner)| {
            [report(*late, failed()), report(*owner, Verdict::Delivered)]
        });
        let contestants = ground.stores().await?.into_iter().zip(reports);
        let told = race(contestants, |_, (store, report)| async move {
            let reports = [report];
            let mut told = Vec::new();
            for _ in 0..2 {
                told.extend(patiently(|| store.record_attempts(&reports)).await?);
            }
            Ok(told)
        })
        .await?;
        let mut tally = Tally::default();
        for ((_, owner), told) in owed.iter().zip(told.chunks_exact(2)) {
            tally.add_told(told);
            tally.look(ground, owner.delivery).await?;
        }
        Ok(tally.judge(owed.len()))
    }

    fn naive(&self) -> &'static str {
        "read the row, compare its token in the program, then update it by its id; meanwhile its lease \
         ends and another worker claims it"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let [delivery] = ground.submit(&endpoint, 1).await?[..] else {
            anyhow::bail!("one was submitted")
        };
        let store = ground.store().await?;
        let (late, _) = claim(store.as_ref(), endpoint.key, 1).await?;
        let mut connection = ground.connections()?.get().await?;
        let attempts = read_if_held(&mut connection, delivery, late.as_uuid()).await?;
        // Between its read and its write it is superseded: here the order is the barrier.
        end_leases(&mut connection, endpoint.key).await?;
        let (owner, _) = claim(store.as_ref(), endpoint.key, 1).await?;
        fail(&mut connection, delivery, attempts + 1).await?;
        let owner = HeldClaim { endpoint: endpoint.key, delivery, token: owner };
        store.record_attempts(&[report(owner, Verdict::Delivered)]).await?;
        let mut tally = Tally::default();
        tally.look(ground, delivery).await?;
        Ok(tally.judge(1))
    }
}

fn deliveries(ground: &Ground) -> usize {
    (ground.contestants() / 2).max(1)
}

/// Deliveries that one worker lost and another holds: both claims.
async fn superseded(ground: &Ground, count: usize) -> anyhow::Result<Vec<(HeldClaim, HeldClaim)>> {
    let endpoint = ground.endpoint().await?;
    let owed = ground.submit(&endpoint, count).await?;
    let store = ground.store().await?;
    let claimed = u32::try_from(count)?;
    let (late, _) = claim(store.as_ref(), endpoint.key, claimed).await?;
    let mut connection = ground.connections()?.get().await?;
    end_leases(&mut connection, endpoint.key).await?;
    let (owner, batch) = claim(store.as_ref(), endpoint.key, claimed).await?;
    anyhow::ensure!(batch.claimed.len() == count, "not all that lapsed were reclaimed");
    let held = |delivery: &DeliveryId, token| HeldClaim {
        endpoint: endpoint.key,
        delivery: *delivery,
        token,
    };
    Ok(owed.iter().map(|delivery| (held(delivery, late), held(delivery, owner))).collect())
}

pub(super) fn failed() -> Verdict {
    Verdict::Failed { reason: FailureReason::AttemptsExhausted }
}

pub(super) fn report(claim: HeldClaim, verdict: Verdict) -> Report {
    let status = if verdict == Verdict::Delivered { 204 } else { 500 };
    Report {
        endpoint: claim.endpoint,
        delivery: claim.delivery,
        token: claim.token,
        version: 1,
        worker: WORKER.to_owned(),
        started_at: OffsetDateTime::now_utc(),
        duration: std::time::Duration::ZERO,
        outcome: Outcome::Answered { status, retry_after: None },
        verdict,
        evidence: Evidence { url: URL.to_owned(), ..Evidence::default() },
    }
}

/// What became of the deliveries.
#[derive(Debug, Default)]
struct Tally {
    delivered: usize,
    owners: usize,
    late: usize,
    other: usize,
}

impl Tally {
    /// Both workers' answers: each is recorded once, and recognised when it comes again.
    fn add_told(&mut self, told: &[Vec<Recording>]) {
        let as_it_should = match told {
            [late, owner] => {
                matches!(late[..], [Recording::Late(n), Recording::Repeated(m)] if n == m)
                    && matches!(owner[..], [Recording::Fenced(n), Recording::Repeated(m)] if n == m)
            }
            _ => false,
        };
        self.other += usize::from(!as_it_should);
    }

    /// What is stored of a delivery.
    async fn look(&mut self, ground: &Ground, delivery: DeliveryId) -> anyhow::Result<()> {
        let store = ground.store().await?;
        let Some(seen) = store.find_delivery(DEFAULT_APPLICATION_KEY, delivery).await? else {
            anyhow::bail!("the delivery is gone")
        };
        self.delivered += usize::from(seen.delivery.state == StateName::Delivered);
        let numbers: Vec<u32> = seen.attempts.iter().map(|attempt| attempt.number).collect();
        self.other += usize::from(numbers != (1..=seen.delivery.attempts).collect::<Vec<_>>());
        self.late += seen.attempts.iter().filter(|attempt| attempt.late).count();
        self.owners += seen.attempts.iter().filter(|attempt| !attempt.late).count();
        Ok(())
    }

    fn judge(&self, owed: usize) -> Round {
        let tell = |Self { delivered, owners, late, other }: &Self| {
            format!(
                "{delivered} delivered, {owners} attempts of owners, {late} late ones as history, \
                 {other} wrong answers or numbers"
            )
        };
        let expected = Self { delivered: owed, owners: owed, late: owed, other: 0 };
        Round::of(tell(&expected), tell(self))
    }
}

/// The attempts so far, if the row carries that token.
async fn read_if_held(
    connection: &mut Connection,
    delivery: DeliveryId,
    token: Uuid,
) -> anyhow::Result<i64> {
    let row = connection
        .read_one(
            "-- proof::verify::fence::read_if_held
            SELECT claim_token, CAST(attempts AS bigint) AS attempts
            FROM {}deliveries WHERE id = $1",
            &[Value::Uuid(delivery.as_uuid())],
        )
        .await?;
    anyhow::ensure!(row.uuid("claim_token")? == token, "the claim was lost before the race");
    Ok(row.integer("attempts")?)
}

async fn fail(
    connection: &mut Connection,
    delivery: DeliveryId,
    attempts: i64,
) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::fence::fail
            UPDATE {}deliveries
            SET state = 3, reason = 1, claim_token = NULL, attempts = $2, cycle_attempts = 1
            WHERE id = $1",
            &[Value::Uuid(delivery.as_uuid()), Value::Integer(attempts)],
        )
        .await?;
    Ok(())
}
