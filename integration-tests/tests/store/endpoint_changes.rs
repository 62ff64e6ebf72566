//! Changing, pausing, enabling and deleting endpoints (G7).

mod closed;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::lease::lease_for;
use domain::destination::{AddressPolicy, DestinationUrl, OnlyNetworks};
use domain::endpoint::{
    CaCertificates, CustomHeaders, DisabledCause, EndpointName, EventPatterns, SettingsChange,
    SigningSchemes,
};
use domain::id::ApplicationKey;
use domain::rate_limit::RateLimit;
use domain::signing::SigningSecret;
use integration_tests::race::race;
use store::delivery::Standing;
use store::endpoint::{Endpoint, EndpointChange, EndpointCreation, EndpointUpdate, NewUrl, Pause};
use store::submission::Acceptance;

use crate::fixture::{Fixture, URL, new_endpoint, submission};

on_both_stores! {
    every_field_is_stored_and_a_change_leaves_what_it_does_not_name,
    another_url_ends_all_secrets_and_an_equal_one_changes_none,
    of_many_operators_each_is_told_what_was_stored_and_one_secret_is_left,
    operators_who_change_different_fields_lose_nothing,
    settings_are_held_to_their_limits_together_with_what_is_stored_meanwhile,
    a_lease_and_a_cap_follow_the_settings_at_the_next_claim,
    a_cap_below_what_is_in_flight_lets_nothing_more_be_claimed,
    of_many_that_delete_one_endpoint_one_does_and_nothing_names_it_after,
    headers_are_sealed_and_read_by_workers_alone,
}

/// A certificate that may vouch for a receiver.
const CA: &str = include_str!("../../../crates/domain/tests/ca_certificate.pem");

fn url(text: &str, fill: u8) -> anyhow::Result<NewUrl> {
    let url = DestinationUrl::parse(text, &AddressPolicy::default())?;
    Ok(NewUrl { url, secret: SigningSecret::from_slice(&[fill; 24])? })
}

fn settings(change: impl FnOnce(&mut SettingsChange)) -> EndpointChange {
    let mut settings = SettingsChange::default();
    change(&mut settings);
    EndpointChange { settings, ..EndpointChange::default() }
}

async fn update(
    db: &Fixture,
    endpoint: &Endpoint,
    change: &EndpointChange,
) -> anyhow::Result<(Endpoint, bool)> {
    match db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, change).await? {
        EndpointUpdate::Updated { endpoint, minted } => Ok((endpoint, minted)),
        other => bail!("not updated: {other:?}"),
    }
}

