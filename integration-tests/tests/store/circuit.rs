//! The circuit breaker of an endpoint, where several workers meet it.

mod opening;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{Failure, Outcome, Verdict};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::SettingsChange;
use domain::endpoint::circuit::{Circuit, IN_A_ROW_MAX, OPEN_FIRST, OpenCause, Opening};
use domain::signing::SigningSecret;
use integration_tests::race::race;
use store::Store;
use store::delivery::{ClaimRequest, HeldClaim, Recording, Report, Standing};
use store::endpoint::{Endpoint, EndpointChange, NewUrl};
use store::life::Life;

use crate::fixture::{Fixture, WORKER, report, retry};

on_both_stores! {
    of_many_workers_one_sends_the_probe,
    a_probe_that_succeeds_closes_it_and_one_that_fails_opens_it_for_longer,
    what_was_sent_before_it_opened_neither_closes_nor_prolongs_it,
    a_probe_whose_worker_dies_is_followed_by_another_and_decides_nothing_then,
    a_probe_that_could_not_be_sent_opens_it_for_no_longer_than_before,
    a_claim_that_sends_nothing_is_no_probe,
    a_probe_that_is_given_back_leaves_room_for_another_at_once,
    only_one_is_sent_where_many_have_lapsed,
    an_operator_closes_it_and_another_url_does,
    where_it_is_switched_off_it_never_opens,
    an_endpoint_behind_an_open_circuit_holds_up_no_other,
}

const NOW: Duration = Duration::ZERO;
/// A failure, whose delivery is not due again in the test.
const LATER: Verdict = Verdict::Retry { after: Duration::from_hours(1) };

async fn life(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Life> {
    let lives = db.store.read_lives(&[endpoint.key]).await?;
    lives.first().copied().context("an answer")
}

async fn opening(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Opening> {
    match life(db, endpoint).await?.circuit {
        Circuit::Open(opening) => Ok(opening),
        Circuit::Closed(counts) => bail!("it is closed: {counts:?}"),
    }
}

async fn is_closed(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<bool> {
    Ok(matches!(life(db, endpoint).await?.circuit, Circuit::Closed(_)))
}

async fn submit(db: &Fixture, endpoint: &Endpoint, count: u32) -> anyhow::Result<()> {
    for _ in 0..count {
        db.submit(endpoint).await?;
    }
    Ok(())
}

async fn claim(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Vec<HeldClaim>> {
    claim_by(db.store.as_ref(), endpoint).await
}

/// As many as there are.
async fn claim_by(store: &dyn Store, endpoint: &Endpoint) -> anyhow::Result<Vec<HeldClaim>> {
    let token = store::new_id::claim_token();
    let request = ClaimRequest {
        endpoints: &[endpoint.key],
        per_endpoint: 100,
        total: 1_000,
        worker: WORKER,
        token,
        sweep: true,
    };
    let batch = store.claim_due(&request).await?;
    let held = batch.claimed.iter().map(|it| HeldClaim {
        endpoint: endpoint.key,
        delivery: it.delivery,
        token,
    });
    Ok(held.collect())
}

async fn record(db: &Fixture, claims: &[HeldClaim], verdict: Verdict) -> anyhow::Result<()> {
    let reports: Vec<Report> = claims.iter().map(|claim| report(*claim, verdict)).collect();
    let recordings = db.store.record_attempts(&reports).await?;
    ensure!(recordings.iter().all(|it| matches!(it, Recording::Fenced(_))), "{recordings:?}");
    Ok(())
}

/// So many are sent, and this comes of them.
async fn results(
    db: &Fixture,
    endpoint: &Endpoint,
    count: u32,
    verdict: Verdict,
) -> anyhow::Result<()> {
    submit(db, endpoint, count).await?;
    let claims = claim(db, endpoint).await?;
    ensure!(claims.len() == usize::try_from(count)?, "{claims:?}");
    record(db, &claims, verdict).await
}

/// Opens the circuit with so many deliveries due behind it.
async fn open(db: &Fixture, endpoint: &Endpoint, due: u32) -> anyhow::Result<()> {
    results(db, endpoint, IN_A_ROW_MAX, LATER).await?;
    opening(db, endpoint).await?;
    submit(db, endpoint, due).await
}

/// The time is over for which it is open.
async fn end_opening(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
    db.age_schedule("circuit_until", endpoint, Duration::from_hours(1)).await
}

async fn of_many_workers_one_sends_the_probe(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 20).await?;
    for _ in 0..5 {
        end_opening(&db, &endpoint).await?;
        assert!(life(&db, &endpoint).await?.half_open);
        assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
        let (store, of) = (Arc::clone(&db.store), endpoint.clone());
        let taken = race(0..6, move |_, _| {
            let (store, of) = (Arc::clone(&store), of.clone());
            async move { claim_by(store.as_ref(), &of).await }
        })
        .await?;
        let probes: Vec<HeldClaim> = taken.into_iter().flatten().collect();
        assert_eq!(probes.len(), 1, "{probes:?}");
        assert_eq!(opening(&db, &endpoint).await?.probe, Some(probes[0].token));
        assert!(life(&db, &endpoint).await?.half_open, "its probe is out");
        assert!(db.due_endpoints(true).await?.is_empty());
        record(&db, &probes, retry(Duration::from_hours(1))).await?;
    }
    Ok(())
}

async fn a_probe_that_succeeds_closes_it_and_one_that_fails_opens_it_for_longer(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 20).await?;
    let since = opening(&db, &endpoint).await?.since;
    for (times, seconds) in [(2, 60), (3, 120), (4, 240), (5, 480), (6, 600), (7, 600)] {
        end_opening(&db, &endpoint).await?;
        let probe = claim(&db, &endpoint).await?;
        assert_eq!(probe.len(), 1);
        let before = std::time::Instant::now();
        record(&db, &probe, retry(Duration::from_hours(1))).await?;
        let again = opening(&db, &endpoint).await?;
        assert_eq!((again.times, again.since, again.probe), (times, since, None));
        // From when it was recorded: the row knows no other instant than that of its delivery.
        let due = db.row(probe[0].delivery).await?.due_at.context("it is due")?;
        let until = i64::try_from(again.until.unix_timestamp_nanos() / 1_000)?;
        assert_eq!(due - until, (3_600 - seconds) * 1_000_000, "{:?}", before.elapsed());
    }
    end_opening(&db, &endpoint).await?;
    let probe = claim(&db, &endpoint).await?;
    record(&db, &probe, Verdict::Delivered).await?;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default());
    assert_eq!(claim(&db, &endpoint).await?.len(), 13, "all that are left go out");
    Ok(())
}

async fn what_was_sent_before_it_opened_neither_closes_nor_prolongs_it(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 14).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..10], retry(Duration::from_hours(1))).await?;
    let opened = opening(&db, &endpoint).await?;
    record(&db, &claims[10..11], Verdict::Delivered).await?;
    record(&db, &claims[11..12], retry(Duration::from_hours(1))).await?;
    assert_eq!(opening(&db, &endpoint).await?, opened);

    end_opening(&db, &endpoint).await?;
    submit(&db, &endpoint, 1).await?;
    let probe = claim(&db, &endpoint).await?;
    let probing = opening(&db, &endpoint).await?;
    record(&db, &claims[12..13], retry(Duration::from_hours(1))).await?;
    assert_eq!(opening(&db, &endpoint).await?, probing, "the probe is still out");
    // Recorded together, the probe decides.
    let mixed =
        [report(claims[13], retry(Duration::from_hours(1))), report(probe[0], Verdict::Delivered)];
    db.store.record_attempts(&mixed).await?;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default());
    Ok(())
}

