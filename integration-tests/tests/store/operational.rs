//! Events about the service: each is there if and only if what it tells of is.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{FailureReason, Verdict};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::DisabledCause;
use domain::endpoint::circuit::OpenCause;
use domain::id::DeliveryId;
use domain::operational::What;
use domain::signing::{Overlap, SigningSecret};
use store::delivery::{HeldClaim, Report};
use store::endpoint::{Endpoint, EndpointChange, NewUrl};
use store::secret::{NewRotation, Rotation};

use crate::fixture::{Fixture, failure, report, retry};

on_both_stores! {
    every_way_to_be_disabled_is_told_with_its_cause,
    a_circuit_that_opens_and_closes_is_told_once_each,
    a_delivery_that_fails_for_good_is_told_whatever_failed_it,
    a_new_secret_is_told,
    nothing_is_told_where_nobody_listens_nor_about_the_one_who_does,
    an_event_stays_until_it_is_taken_away,
}

/// An endpoint that somebody else's events go to.
async fn operator(db: &Fixture) -> anyhow::Result<Endpoint> {
    let operator = db.endpoint().await?;
    let named = db.store.set_operational_endpoint(operator.key).await?.context("it is named")?;
    assert_eq!(
        (named.key, named.id.as_str(), &*named.application),
        (operator.key, operator.id.as_str(), "default")
    );
    assert_eq!(db.store.read_operational_endpoint().await?, Some(named));
    Ok(operator)
}

