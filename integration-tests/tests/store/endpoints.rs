//! Endpoints, keys and applications.

use std::sync::Arc;

use domain::application::{DEFAULT_APPLICATION_ID, DEFAULT_APPLICATION_KEY};
use domain::endpoint::DisabledCause;
use domain::id::{ApplicationKey, PublicId};
use integration_tests::race::race;
use store::Page;
use store::api_key::{ApiKeyDigest, NewApiKey, Role};
use store::delivery::Standing;
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};

use crate::fixture::{Fixture, new_endpoint};

on_both_stores! {
    an_id_is_given_once_and_never_again,
    of_many_that_create_one_id_one_wins,
    an_endpoint_is_read_as_it_was_created,
    an_endpoint_that_is_created_disabled_holds_its_deliveries_until_it_is_enabled,
    endpoints_are_listed_newest_first_by_pages,
    a_gone_answer_disables_only_the_configuration_that_it_came_from,
    a_secret_opens_with_the_key_that_sealed_it_and_with_no_other,
    an_api_key_is_found_by_its_digest_alone,
    the_default_application_exists,
}

async fn an_id_is_given_once_and_never_again(db: Fixture) -> anyhow::Result<()> {
    let first = db.endpoint().await?;
    let mut second = new_endpoint()?;
    second.id = first.id.clone();
    assert_eq!(db.store.create_endpoint(&second).await?, EndpointCreation::IdTaken);
    db.delete(&first).await?;
    assert_eq!(db.store.create_endpoint(&second).await?, EndpointCreation::IdTaken);
    assert_eq!(db.count("endpoints").await?, 1);
    assert_eq!(db.count("endpoint_schedule").await?, 1);
    assert_eq!(db.count("endpoint_secrets").await?, 2, "no secret without its endpoint");
    Ok(())
}

async fn of_many_that_create_one_id_one_wins(db: Fixture) -> anyhow::Result<()> {
    let rivals = (0..8)
        .map(|_| {
            let mut new = new_endpoint()?;
            new.id = PublicId::parse("orders")?;
            Ok(new)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(rivals, move |_, new| {
        let store = Arc::clone(&store);
        async move { Ok(store.create_endpoint(&new).await?) }
    })
    .await?;
    let created = answers.iter().filter(|a| matches!(a, EndpointCreation::Created(_))).count();
    assert_eq!(created, 1);
    assert_eq!(db.count("endpoint_schedule").await?, 1);
    Ok(())
}

async fn an_endpoint_is_read_as_it_was_created(db: Fixture) -> anyhow::Result<()> {
    let created = db
        .endpoint_with(|settings| {
            settings.in_flight_max = 7;
            settings.final_statuses = vec![404, 422];
            settings.overload_floor = std::time::Duration::ZERO;
        })
        .await?;
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &created.id).await?;
    assert_eq!(found.as_ref(), Some(&created));
    assert_eq!((created.version, created.disabled), (1, None));
    assert_eq!(created.settings.final_statuses(), [404, 422]);
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    assert_eq!(db.store.find_endpoint(stranger, &created.id).await?, None);
    db.delete(&created).await?;
    assert_eq!(db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &created.id).await?, None);
    Ok(())
}

async fn an_endpoint_that_is_created_disabled_holds_its_deliveries_until_it_is_enabled(
    db: Fixture,
) -> anyhow::Result<()> {
    let new = NewEndpoint { enabled: false, ..new_endpoint()? };
    let EndpointCreation::Created(created) = db.store.create_endpoint(&new).await? else {
        anyhow::bail!("a fresh id was taken")
    };
    assert_eq!((created.version, created.disabled), (1, Some(DisabledCause::Operator)));
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &created.id).await?;
    assert_eq!(found.as_ref(), Some(&created));
    let lives = db.store.read_lives(&[created.key]).await?;
    assert_eq!(lives[0].disabled_at, Some(created.created_at));
    let delivery = db.submit(&created).await?;
    assert!(db.due_endpoints(true).await?.is_empty());
    let (_, batch) = db.claim(&[&created], 1).await?;
    assert_eq!(batch.endpoints, [(created.key, Standing::Closed)]);

    db.store.enable_endpoint(DEFAULT_APPLICATION_KEY, &created.id).await?;
    assert_eq!(db.claim_one(&created).await?.delivery, delivery);
    Ok(())
}

async fn endpoints_are_listed_newest_first_by_pages(db: Fixture) -> anyhow::Result<()> {
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(db.endpoint().await?.key);
    }
    // Ids of one millisecond have no order of creation.
    keys.sort_unstable_by(|a, b| b.cmp(a));
    let mut listed = Vec::new();
    let mut page = Page { limit: 2, before: None };
    loop {
        let part = db.store.list_endpoints(DEFAULT_APPLICATION_KEY, page).await?;
        let Some(last) = part.last() else { break };
        page.before = Some(last.key.as_uuid());
        listed.extend(part.iter().map(|endpoint| endpoint.key));
    }
    assert_eq!(listed, keys);
    Ok(())
}

async fn a_gone_answer_disables_only_the_configuration_that_it_came_from(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let gone = DisabledCause::Gone;
    assert!(!db.store.disable_endpoint(endpoint.key, endpoint.version + 1, gone).await?);
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(found.and_then(|e| e.disabled), None);
    assert!(db.store.disable_endpoint(endpoint.key, endpoint.version, gone).await?);
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(found.map(|e| (e.disabled, e.version)), Some((Some(gone), 2)));
    assert!(!db.store.disable_endpoint(endpoint.key, 2, gone).await?, "it is disabled once");
    Ok(())
}

async fn a_secret_opens_with_the_key_that_sealed_it_and_with_no_other(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let other = Sealer::new(SealingKey::generate()?, Vec::new());
    let stranger = store::open(db.url(), store::StoreOptions::new(other)).await?;
    let targets = stranger.read_targets(&[endpoint.key]).await?;
    let error = targets[0].secrets.as_ref().err();
    assert!(error.is_some_and(|text| text.contains("is not configured")), "{error:?}");
    assert!(db.store.read_targets(&[endpoint.key]).await?[0].secrets.is_ok());
    Ok(())
}

async fn an_api_key_is_found_by_its_digest_alone(db: Fixture) -> anyhow::Result<()> {
    assert!(!db.store.has_api_keys().await?);
    let key = NewApiKey::generate("first", Role::Admin, None)?;
    db.store.create_api_key(&key).await?;
    assert!(db.store.has_api_keys().await?);
    let found = db.store.find_api_key(&ApiKeyDigest::of(key.reveal())).await?;
    assert_eq!(found.map(|k| (k.id, k.role, k.name)), Some((key.id, Role::Admin, key.name)));
    let wrong = ApiKeyDigest::of("fp_live_wrong");
    assert_eq!(db.store.find_api_key(&wrong).await?, None);
    Ok(())
}

async fn the_default_application_exists(db: Fixture) -> anyhow::Result<()> {
    let id = PublicId::parse(DEFAULT_APPLICATION_ID)?;
    assert_eq!(db.store.find_application(&id).await?, Some(DEFAULT_APPLICATION_KEY));
    assert_eq!(db.store.find_application(&PublicId::parse("nobody")?).await?, None);
    Ok(())
}
