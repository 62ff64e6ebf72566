//! G1: workers claiming at once partition what is due, and an expired lease is reclaimed by exactly one.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::delivery::ClaimKind;
use domain::id::DeliveryId;

use super::check::{Check, Round};
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Value};
use crate::ground::{Ground, claim, end_leases};

/// How many deliveries are due for each contestant.
const EACH: usize = 4;
/// How many a contestant takes in one claim.
const AT_ONCE: u32 = 3;

#[derive(Debug)]
pub(super) struct Claim;

#[async_trait]
impl Check for Claim {
    fn name(&self) -> &'static str {
        "claim"
    }

    fn guarantee(&self) -> &'static str {
        "G1"
    }

    fn tried(&self, ground: &Ground) -> String {
        let workers = ground.contestants();
        let due = EACH * workers;
        format!(
            "{workers} workers claim {due} due deliveries at once; then all leases expire, and they do it again"
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let owed = ground.submit(&endpoint, EACH * ground.contestants()).await?;
        let fresh = claim_all(ground, &endpoint, ClaimKind::Fresh).await?;
        let mut connection = ground.connections()?.get().await?;
        end_leases(&mut connection, endpoint.key).await?;
        let reclaimed = claim_all(ground, &endpoint, ClaimKind::Reclaimed).await?;
        Ok(judge(&owed, &[&fresh, &reclaimed]))
    }

    fn naive(&self) -> &'static str {
        "select the oldest due delivery, then update it by its id"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let owed = ground.submit(&endpoint, 1).await?;
        let connections = ground.connections()?.get_many(ground.contestants()).await?;
        let all_have_read = Rendezvous::of(connections.len());
        let taken = race(connections, move |_, mut connection| {
            let all_have_read = all_have_read.clone();
            async move {
                let due = read_due(&mut connection, endpoint.key.as_uuid()).await?;
                all_have_read.meet().await?;
                take(&mut connection, due).await?;
                Ok(due)
            }
        })
        .await?;
        Ok(judge(&owed, &[&taken]))
    }
}

/// Every contestant claims until nothing is left. Answers what was claimed, as often as it was.
async fn claim_all(
    ground: &Ground,
    endpoint: &store::endpoint::Endpoint,
    kind: ClaimKind,
) -> anyhow::Result<Vec<DeliveryId>> {
    let endpoint = endpoint.key;
    let taken = race(ground.stores().await?, move |_, store| async move {
        let mut taken = Vec::new();
        loop {
            let (_, batch) = claim(store.as_ref(), endpoint, AT_ONCE).await?;
            if batch.claimed.is_empty() {
                return Ok(taken);
            }
            let wrong = batch.claimed.iter().find(|claimed| claimed.kind != kind);
            anyhow::ensure!(wrong.is_none(), "claimed as it should not be: {wrong:?}");
            taken.extend(batch.claimed.iter().map(|claimed| claimed.delivery));
        }
    })
    .await?;
    Ok(taken.into_iter().flatten().collect())
}

/// Each pass must take what is owed once.
fn judge(owed: &[DeliveryId], passes: &[&Vec<DeliveryId>]) -> Round {
    let tell = |once: usize, missed: usize, more: usize| {
        format!("{once} claimed once, {missed} missed, {more} claimed by more than one")
    };
    let (mut once, mut missed, mut more) = (0, 0, 0);
    for pass in passes {
        let mut times: HashMap<DeliveryId, usize> = owed.iter().map(|id| (*id, 0)).collect();
        for id in *pass {
            *times.entry(*id).or_default() += 1;
        }
        once += times.values().filter(|times| **times == 1).count();
        missed += times.values().filter(|times| **times == 0).count();
        more += times.values().filter(|times| **times > 1).count();
    }
    Round::of(tell(owed.len() * passes.len(), 0, 0), tell(once, missed, more))
}

async fn read_due(connection: &mut Connection, endpoint: uuid::Uuid) -> anyhow::Result<DeliveryId> {
    let due = connection
        .read_one(
            "-- proof::verify::claim::read_due
            SELECT id FROM {}deliveries
            WHERE endpoint = $1 AND state = 1 AND due_at <= {now}
            ORDER BY due_at, id LIMIT 1",
            &[Value::Uuid(endpoint)],
        )
        .await?;
    Ok(DeliveryId::from_uuid(due.uuid("id")?))
}

async fn take(connection: &mut Connection, delivery: DeliveryId) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::claim::take
            UPDATE {}deliveries
            SET state = 2, claim_token = $2, claim_expires_at = {now} + {five_minutes}
            WHERE id = $1",
            &[Value::Uuid(delivery.as_uuid()), Value::Uuid(store::new_id::claim_token().as_uuid())],
        )
        .await?;
    Ok(())
}
