//! G5: of any number of operators one replays a failed delivery.

use async_trait::async_trait;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::StateName;
use domain::id::DeliveryId;
use store::delivery::{HeldClaim, Recording, Replay};

use super::check::{Check, Round};
use super::fence::{failed, report};
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Value};
use crate::ground::{Ground, claim, patiently};

#[derive(Debug)]
pub(super) struct ReplayOnce;

#[async_trait]
impl Check for ReplayOnce {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn guarantee(&self) -> &'static str {
        "G5"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!("{} operators replay one failed delivery at once", ground.contestants())
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let delivery = failed_delivery(ground, &endpoint).await?;
        let told = race(ground.stores().await?, move |_, store| async move {
            Ok(patiently(|| store.replay_failed(DEFAULT_APPLICATION_KEY, delivery)).await?)
        })
        .await?;
        let count = |wanted| told.iter().filter(|told| **told == wanted).count();
        let replayed = count(Replay::Replayed);
        let refused = count(Replay::NotReplayable(StateName::Pending));
        let next = fail_once_more(ground, &endpoint, delivery).await?;
        Ok(judge(ground, replayed, refused, next))
    }

    fn naive(&self) -> &'static str {
        "read the state, then set it to pending by the id"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let delivery = failed_delivery(ground, &endpoint).await?;
        let connections = ground.connections()?.get_many(ground.contestants()).await?;
        let all_have_read = Rendezvous::of(connections.len());
        let replayed = race(connections, move |_, mut connection| {
            let all_have_read = all_have_read.clone();
            async move {
                let is_failed = is_failed(&mut connection, delivery).await?;
                all_have_read.meet().await?;
                if is_failed {
                    set_pending(&mut connection, delivery).await?;
                }
                Ok(is_failed)
            }
        })
        .await?;
        let replayed = replayed.into_iter().filter(|replayed| *replayed).count();
        let refused = ground.contestants() - replayed;
        let next = fail_once_more(ground, &endpoint, delivery).await?;
        Ok(judge(ground, replayed, refused, next))
    }
}

fn judge(ground: &Ground, replayed: usize, refused: usize, next: u32) -> Round {
    let tell = |replayed, refused, next: u32| {
        format!(
            "{replayed} replayed it, {refused} told its state, the next attempt is number {next}"
        )
    };
    let expected = tell(1, ground.contestants() - 1, 2);
    Round::of(expected, tell(replayed, refused, next))
}

async fn failed_delivery(
    ground: &Ground,
    endpoint: &store::endpoint::Endpoint,
) -> anyhow::Result<DeliveryId> {
    let [delivery] = ground.submit(endpoint, 1).await?[..] else {
        anyhow::bail!("one was submitted")
    };
    fail_once_more(ground, endpoint, delivery).await?;
    Ok(delivery)
}

/// Claims the delivery and fails it. The number of that attempt.
async fn fail_once_more(
    ground: &Ground,
    endpoint: &store::endpoint::Endpoint,
    delivery: DeliveryId,
) -> anyhow::Result<u32> {
    let store = ground.store().await?;
    let (token, batch) = claim(store.as_ref(), endpoint.key, 1).await?;
    anyhow::ensure!(batch.claimed.len() == 1, "the delivery is not due");
    let held = HeldClaim { endpoint: endpoint.key, delivery, token };
    match store.record_attempts(&[report(held, failed())]).await?[..] {
        [Recording::Fenced(number)] => Ok(number),
        ref other => anyhow::bail!("not recorded: {other:?}"),
    }
}

async fn is_failed(connection: &mut Connection, delivery: DeliveryId) -> anyhow::Result<bool> {
    let row = connection
        .read_one(
            "-- proof::verify::replay::is_failed
            SELECT CAST(state AS bigint) AS state FROM {}deliveries WHERE id = $1",
            &[Value::Uuid(delivery.as_uuid())],
        )
        .await?;
    Ok(row.integer("state")? == 3)
}

async fn set_pending(connection: &mut Connection, delivery: DeliveryId) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::replay::set_pending
            UPDATE {}deliveries
            SET state = 1, reason = NULL, due_at = {now}, cycle_attempts = 0
            WHERE id = $1",
            &[Value::Uuid(delivery.as_uuid())],
        )
        .await?;
    Ok(())
}