/// What is told of the endpoint, in order, and taken away.
async fn told(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Vec<What>> {
    let events = db.store.read_events(100).await?;
    for stored in &events {
        assert_eq!((stored.about, &*stored.event.endpoint), (endpoint.key, endpoint.id.as_str()));
        assert_eq!(stored.event.application, "default");
    }
    let ids: Vec<_> = events.iter().map(|stored| stored.id).collect();
    db.store.forget_events(&ids).await?;
    Ok(events.into_iter().map(|stored| stored.event.what).collect())
}

fn enabled(enabled: bool) -> EndpointChange {
    EndpointChange { enabled: Some(enabled), ..EndpointChange::default() }
}

/// A failure now, and a run of them that began six days ago.
async fn fails_for_days(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
    let now = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let version = now.context("the endpoint")?.version;
    db.submit(endpoint).await?;
    let claim = db.claim_one(endpoint).await?;
    db.record(Report { version, ..report(claim, retry(Duration::ZERO)) }).await?;
    db.age_schedule("failing_since", endpoint, Duration::from_hours(24 * 6)).await
}

async fn every_way_to_be_disabled_is_told_with_its_cause(db: Fixture) -> anyhow::Result<()> {
    operator(&db).await?;
    let endpoint = db.endpoint().await?;
    let disabled = |cause| vec![What::EndpointDisabled(cause)];
    for _ in 0..2 {
        let change = enabled(false);
        db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    }
    assert_eq!(told(&db, &endpoint).await?, disabled(DisabledCause::Operator), "once");
    let now = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let version = now.context("the endpoint")?.version;
    let gone = DisabledCause::Gone;
    assert!(!db.store.disable_endpoint(endpoint.key, version - 1, gone).await?);
    assert!(told(&db, &endpoint).await?.is_empty(), "it was not disabled");
    assert!(db.store.disable_endpoint(endpoint.key, version, gone).await?);
    assert_eq!(told(&db, &endpoint).await?, disabled(gone));

    db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    fails_for_days(&db, &endpoint).await?;
    assert_eq!(db.store.disable_failing(10).await?, [endpoint.key]);
    assert_eq!(told(&db, &endpoint).await?, disabled(DisabledCause::Failing));
    Ok(())
}

async fn claims(db: &Fixture, endpoint: &Endpoint, count: u32) -> anyhow::Result<Vec<HeldClaim>> {
    for _ in 0..count {
        db.submit(endpoint).await?;
    }
    let (token, batch) = db.claim(&[endpoint], count).await?;
    let held = batch.claimed.iter().map(|it| HeldClaim {
        endpoint: endpoint.key,
        delivery: it.delivery,
        token,
    });
    Ok(held.collect())
}

/// A delivery lapses for the tenth time.
async fn abandon(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<DeliveryId> {
    let lapsing = claims(db, endpoint, 1).await?[0].delivery;
    db.run(
        "update {}deliveries set lapses = 9, lapse_since = claim_expires_at where id = $1",
        lapsing.as_uuid(),
    )
    .await?;
    db.age_lapses(lapsing).await?;
    db.end_lease(lapsing).await?;
    db.claim(&[endpoint], 1).await?;
    ensure!(db.row(lapsing).await?.state == 3, "it is not abandoned");
    Ok(lapsing)
}

async fn a_circuit_that_opens_and_closes_is_told_once_each(db: Fixture) -> anyhow::Result<()> {
    operator(&db).await?;
    let endpoint = db.endpoint().await?;
    let later = Duration::from_hours(1);
    let held = claims(&db, &endpoint, 12).await?;
    let reports: Vec<_> = held[..11].iter().map(|it| report(*it, retry(later))).collect();
    db.store.record_attempts(&reports).await?;
    db.record(report(held[11], retry(later))).await?;
    assert_eq!(told(&db, &endpoint).await?, [What::EndpointFailing(OpenCause::InARow)]);
    for (verdict, expected) in
        [(retry(later), vec![]), (Verdict::Delivered, vec![What::EndpointRecovered])]
    {
        db.age_schedule("circuit_until", &endpoint, later).await?;
        let probe = claims(&db, &endpoint, 1).await?;
        db.record(report(probe[0], verdict)).await?;
        assert_eq!(told(&db, &endpoint).await?, expected);
    }
    Ok(())
}

async fn a_delivery_that_fails_for_good_is_told_whatever_failed_it(
    db: Fixture,
) -> anyhow::Result<()> {
    operator(&db).await?;
    let endpoint = db.endpoint().await?;
    let failed = async |reason| {
        let told = told(&db, &endpoint).await?;
        let [What::DeliveryFailed { delivery, submission, reason: why }] = told.as_slice() else {
            bail!("{told:?}")
        };
        assert_eq!(*why, reason);
        let detail = db.detail(*delivery).await?;
        assert_eq!(detail.delivery.submission, *submission);
        Ok(*delivery)
    };
    let claim = claims(&db, &endpoint, 1).await?[0];
    db.record(report(claim, failure())).await?;
    assert_eq!(failed(FailureReason::AttemptsExhausted).await?, claim.delivery);
    db.record(report(claim, failure())).await?;
    assert!(told(&db, &endpoint).await?.is_empty(), "the same report again");

    let superseded = claims(&db, &endpoint, 1).await?[0];
    db.end_lease(superseded.delivery).await?;
    let owner = db.claim_one(&endpoint).await?;
    db.record(report(owner, failure())).await?;
    assert_eq!(failed(FailureReason::AttemptsExhausted).await?, superseded.delivery);
    db.record(report(superseded, failure())).await?;
    assert!(told(&db, &endpoint).await?.is_empty(), "a late report of a failed delivery");

    let held = db.submit(&endpoint).await?;
    db.make_due(held).await?;
    db.pause(&endpoint, true).await?;
    assert_eq!(db.store.fail_held(10).await?, 1);
    assert_eq!(failed(FailureReason::HeldTooLong).await?, held);
    db.pause(&endpoint, false).await?;

    let parked = claims(&db, &endpoint, 1).await?[0].delivery;
    db.run(
        "update {}deliveries set lapses = 1, lapse_since = claim_expires_at where id = $1",
        parked.as_uuid(),
    )
    .await?;
    db.end_lease(parked).await?;
    db.claim(&[&endpoint], 1).await?;
    assert_eq!(db.row(parked).await?.state, 1, "it is parked");
    assert!(told(&db, &endpoint).await?.is_empty(), "it is tried again");

    let abandoned = abandon(&db, &endpoint).await?;
    assert_eq!(failed(FailureReason::Abandoned).await?, abandoned);
    Ok(())
}

async fn rotate(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
    let rotation = NewRotation {
        endpoint: endpoint.key,
        secret: SigningSecret::from_slice(&[9; 24])?,
        ed25519: store::secret::generate_ed25519()?,
        given: None,
        overlap: Overlap::new(Duration::from_hours(1))?,
    };
    let rotated = db.store.rotate_secrets(&rotation).await?;
    ensure!(matches!(rotated, Rotation::Rotated(_)), "{rotated:?}");
    Ok(())
}

async fn a_new_secret_is_told(db: Fixture) -> anyhow::Result<()> {
    operator(&db).await?;
    let endpoint = db.endpoint().await?;
    rotate(&db, &endpoint).await?;
    assert_eq!(told(&db, &endpoint).await?, [What::SecretRotated]);
    let url = DestinationUrl::parse("https://new.example.com/", &AddressPolicy::default())?;
    let url = Some(NewUrl { url, secret: SigningSecret::from_slice(&[8; 24])? });
    let change = EndpointChange { url, ..EndpointChange::default() };
    for expected in [vec![What::SecretRotated], vec![]] {
        db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
        assert_eq!(told(&db, &endpoint).await?, expected, "an equal URL mints none");
    }
    Ok(())
}

async fn nothing_is_told_where_nobody_listens_nor_about_the_one_who_does(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.failed(&endpoint).await?;
    assert!(db.store.read_events(10).await?.is_empty(), "nobody listens");
    let operator = operator(&db).await?;
    db.failed(&operator).await?;
    abandon(&db, &operator).await?;
    let change = enabled(false);
    db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &operator.id, &change).await?;
    assert!(db.store.read_events(10).await?.is_empty(), "it would be told of itself");
    rotate(&db, &operator).await?;
    let held = db.submit(&operator).await?;
    db.make_due(held).await?;
    assert_eq!(db.store.fail_held(10).await?, 1);
    let enabled = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &operator.id).await?;
    let version = enabled.context("the endpoint")?.version;
    assert!(db.store.disable_endpoint(operator.key, version, DisabledCause::Gone).await?);
    db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &operator.id).await?;
    fails_for_days(&db, &operator).await?;
    assert_eq!(db.store.disable_failing(10).await?, [operator.key]);
    assert!(db.store.read_events(10).await?.is_empty(), "nor by any other way");
    db.failed(&endpoint).await?;
    assert_eq!(told(&db, &endpoint).await?.len(), 1);

    let gone = db.endpoint().await?;
    db.delete(&gone).await?;
    assert_eq!(db.store.set_operational_endpoint(gone.key).await?, None, "that one is deleted");
    assert!(db.store.read_operational_endpoint().await?.is_some(), "and nothing has changed");
    db.delete(&operator).await?;
    assert_eq!(db.store.read_operational_endpoint().await?, None, "it is deleted");
    db.store.clear_operational_endpoint().await?;
    db.failed(&endpoint).await?;
    assert!(db.store.read_events(10).await?.is_empty(), "nobody listens any more");
    Ok(())
}

async fn an_event_stays_until_it_is_taken_away(db: Fixture) -> anyhow::Result<()> {
    operator(&db).await?;
    let endpoint = db.endpoint().await?;
    for _ in 0..3 {
        db.failed(&endpoint).await?;
    }
    let first = db.store.read_events(2).await?;
    assert_eq!((first.len(), first), (2, db.store.read_events(2).await?));
    let ids: Vec<_> = db.store.read_events(2).await?.iter().map(|it| it.id).collect();
    assert_eq!(db.store.forget_events(&ids).await?, 2);
    assert_eq!(db.store.forget_events(&ids).await?, 0, "once");
    assert_eq!(db.store.read_events(2).await?.len(), 1);
    Ok(())
}
