//! The hold beside what waits.

use std::sync::Arc;

use store::delivery::Standing;

use super::claim::claim;
use super::session::{run, until_it_waits};
use crate::fixture::{Fixture, new_endpoint};

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_commits_while_a_claim_waits_is_honoured() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let mut session = db.session().await?;
    // What the hold writes, stopped before its commit.
    run(&mut session, "begin; update fencepost.endpoint_schedule set held = true").await?;
    let (store, key) = (Arc::clone(&db.store), endpoint.key);
    let claiming = tokio::spawn(async move { claim(store.as_ref(), &[key], 10).await });
    until_it_waits(&mut db.session().await?, "postgres::delivery::claim_due").await?;
    run(&mut session, "commit").await?;
    let (batch, _) = claiming.await??;
    assert!(batch.claimed.is_empty());
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Closed)]);
    assert_eq!(db.row(delivery).await?.state, 1);
    Ok(())
}

/// The claim is in front of the hold in the queue of its row: the hold returns behind it and counts it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_waits_for_a_claim_in_front_of_it_and_counts_it() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let mut session = db.session().await?;
    run(&mut session, "begin; select from fencepost.endpoint_schedule for update").await?;
    let (store, key) = (Arc::clone(&db.store), endpoint.key);
    let claiming = tokio::spawn(async move { claim(store.as_ref(), &[key], 10).await });
    let mut watch = db.session().await?;
    until_it_waits(&mut watch, "postgres::delivery::claim_due").await?;
    let store = Arc::clone(&db.store);
    let holding = tokio::spawn(async move { store.set_hold(true, None).await });
    until_it_waits(&mut watch, "postgres::hold::set_hold::copy").await?;
    run(&mut session, "commit").await?;
    holding.await??;
    let hold = db.store.read_hold().await?;
    let (batch, _) = claiming.await??;
    // Which of the two gets the row first is PostgreSQL's choice: what counts is that they agree.
    assert_eq!(hold.open_claims, batch.claimed.len() as u64);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_made_beside_a_hold_is_held() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let mut session = db.session().await?;
    run(&mut session, "begin; update fencepost.holds set held = true").await?;
    let (store, new) = (Arc::clone(&db.store), new_endpoint()?);
    let making = tokio::spawn(async move { store.create_endpoint(&new).await });
    until_it_waits(&mut db.session().await?, "postgres::endpoint::create").await?;
    run(&mut session, "commit").await?;
    making.await??;
    let hold = db.store.read_hold().await?;
    assert!(hold.held && hold.endpoints_behind == 0, "{hold:?}");
    Ok(())
}