async fn a_probe_whose_worker_dies_is_followed_by_another_and_decides_nothing_then(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 1).await?;
    end_opening(&db, &endpoint).await?;
    let dead = claim(&db, &endpoint).await?;
    assert!(claim(&db, &endpoint).await?.is_empty(), "its lease lives");
    db.end_lease(dead[0].delivery).await?;
    assert!(claim(&db, &endpoint).await?.is_empty(), "the circuit is open as long");
    end_opening(&db, &endpoint).await?;
    let next = claim(&db, &endpoint).await?;
    assert_eq!(next[0].delivery, dead[0].delivery, "what has lapsed is sent again first");
    let before = opening(&db, &endpoint).await?;
    assert_eq!(before.probe, Some(next[0].token));
    // The dead one was only slow: its result is late.
    for verdict in [Verdict::Delivered, retry(NOW)] {
        let recording = db.record(report(dead[0], verdict)).await?;
        assert!(matches!(recording, Recording::Late(_) | Recording::Repeated(_)), "{recording:?}");
        assert_eq!(opening(&db, &endpoint).await?, before);
    }
    record(&db, &next, Verdict::Delivered).await?;
    assert!(is_closed(&db, &endpoint).await?);
    Ok(())
}

async fn a_probe_that_could_not_be_sent_opens_it_for_no_longer_than_before(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 1).await?;
    end_opening(&db, &endpoint).await?;
    let probe = claim(&db, &endpoint).await?;
    let unsent = Outcome::Unanswered(Failure::Unsendable);
    db.record(Report { outcome: unsent, ..report(probe[0], LATER) }).await?;
    let again = opening(&db, &endpoint).await?;
    assert_eq!((again.times, again.probe), (1, None));
    let due = db.row(probe[0].delivery).await?.due_at.context("it is due")?;
    let until = i64::try_from(again.until.unix_timestamp_nanos() / 1_000)?;
    assert_eq!(due - until, (3_600 - 30) * 1_000_000);
    Ok(())
}