async fn found(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Endpoint> {
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    found.context("the endpoint is not found")
}

/// The first byte of each live secret, newest first.
async fn secrets(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Vec<u8>> {
    let targets = db.store.read_targets(&[endpoint.key]).await?;
    let secrets = targets.first().context("no target")?.secrets.clone();
    let secrets = secrets.map_err(|why| anyhow::anyhow!(why))?;
    Ok(secrets.iter().filter_map(|secret| secret.expose_bytes().first().copied()).collect())
}

fn headers(pairs: &[(&str, &str)]) -> anyhow::Result<CustomHeaders> {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned().into());
    Ok(CustomHeaders::parse(pairs.iter().map(own))?)
}

async fn every_field_is_stored_and_a_change_leaves_what_it_does_not_name(
    db: Fixture,
) -> anyhow::Result<()> {
    let created = db.endpoint().await?;
    let change = EndpointChange {
        url: None,
        name: Some(Some(EndpointName::parse("Orders")?)),
        event_types: Some(Some(EventPatterns::parse(vec!["user.*".to_owned()])?)),
        headers: Some(headers(&[("X-Key", "1"), ("x-other", "2")])?),
        enabled: Some(false),
        settings: SettingsChange {
            deadline: Some(Duration::from_millis(20_001)),
            connect_deadline: Some(Duration::from_secs(6)),
            retry_schedule: None,
            overload_floor: Some(Duration::ZERO),
            final_statuses: Some(vec![404]),
            in_flight_max: Some(1_000),
            delivery_rate: Some(Some(RateLimit::new(7, Duration::from_secs(1))?)),
            ingest_rate: Some(RateLimit::new(8, Duration::from_secs(2))?),
            signing: Some(SigningSchemes::Both),
            public_ingest: Some(true),
            only_networks: Some(Some(OnlyNetworks::parse(&["203.0.113.0/24", "fd00::/8"])?)),
            ca_certificates: Some(Some(CaCertificates::parse(CA)?)),
            circuit_breaker: Some(false),
        },
    };
    let (changed, minted) = update(&db, &created, &change).await?;
    assert!(!minted);
    assert_eq!(found(&db, &created).await?, changed);
    assert_eq!((changed.version, changed.disabled), (2, Some(DisabledCause::Operator)));
    assert_eq!(changed.headers, Ok(vec!["x-key".to_owned(), "x-other".to_owned()]));
    assert_eq!(changed.settings, change.settings.clone().apply(&created.settings)?);
    assert_eq!((changed.name.as_deref(), &*changed.url), (Some("Orders"), URL));
    assert_eq!(changed.event_types.as_deref(), Some(&["user.*".to_owned()][..]));
    let listed =
        db.store.list_endpoints(DEFAULT_APPLICATION_KEY, store::Page { limit: 9, before: None });
    assert_eq!(listed.await?, std::slice::from_ref(&changed));

    let targets = db.store.read_targets(&[created.key]).await?;
    assert_eq!(targets.first().map(|target| &target.settings), Some(&changed.settings));

    let (same, _) = update(&db, &created, &EndpointChange::default()).await?;
    assert_eq!(same, changed, "nothing was asked for");
    let cleared = EndpointChange {
        name: Some(None),
        event_types: Some(None),
        headers: Some(CustomHeaders::default()),
        enabled: Some(true),
        ..settings(|settings| {
            settings.delivery_rate = Some(None);
            settings.only_networks = Some(None);
            settings.ca_certificates = Some(None);
        })
    };
    let (cleared, _) = update(&db, &created, &cleared).await?;
    assert_eq!((cleared.version, cleared.disabled), (3, None));
    assert_eq!((&cleared.name, &cleared.event_types), (&None, &None));
    assert_eq!((cleared.headers, cleared.settings.delivery_rate()), (Ok(Vec::new()), None));
    assert_eq!(cleared.settings.only_networks(), None);
    assert_eq!(cleared.settings.ca_certificates(), None);
    assert_eq!(cleared.settings.ingest_rate(), changed.settings.ingest_rate());
    Ok(())
}

async fn another_url_ends_all_secrets_and_an_equal_one_changes_none(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let equal = EndpointChange { url: Some(url(URL, 1)?), ..EndpointChange::default() };
    assert!(!update(&db, &endpoint, &equal).await?.1);
    assert_eq!(secrets(&db, &endpoint).await?, [7]);
    let other = "https://other.example.com/hook";
    let change = EndpointChange { url: Some(url(other, 2)?), ..EndpointChange::default() };
    let (changed, minted) = update(&db, &endpoint, &change).await?;
    assert_eq!((changed.url.as_str(), minted), (other, true));
    assert_eq!(secrets(&db, &endpoint).await?, [2], "the old one ended at once");
    assert!(!update(&db, &endpoint, &change).await?.1, "it is the same URL by now");
    assert_eq!(db.store.read_targets(&[endpoint.key]).await?[0].url, other);
    Ok(())
}

async fn of_many_operators_each_is_told_what_was_stored_and_one_secret_is_left(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let store = Arc::clone(&db.store);
    let id = endpoint.id.clone();
    let answers = race(10..22_u8, move |_, fill| {
        let (store, id) = (Arc::clone(&store), id.clone());
        async move {
            let text = format!("https://r{fill}.example.com/hook");
            let change = EndpointChange {
                url: Some(url(&text, fill)?),
                ..settings(|settings| settings.in_flight_max = Some(fill.into()))
            };
            match store.update_endpoint(DEFAULT_APPLICATION_KEY, &id, &change).await? {
                EndpointUpdate::Updated { endpoint, minted } => Ok((fill, endpoint, minted)),
                other => bail!("{other:?}"),
            }
        }
    })
    .await?;
    let last = found(&db, &endpoint).await?;
    let mut versions: Vec<i64> = answers.iter().map(|(_, told, _)| told.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..14).collect::<Vec<_>>(), "each change had a version of its own");
    for (fill, told, minted) in &answers {
        // Each was told its own change, whole.
        ensure!(*minted && told.url == format!("https://r{fill}.example.com/hook"));
        ensure!(told.settings.in_flight_max() == u16::from(*fill));
        if told.version == last.version {
            assert_eq!(told, &last);
            assert_eq!(secrets(&db, &endpoint).await?, [*fill], "the last secret and no other");
        }
    }
    let count = db.count("endpoint_secrets").await?;
    assert_eq!(count, 13 + 1, "each secret that was told was stored, and one Ed25519 key");
    Ok(())
}

