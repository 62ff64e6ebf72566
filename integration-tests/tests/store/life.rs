//! How an endpoint does: what its results come to, and what that does to it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{Failure, Outcome, Verdict};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{DisabledCause, FAILING_MAX};
use domain::signing::SigningSecret;
use integration_tests::race::race;
use store::delivery::{HeldClaim, Recording, Report};
use store::endpoint::{Endpoint, EndpointChange, EndpointUpdate, NewUrl};
use store::life::Life;

use crate::fixture::{Fixture, failure, report, retry};

on_both_stores! {
    an_endpoint_that_fails_on_each_of_five_days_is_disabled,
    a_success_ends_the_run_and_a_day_without_a_failure_begins_another,
    what_is_late_unsent_or_repeated_tells_nothing_of_the_endpoint,
    what_was_sent_to_another_url_or_before_it_was_enabled_tells_nothing,
    of_two_leaders_at_once_one_disables_an_endpoint,
}

const DAY: Duration = Duration::from_hours(24);

async fn life(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Life> {
    let lives = db.store.read_lives(&[endpoint.key]).await?;
    lives.first().copied().context("an answer")
}

/// A delivery is sent and this comes of it.
async fn result(db: &Fixture, endpoint: &Endpoint, verdict: Verdict) -> anyhow::Result<()> {
    db.submit(endpoint).await?;
    let claim = db.claim_one(endpoint).await?;
    let recording = db.record(report(claim, verdict)).await?;
    anyhow::ensure!(recording == Recording::Fenced(1), "{recording:?}");
    Ok(())
}

/// The run of failures began earlier, and went on since.
async fn age(db: &Fixture, endpoint: &Endpoint, by: Duration) -> anyhow::Result<()> {
    db.age_schedule("failing_since", endpoint, by).await?;
    db.age_schedule("failed_at", endpoint, by).await
}

/// A failure on each of the days but the fifth.
async fn failed_for_four_days(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
    for _ in 0..4 {
        result(db, endpoint, failure()).await?;
        age(db, endpoint, DAY).await?;
        assert!(db.store.disable_failing(10).await?.is_empty());
    }
    Ok(())
}

async fn an_endpoint_that_fails_on_each_of_five_days_is_disabled(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, other) = (db.endpoint().await?, db.endpoint().await?);
    result(&db, &other, failure()).await?;
    assert_eq!(life(&db, &endpoint).await?, Life::default());
    failed_for_four_days(&db, &endpoint).await?;
    result(&db, &endpoint, failure()).await?;
    let run = life(&db, &endpoint).await?.failing.context("it fails")?;
    assert_eq!(run.disables_at(), run.since + FAILING_MAX);
    assert!(run.last - run.since >= 4 * DAY);
    assert!(db.store.disable_failing(10).await?.is_empty(), "its time is not over");
    age(&db, &endpoint, Duration::from_hours(23)).await?;
    assert!(db.store.disable_failing(10).await?.is_empty(), "an hour is left");

    age(&db, &endpoint, Duration::from_hours(1)).await?;
    assert!(db.store.disable_failing(0).await?.is_empty(), "no more than asked");
    assert_eq!(db.store.disable_failing(10).await?, [endpoint.key]);
    assert!(db.store.disable_failing(10).await?.is_empty(), "once");
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let found = found.context("the endpoint")?;
    assert_eq!(found.disabled, Some(DisabledCause::Failing));
    assert_eq!(found.version, endpoint.version + 1);
    let after = life(&db, &endpoint).await?;
    assert_eq!(after.disabled_at, Some(found.updated_at));
    assert!(after.failing.is_some(), "why it is disabled can be seen");
    db.submit(&endpoint).await?;
    assert!(db.due_endpoints(true).await?.is_empty());

    // An operator enables it: what it did before is forgotten.
    db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(life(&db, &endpoint).await?, Life::default());
    assert!(db.store.disable_failing(10).await?.is_empty());
    db.claim_one(&endpoint).await?;
    Ok(())
}

async fn a_success_ends_the_run_and_a_day_without_a_failure_begins_another(
    db: Fixture,
) -> anyhow::Result<()> {
    let (healed, idle) = (db.endpoint().await?, db.endpoint().await?);
    failed_for_four_days(&db, &healed).await?;
    result(&db, &healed, Verdict::Delivered).await?;
    assert_eq!(life(&db, &healed).await?.failing, None);
    result(&db, &healed, failure()).await?;
    age(&db, &healed, DAY).await?;
    assert!(db.store.disable_failing(10).await?.is_empty());

    failed_for_four_days(&db, &idle).await?;
    let before = life(&db, &idle).await?.failing.context("it fails")?;
    age(&db, &idle, DAY).await?;
    assert_eq!(life(&db, &idle).await?.failing, None, "a day has passed without a failure");
    assert!(db.store.disable_failing(10).await?.is_empty(), "the fifth day had none");
    result(&db, &idle, failure()).await?;
    let anew = life(&db, &idle).await?.failing.context("it fails anew")?;
    assert!(anew.since > before.last && anew.since == anew.last);
    Ok(())
}