/// What has lapsed twice in a row is parked: the circuit stays half-open for what is due next.
async fn a_claim_that_sends_nothing_is_no_probe(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 11).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..10], LATER).await?;
    let lapsing = claims[10].delivery;
    db.run(
        "update {}deliveries set lapses = 1, lapse_since = claim_expires_at where id = $1",
        lapsing.as_uuid(),
    )
    .await?;
    db.end_lease(lapsing).await?;
    end_opening(&db, &endpoint).await?;
    let before = opening(&db, &endpoint).await?;
    assert!(claim(&db, &endpoint).await?.is_empty());
    assert_eq!(db.row(lapsing).await?.state, 1, "it is parked");
    assert_eq!(opening(&db, &endpoint).await?, before);
    submit(&db, &endpoint, 1).await?;
    assert_eq!(claim(&db, &endpoint).await?.len(), 1);
    Ok(())
}

async fn a_probe_that_is_given_back_leaves_room_for_another_at_once(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 12).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..10], retry(Duration::from_hours(1))).await?;
    end_opening(&db, &endpoint).await?;
    submit(&db, &endpoint, 2).await?;
    let probe = claim(&db, &endpoint).await?;
    db.store.give_back(&claims[10..]).await?;
    assert!(claim(&db, &endpoint).await?.is_empty(), "those were no probe");
    db.store.give_back(&probe).await?;
    assert_eq!(opening(&db, &endpoint).await?.probe, None);
    assert_eq!(claim(&db, &endpoint).await?.len(), 1);
    Ok(())
}

async fn only_one_is_sent_where_many_have_lapsed(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 14).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..10], retry(Duration::from_hours(1))).await?;
    for lapsed in &claims[10..] {
        db.end_lease(lapsed.delivery).await?;
    }
    submit(&db, &endpoint, 3).await?;
    assert!(claim(&db, &endpoint).await?.is_empty());
    end_opening(&db, &endpoint).await?;
    let probe = claim(&db, &endpoint).await?;
    assert_eq!(probe.len(), 1);
    record(&db, &probe, Verdict::Delivered).await?;
    assert_eq!(claim(&db, &endpoint).await?.len(), 6, "three lapsed and three that are due");
    Ok(())
}

async fn an_operator_closes_it_and_another_url_does(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 12).await?;
    end_opening(&db, &endpoint).await?;
    let probe = claim(&db, &endpoint).await?;
    let enabled = db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let version = enabled.context("the endpoint")?.version;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default());
    record(&db, &probe, retry(Duration::from_hours(1))).await?;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default(), "that was before");

    let claims = claim(&db, &endpoint).await?;
    let failed = |claim: &HeldClaim| Report { version, ..report(*claim, retry(NOW)) };
    let reports: Vec<Report> = claims.iter().map(failed).collect();
    db.store.record_attempts(&reports).await?;
    opening(&db, &endpoint).await?;
    let url = DestinationUrl::parse("https://new.example.com/", &AddressPolicy::default())?;
    let url = Some(NewUrl { url, secret: SigningSecret::from_slice(&[8; 24])? });
    let change = EndpointChange { url, ..EndpointChange::default() };
    db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default());
    assert_eq!(claim(&db, &endpoint).await?.len(), 11);
    Ok(())
}

async fn where_it_is_switched_off_it_never_opens(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint_with(|settings| settings.circuit_breaker = false).await?;
    submit(&db, &endpoint, 30).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims, retry(NOW)).await?;
    assert_eq!(life(&db, &endpoint).await?.circuit, Circuit::default());
    assert!(life(&db, &endpoint).await?.failing.is_some(), "that is another matter");

    // Switching it off closes one that is open.
    let endpoint = db.endpoint().await?;
    open(&db, &endpoint, 3).await?;
    let settings = SettingsChange { circuit_breaker: Some(false), ..SettingsChange::default() };
    let change = EndpointChange { settings, ..EndpointChange::default() };
    db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    assert_eq!(claim(&db, &endpoint).await?.len(), 3);
    Ok(())
}

async fn an_endpoint_behind_an_open_circuit_holds_up_no_other(db: Fixture) -> anyhow::Result<()> {
    let (failing, other) = (db.endpoint().await?, db.endpoint().await?);
    open(&db, &failing, 50).await?;
    submit(&db, &other, 3).await?;
    assert_eq!(db.due_endpoints(true).await?, [other.key]);
    let (_, batch) = db.claim(&[&failing, &other], 10).await?;
    assert_eq!(batch.claimed.len(), 3);
    assert!(batch.claimed.iter().all(|it| it.endpoint == other.key));
    Ok(())
}
