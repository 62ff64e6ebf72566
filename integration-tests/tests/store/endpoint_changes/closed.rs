//! Endpoints that are disabled or paused, and enabled again.

use std::time::Duration;

use anyhow::Context as _;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::endpoint::DisabledCause;
use store::delivery::Standing;
use store::endpoint::{EndpointChange, PAUSED_FOR_GOOD, Pause};
use time::OffsetDateTime;

use super::{found, update, url};
use crate::fixture::Fixture;

on_both_stores! {
    a_disabled_endpoint_is_closed_until_it_is_enabled,
    a_pause_ends_by_itself_or_when_the_endpoint_is_enabled,
    a_gone_answer_from_before_a_change_does_not_disable_what_was_enabled_since,
}

async fn a_disabled_endpoint_is_closed_until_it_is_enabled(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let switch = |enabled| EndpointChange { enabled: Some(enabled), ..Default::default() };
    update(&db, &endpoint, &switch(false)).await?;
    db.submit(&endpoint).await?;
    assert!(db.due_endpoints(false).await?.is_empty());
    assert_eq!(db.claim(&[&endpoint], 1).await?.1.endpoints[0].1, Standing::Closed);
    update(&db, &endpoint, &switch(true)).await?;
    db.claim_one(&endpoint).await?;

    let gone = DisabledCause::Gone;
    let version = found(&db, &endpoint).await?.version;
    assert!(db.store.disable_endpoint(endpoint.key, version, gone).await?);
    let (kept, _) = update(&db, &endpoint, &switch(false)).await?;
    assert_eq!(kept.disabled, Some(gone), "the first cause stays");
    let enabled = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(enabled.map(|it| (it.disabled, it.version)), Some((None, version + 3)));
    Ok(())
}

async fn a_pause_ends_by_itself_or_when_the_endpoint_is_enabled(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let pause = async |pause| {
        let paused = db.store.pause_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, pause).await?;
        paused.context("not paused")
    };
    let for_good = pause(Pause::ForGood).await?;
    assert_eq!(for_good.paused_until, Some(PAUSED_FOR_GOOD));
    assert_eq!(found(&db, &endpoint).await?, for_good);
    assert_eq!(db.claim(&[&endpoint], 1).await?.1.endpoints[0].1, Standing::Closed);
    assert!(db.due_endpoints(true).await?.is_empty());
    let until = for_good.updated_at + Duration::from_hours(3);
    assert_eq!(pause(Pause::Until(until)).await?.paused_until, Some(until));
    let hour = pause(Pause::For(Duration::from_hours(1))).await?;
    assert_eq!(hour.paused_until, Some(hour.updated_at + Duration::from_hours(1)));
    let (renamed, _) =
        update(&db, &endpoint, &EndpointChange { name: Some(None), ..Default::default() }).await?;
    assert_eq!(renamed.paused_until, hour.paused_until, "a change leaves a pause");
    let enabled = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(enabled.map(|it| it.paused_until), Some(None));
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);

    pause(Pause::ForGood).await?;
    let over = pause(Pause::Until(OffsetDateTime::UNIX_EPOCH)).await?;
    assert_eq!(over.paused_until, None, "one that is over is none");
    db.claim_one(&endpoint).await?;
    Ok(())
}

async fn a_gone_answer_from_before_a_change_does_not_disable_what_was_enabled_since(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let sent_under = db.store.read_targets(&[endpoint.key]).await?[0].version;
    let change =
        EndpointChange { url: Some(url("https://new.example.com", 1)?), ..Default::default() };
    update(&db, &endpoint, &change).await?;
    assert!(!db.store.disable_endpoint(endpoint.key, sent_under, DisabledCause::Gone).await?);
    let sent_under = db.store.read_targets(&[endpoint.key]).await?[0].version;
    db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert!(!db.store.disable_endpoint(endpoint.key, sent_under, DisabledCause::Gone).await?);
    assert_eq!(found(&db, &endpoint).await?.disabled, None);
    Ok(())
}
