//! Another URL, beside what was under way for the old one (G7).

use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::DisabledCause;
use domain::signing::{Overlap, SigningSecret};
use integration_tests::race::race;
use store::Store;
use store::endpoint::{Endpoint, EndpointChange, EndpointUpdate, NewUrl};
use store::secret::{NewRotation, Rotation};

use crate::fixture::Fixture;

on_both_stores! {
    a_gone_answer_of_the_old_url_disables_the_new_one_in_neither_order,
    an_endpoint_that_its_operator_disabled_stays_so_under_another_url,
    of_a_rotation_and_another_url_at_once_no_secret_of_the_old_url_stays,
}

const OLD: u8 = 7;
const MINTED: u8 = 8;
const ROTATED: u8 = 9;

fn moved() -> anyhow::Result<EndpointChange> {
    let url = DestinationUrl::parse("https://new.example.com/", &AddressPolicy::default())?;
    let secret = SigningSecret::from_slice(&[MINTED; 24])?;
    Ok(EndpointChange { url: Some(NewUrl { url, secret }), ..EndpointChange::default() })
}

async fn update(store: &dyn Store, endpoint: &Endpoint) -> anyhow::Result<Endpoint> {
    match store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &moved()?).await? {
        EndpointUpdate::Updated { endpoint, minted: true } => Ok(endpoint),
        other => bail!("{other:?}"),
    }
}

async fn assert_open(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let found = found.context("the endpoint")?;
    assert_eq!((found.url.as_str(), found.disabled), ("https://new.example.com/", None));
    db.submit(endpoint).await?;
    db.claim_one(endpoint).await?;
    Ok(())
}

async fn a_gone_answer_of_the_old_url_disables_the_new_one_in_neither_order(
    db: Fixture,
) -> anyhow::Result<()> {
    let gone = DisabledCause::Gone;
    let endpoint = db.endpoint().await?;
    update(db.store.as_ref(), &endpoint).await?;
    assert!(!db.store.disable_endpoint(endpoint.key, endpoint.version, gone).await?);
    assert_open(&db, &endpoint).await?;

    let endpoint = db.endpoint().await?;
    assert!(db.store.disable_endpoint(endpoint.key, endpoint.version, gone).await?);
    update(db.store.as_ref(), &endpoint).await?;
    assert_open(&db, &endpoint).await?;

    for _ in 0..10 {
        let endpoint = db.endpoint().await?;
        let (store, of) = (Arc::clone(&db.store), endpoint.clone());
        race(0..2, move |place, _| {
            let (store, of) = (Arc::clone(&store), of.clone());
            async move {
                if place == 0 {
                    store.disable_endpoint(of.key, of.version, gone).await?;
                } else {
                    update(store.as_ref(), &of).await?;
                }
                Ok(())
            }
        })
        .await?;
        assert_open(&db, &endpoint).await?;
    }
    Ok(())
}

async fn an_endpoint_that_its_operator_disabled_stays_so_under_another_url(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let operator = DisabledCause::Operator;
    assert!(db.store.disable_endpoint(endpoint.key, endpoint.version, operator).await?);
    let updated = update(db.store.as_ref(), &endpoint).await?;
    assert_eq!(updated.disabled, Some(operator));
    Ok(())
}

/// The first byte of each live secret, the newest first.
async fn live(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<Vec<u8>> {
    let targets = db.store.read_targets(&[endpoint.key]).await?;
    let secrets = targets.first().context("a target")?.secrets.clone();
    let secrets = secrets.map_err(|why| anyhow::anyhow!(why))?;
    Ok(secrets.iter().filter_map(|secret| secret.expose_bytes().first().copied()).collect())
}

async fn of_a_rotation_and_another_url_at_once_no_secret_of_the_old_url_stays(
    db: Fixture,
) -> anyhow::Result<()> {
    for _ in 0..10 {
        let endpoint = db.endpoint().await?;
        assert_eq!(live(&db, &endpoint).await?, [OLD]);
        let (store, of) = (Arc::clone(&db.store), endpoint.clone());
        let versions = race(0..2, move |place, _| {
            let (store, of) = (Arc::clone(&store), of.clone());
            async move {
                if place == 1 {
                    return Ok(update(store.as_ref(), &of).await?.version);
                }
                let rotation = NewRotation {
                    endpoint: of.key,
                    secret: SigningSecret::from_slice(&[ROTATED; 24])?,
                    ed25519: store::secret::generate_ed25519()?,
                    given: None,
                    overlap: Overlap::new(std::time::Duration::from_hours(1))?,
                };
                match store.rotate_secrets(&rotation).await? {
                    Rotation::Rotated(rotated) => Ok(rotated.version),
                    other => bail!("{other:?}"),
                }
            }
        })
        .await?;
        // Whoever came second decided on what the first had left: a rotation keeps what was live, and
        // another URL ends it.
        let expected = if versions[0] > versions[1] { vec![ROTATED, MINTED] } else { vec![MINTED] };
        assert_eq!(live(&db, &endpoint).await?, expected, "{versions:?}");
    }
    Ok(())
}
