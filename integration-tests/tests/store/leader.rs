//! One leader at a time, by a lease.

use std::sync::Arc;
use std::time::Duration;

use integration_tests::race::race;
use store::maintenance::Candidacy;
use uuid::Uuid;

use crate::fixture::Fixture;

on_both_stores! {
    of_many_candidates_one_leads,
    a_leader_keeps_the_lead_and_nobody_else_takes_it,
    a_lease_that_is_over_is_taken_by_exactly_one,
    a_leader_that_resigns_is_followed_at_once,
    who_was_superseded_neither_renews_nor_ends_the_new_term,
}

const LEASE: Duration = Duration::from_secs(30);

async fn lead(db: &Fixture, token: Uuid) -> anyhow::Result<bool> {
    Ok(db.store.lead(&Candidacy { holder: "a-worker", token, lease: LEASE }).await?)
}

fn token() -> Uuid {
    store::new_id::uuid_now()
}

/// Ends the lease of whoever leads.
async fn end_lease(db: &Fixture, token: Uuid) -> anyhow::Result<()> {
    let text = if db.url().starts_with("sqlite") {
        "update leaders set expires_at = 0 where token = $1"
    } else {
        "update fencepost.leaders set expires_at = statement_timestamp() where token = $1"
    };
    db.run(text, token).await
}

async fn race_for_it(db: &Fixture) -> anyhow::Result<Vec<Uuid>> {
    let tokens: Vec<Uuid> = (0..8).map(|_| token()).collect();
    let store = Arc::clone(&db.store);
    let led = race(tokens.clone(), move |_, token| {
        let store = Arc::clone(&store);
        async move { Ok(store.lead(&Candidacy { holder: "a-worker", token, lease: LEASE }).await?) }
    })
    .await?;
    Ok(tokens.into_iter().zip(led).filter(|(_, led)| *led).map(|(token, _)| token).collect())
}

async fn of_many_candidates_one_leads(db: Fixture) -> anyhow::Result<()> {
    assert_eq!(race_for_it(&db).await?.len(), 1);
    assert_eq!(db.count("leaders").await?, 1);
    Ok(())
}

async fn a_leader_keeps_the_lead_and_nobody_else_takes_it(db: Fixture) -> anyhow::Result<()> {
    let leader = token();
    for _ in 0..3 {
        assert!(lead(&db, leader).await?);
        assert!(!lead(&db, token()).await?);
    }
    Ok(())
}

async fn a_lease_that_is_over_is_taken_by_exactly_one(db: Fixture) -> anyhow::Result<()> {
    let leader = token();
    assert!(lead(&db, leader).await?);
    end_lease(&db, leader).await?;
    assert_eq!(race_for_it(&db).await?.len(), 1);
    assert!(!lead(&db, leader).await?);
    Ok(())
}

async fn a_leader_that_resigns_is_followed_at_once(db: Fixture) -> anyhow::Result<()> {
    let leader = token();
    assert!(lead(&db, leader).await?);
    db.store.resign(leader).await?;
    assert!(lead(&db, token()).await?);
    Ok(())
}

async fn who_was_superseded_neither_renews_nor_ends_the_new_term(
    db: Fixture,
) -> anyhow::Result<()> {
    let (old, new) = (token(), token());
    assert!(lead(&db, old).await?);
    end_lease(&db, old).await?;
    assert!(lead(&db, new).await?);
    assert!(!lead(&db, old).await?);
    db.store.resign(old).await?;
    assert!(!lead(&db, token()).await?, "the new term goes on");
    assert!(lead(&db, new).await?);
    Ok(())
}