async fn operators_who_change_different_fields_lose_nothing(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let changes = vec![
        EndpointChange { url: Some(url("https://x.example.com/", 1)?), ..Default::default() },
        EndpointChange { name: Some(Some(EndpointName::parse("n")?)), ..Default::default() },
        EndpointChange { headers: Some(headers(&[("x", "1")])?), ..Default::default() },
        EndpointChange { enabled: Some(false), ..Default::default() },
        settings(|settings| settings.in_flight_max = Some(9)),
        settings(|settings| settings.public_ingest = Some(true)),
        settings(|settings| settings.final_statuses = Some(vec![404])),
        settings(|settings| settings.overload_floor = Some(Duration::ZERO)),
    ];
    let store = Arc::clone(&db.store);
    let id = endpoint.id.clone();
    race(changes, move |_, change| {
        let (store, id) = (Arc::clone(&store), id.clone());
        async move { Ok(store.update_endpoint(DEFAULT_APPLICATION_KEY, &id, &change).await?) }
    })
    .await?;
    let after = found(&db, &endpoint).await?;
    assert_eq!((after.version, after.disabled), (9, Some(DisabledCause::Operator)));
    assert_eq!((after.name.as_deref(), &*after.url), (Some("n"), "https://x.example.com/"));
    assert_eq!(after.headers, Ok(vec!["x".to_owned()]));
    assert_eq!((after.settings.in_flight_max(), after.settings.public_ingest()), (9, true));
    assert_eq!(after.settings.final_statuses(), [404]);
    assert_eq!(after.settings.overload_floor(), Duration::ZERO);
    Ok(())
}

async fn settings_are_held_to_their_limits_together_with_what_is_stored_meanwhile(
    db: Fixture,
) -> anyhow::Result<()> {
    // Each is within the limits beside what is stored now, both together are not.
    for _ in 0..8 {
        let endpoint = db.endpoint().await?;
        let changes = vec![
            settings(|settings| settings.deadline = Some(Duration::from_secs(6))),
            settings(|settings| settings.connect_deadline = Some(Duration::from_secs(10))),
        ];
        let store = Arc::clone(&db.store);
        let id = endpoint.id.clone();
        let answers = race(changes, move |_, change| {
            let (store, id) = (Arc::clone(&store), id.clone());
            async move { Ok(store.update_endpoint(DEFAULT_APPLICATION_KEY, &id, &change).await?) }
        })
        .await?;
        let invalid = |it: &&EndpointUpdate| matches!(it, EndpointUpdate::Invalid(_));
        assert_eq!(answers.iter().filter(invalid).count(), 1, "{answers:?}");
        let after = found(&db, &endpoint).await?;
        assert_eq!(after.version, 2);
        assert!(after.settings.connect_deadline() <= after.settings.deadline());
    }
    Ok(())
}

async fn a_lease_and_a_cap_follow_the_settings_at_the_next_claim(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..4 {
        db.submit(&endpoint).await?;
    }
    let lease = db.claim(&[&endpoint], 1).await?.1.claimed[0].lease;
    assert_eq!(lease, lease_for(endpoint.settings.deadline()));
    let change = settings(|settings| {
        settings.deadline = Some(Duration::from_secs(30));
        settings.in_flight_max = Some(3);
    });
    update(&db, &endpoint, &change).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(batch.claimed.len(), 2, "one is in flight, and three may be");
    assert_eq!(batch.claimed[0].lease, lease_for(Duration::from_secs(30)));
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::AtCap)]);
    Ok(())
}