async fn what_is_late_unsent_or_repeated_tells_nothing_of_the_endpoint(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let superseded = db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    let owner = db.claim_one(&endpoint).await?;
    assert_eq!(db.record(report(superseded, failure())).await?, Recording::Late(1));
    assert_eq!(life(&db, &endpoint).await?, Life::default(), "a late failure");

    let unsent = Outcome::Unanswered(Failure::Unsendable);
    let unsent = Report { outcome: unsent, ..report(owner, retry(Duration::ZERO)) };
    assert_eq!(db.record(unsent).await?, Recording::Fenced(2));
    assert_eq!(life(&db, &endpoint).await?, Life::default(), "nothing was sent");

    let failed = report(db.claim_one(&endpoint).await?, retry(Duration::ZERO));
    assert_eq!(db.record(failed.clone()).await?, Recording::Fenced(3));
    let run = life(&db, &endpoint).await?.failing.context("it fails")?;
    assert_eq!(db.record(failed).await?, Recording::Repeated(3));
    assert_eq!(life(&db, &endpoint).await?.failing, Some(run));

    let superseded = db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    db.claim_one(&endpoint).await?;
    assert_eq!(db.record(report(superseded, Verdict::Delivered)).await?, Recording::Late(4));
    assert_eq!(life(&db, &endpoint).await?.failing, Some(run), "a late success");
    Ok(())
}

async fn claims(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<[HeldClaim; 2]> {
    let mut claims = Vec::new();
    for _ in 0..2 {
        db.submit(endpoint).await?;
        claims.push(db.claim_one(endpoint).await?);
    }
    claims.try_into().map_err(|_| anyhow::anyhow!("two claims"))
}

async fn what_was_sent_to_another_url_or_before_it_was_enabled_tells_nothing(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    result(&db, &endpoint, failure()).await?;
    let [old, new] = claims(&db, &endpoint).await?;
    let url = DestinationUrl::parse("https://new.example.com/", &AddressPolicy::default())?;
    let url = Some(NewUrl { url, secret: SigningSecret::from_slice(&[8; 24])? });
    let change = EndpointChange { url, ..EndpointChange::default() };
    let updated = db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    let EndpointUpdate::Updated { endpoint: moved, .. } = updated else { bail!("{updated:?}") };
    assert_eq!(life(&db, &endpoint).await?, Life::default(), "it has another URL");
    db.record(Report { version: endpoint.version, ..report(old, failure()) }).await?;
    assert_eq!(life(&db, &endpoint).await?, Life::default(), "that was the old one");
    db.record(Report { version: moved.version, ..report(new, failure()) }).await?;
    assert!(life(&db, &endpoint).await?.failing.is_some());

    // A change of anything else forgets nothing.
    let change = EndpointChange { name: Some(None), ..EndpointChange::default() };
    db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    assert!(life(&db, &endpoint).await?.failing.is_some());

    let [old, new] = claims(&db, &endpoint).await?;
    let enabled = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let version = enabled.context("the endpoint")?.version;
    db.record(Report { version: version - 1, ..report(old, failure()) }).await?;
    assert_eq!(life(&db, &endpoint).await?, Life::default());
    db.record(Report { version, ..report(new, failure()) }).await?;
    assert!(life(&db, &endpoint).await?.failing.is_some());

    for enabled in [false, true] {
        let change = EndpointChange { enabled: Some(enabled), ..EndpointChange::default() };
        db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
        let now = life(&db, &endpoint).await?;
        assert_eq!((now.failing.is_none(), now.disabled_at.is_none()), (enabled, enabled));
    }
    Ok(())
}

async fn of_two_leaders_at_once_one_disables_an_endpoint(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    failed_for_four_days(&db, &endpoint).await?;
    result(&db, &endpoint, failure()).await?;
    age(&db, &endpoint, DAY).await?;
    let leaders = [db.another_store().await?, db.another_store().await?];
    let disabled =
        race(leaders, |_, store| async move { Ok(store.disable_failing(10).await?) }).await?;
    let disabled: Vec<_> = disabled.into_iter().flatten().collect();
    assert_eq!(disabled, [endpoint.key]);
    Ok(())
}
