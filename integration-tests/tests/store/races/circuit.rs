//! A claim that meets another one's probe.

use std::sync::Arc;

use domain::delivery::Verdict;
use store::delivery::Standing;

use super::claim::claim;
use super::session::{run, until_it_waits};
use crate::fixture::{Fixture, report};

/// The first claim takes the probe and stops before its commit, the second waits for the schedule row: it
/// reads the row again then and finds the circuit open for the probe's lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_commits_while_a_claim_waits_is_the_only_one() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    for _ in 0..3 {
        db.submit(&endpoint).await?;
    }
    let mut session = db.session().await?;
    run(
        &mut session,
        "update fencepost.endpoint_schedule set circuit_times = 1, circuit_cause = 1,
            circuit_since = now() - interval '1 minute', circuit_until = now() - interval '1 second'",
    )
    .await?;
    let store = Arc::clone(&db.store);
    let key = endpoint.key;
    run(
        &mut session,
        "begin; update fencepost.endpoint_schedule
            set circuit_until = now() + interval '30 seconds', circuit_probe = gen_random_uuid()",
    )
    .await?;
    let claiming = tokio::spawn(async move { claim(store.as_ref(), &[key], 10).await });
    until_it_waits(&mut db.session().await?, "postgres::delivery::claim_due").await?;
    run(&mut session, "commit").await?;
    let (batch, _) = claiming.await??;
    assert!(batch.claimed.is_empty(), "{batch:?}");
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Closed)]);
    Ok(())
}

/// A result waits behind the claim that takes the probe: it is counted on the row as the claim left it.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_waits_for_a_probe_is_not_taken_for_it() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let older = db.claim_one(&endpoint).await?;
    let mut session = db.session().await?;
    run(
        &mut session,
        "begin; update fencepost.endpoint_schedule set circuit_times = 1, circuit_cause = 1,
            circuit_since = now(), circuit_until = now() + interval '30 seconds',
            circuit_probe = gen_random_uuid()",
    )
    .await?;
    let store = Arc::clone(&db.store);
    let recording =
        tokio::spawn(
            async move { store.record_attempts(&[report(older, Verdict::Delivered)]).await },
        );
    let waiting = "postgres::delivery::record_attempts::record_live";
    until_it_waits(&mut db.session().await?, waiting).await?;
    run(&mut session, "commit").await?;
    recording.await??;
    let open: i64 = sqlx::query_scalar(
        "select count(*) from fencepost.endpoint_schedule
        where circuit_times = 1 and circuit_probe is not null",
    )
    .fetch_one(&mut session)
    .await?;
    assert_eq!(open, 1);
    Ok(())
}