async fn a_cap_below_what_is_in_flight_lets_nothing_more_be_claimed(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..8 {
        db.submit(&endpoint).await?;
    }
    let (token, batch) = db.claim(&[&endpoint], 4).await?;
    update(&db, &endpoint, &settings(|settings| settings.in_flight_max = Some(2))).await?;
    for claimed in batch.claimed.iter().take(3) {
        assert!(db.due_endpoints(false).await?.is_empty());
        let none = db.claim(&[&endpoint], 10).await?.1;
        assert!(none.claimed.is_empty());
        assert_eq!(none.endpoints, [(endpoint.key, Standing::AtCap)]);
        let delivery = claimed.delivery;
        let held = store::delivery::HeldClaim { endpoint: endpoint.key, delivery, token };
        db.record(crate::fixture::report(held, domain::delivery::Verdict::Delivered)).await?;
    }
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 1);
    assert_eq!(db.in_flight(&endpoint).await?, (2, 2));
    Ok(())
}

async fn of_many_that_delete_one_endpoint_one_does_and_nothing_names_it_after(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    assert!(!db.store.delete_endpoint(stranger, &endpoint.id).await?);
    let store = Arc::clone(&db.store);
    let id = endpoint.id.clone();
    let answers = race(0..6, move |_, _| {
        let (store, id) = (Arc::clone(&store), id.clone());
        async move { Ok(store.delete_endpoint(DEFAULT_APPLICATION_KEY, &id).await?) }
    })
    .await?;
    assert_eq!(answers.iter().filter(|deleted| **deleted).count(), 1);

    let id = &endpoint.id;
    assert!(db.store.find_endpoint(DEFAULT_APPLICATION_KEY, id).await?.is_none());
    let change = EndpointChange { enabled: Some(true), ..EndpointChange::default() };
    let update = db.store.update_endpoint(DEFAULT_APPLICATION_KEY, id, &change).await?;
    assert_eq!(update, EndpointUpdate::Missing);
    let pause = db.store.pause_endpoint(DEFAULT_APPLICATION_KEY, id, Pause::ForGood).await?;
    assert_eq!(pause, None);
    assert_eq!(db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, id).await?, None);
    assert!(db.store.read_targets(&[endpoint.key]).await?.is_empty());
    assert!(db.due_endpoints(true).await?.is_empty());
    assert_eq!(db.claim(&[&endpoint], 1).await?.1.endpoints[0].1, Standing::Closed);
    let refused = db.accept_one(&submission(&endpoint, None, b"{}")?).await?;
    assert_eq!(refused, Acceptance::EndpointMissing);
    let mut again = new_endpoint()?;
    again.id = id.clone();
    assert_eq!(db.store.create_endpoint(&again).await?, EndpointCreation::IdTaken);
    Ok(())
}

async fn headers_are_sealed_and_read_by_workers_alone(db: Fixture) -> anyhow::Result<()> {
    let mut new = new_endpoint()?;
    new.headers = headers(&[("X-Key", "hunter2")])?;
    let EndpointCreation::Created(endpoint) = db.store.create_endpoint(&new).await? else {
        bail!("not created")
    };
    assert_eq!(endpoint.headers, Ok(vec!["x-key".to_owned()]));
    assert_eq!(found(&db, &endpoint).await?, endpoint);
    let target = db.store.read_targets(&[endpoint.key]).await?.remove(0);
    assert!(!format!("{target:?} {endpoint:?} {new:?}").contains("hunter2"));
    let sent = target.headers.map_err(|why| anyhow::anyhow!(why))?;
    assert_eq!(sent.expose().collect::<Vec<_>>(), [("x-key", "hunter2")]);

    let sealer = store::sealing::Sealer::new(store::sealing::SealingKey::generate()?, Vec::new());
    let stranger = store::open(db.url(), store::StoreOptions::new(sealer)).await?;
    let target = stranger.read_targets(&[endpoint.key]).await?.remove(0);
    assert!(target.headers.is_err_and(|why| why.contains("is not configured")));
    let shown = stranger.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert!(shown.is_some_and(|endpoint| endpoint.headers.is_err()), "it is shown all the same");
    Ok(())
}
