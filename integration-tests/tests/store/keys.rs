//! Keys and applications: revoked at once, the last admin kept, tenants apart.

use std::sync::Arc;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, PublicId};
use domain::label::Label;
use integration_tests::race::race;
use store::Page;
use store::api_key::{ApiKeyView, NewApiKey, Revocation, Role};
use store::application::{ApplicationCreation, NewApplication};
use store::delivery::DeliveryFilter;
use store::endpoint::EndpointCreation;
use store::submission::SubmissionFilter;
use uuid::Uuid;

use crate::fixture::{Fixture, new_endpoint, submission};

on_both_stores! {
    a_revoked_key_is_not_found_by_the_next_request,
    a_key_is_revoked_once_and_only_within_its_application,
    the_last_admin_key_of_all_applications_stays,
    of_admins_that_revoke_one_another_at_once_one_stays,
    a_use_is_noted_once_an_hour_however_many_note_it,
    keys_are_listed_newest_first_with_their_application,
    a_key_ends_with_its_application,
    an_application_is_created_and_listed_until_it_is_deleted,
    of_many_that_create_one_application_one_wins,
    one_endpoint_id_in_two_applications_is_two_endpoints,
}

const ALL: Page = Page { limit: 250, before: None };

async fn key(
    db: &Fixture,
    role: Role,
    application: Option<ApplicationKey>,
) -> anyhow::Result<NewApiKey> {
    let key = NewApiKey::generate("test", role, application)?;
    db.store.create_api_key(&key).await?;
    Ok(key)
}

async fn application(db: &Fixture, id: &str) -> anyhow::Result<ApplicationKey> {
    let new = new_application(id)?;
    let created = db.store.create_application(&new).await?;
    anyhow::ensure!(matches!(created, ApplicationCreation::Created(_)), "{created:?}");
    Ok(new.key)
}

fn new_application(id: &str) -> anyhow::Result<NewApplication> {
    let (id, name) = (PublicId::parse(id)?, Label::parse(&format!("{id} Ltd"))?);
    Ok(NewApplication { key: store::new_id::application_key(), id, name })
}

async fn view(db: &Fixture, id: Uuid) -> anyhow::Result<ApiKeyView> {
    let keys = db.store.list_api_keys(None, ALL).await?;
    keys.into_iter().find(|key| key.id == id).ok_or_else(|| anyhow::anyhow!("{id} is not listed"))
}

async fn a_revoked_key_is_not_found_by_the_next_request(db: Fixture) -> anyhow::Result<()> {
    let publisher = key(&db, Role::Publish, None).await?;
    assert!(db.store.find_api_key(&publisher.digest()).await?.is_some());
    assert_eq!(db.store.revoke_api_key(None, publisher.id).await?, Revocation::Revoked);
    assert_eq!(db.store.find_api_key(&publisher.digest()).await?, None);
    assert!(view(&db, publisher.id).await?.revoked_at.is_some());
    assert!(!db.store.note_api_key_use(publisher.id).await?, "nor is it used any more");
    Ok(())
}

async fn a_key_is_revoked_once_and_only_within_its_application(db: Fixture) -> anyhow::Result<()> {
    let (ours, theirs) = (application(&db, "ours").await?, application(&db, "theirs").await?);
    let bound = key(&db, Role::Admin, Some(ours)).await?;
    let free = key(&db, Role::Read, None).await?;
    assert_eq!(db.store.revoke_api_key(Some(theirs), bound.id).await?, Revocation::Missing);
    assert_eq!(db.store.revoke_api_key(Some(ours), free.id).await?, Revocation::Missing);
    assert_eq!(db.store.revoke_api_key(None, Uuid::nil()).await?, Revocation::Missing);
    assert!(db.store.find_api_key(&bound.digest()).await?.is_some());

    assert_eq!(db.store.revoke_api_key(Some(ours), bound.id).await?, Revocation::Revoked);
    let first = view(&db, bound.id).await?.revoked_at;
    assert_eq!(db.store.revoke_api_key(Some(ours), bound.id).await?, Revocation::WasRevoked);
    assert_eq!(view(&db, bound.id).await?.revoked_at, first, "it says when it was");
    Ok(())
}

async fn the_last_admin_key_of_all_applications_stays(db: Fixture) -> anyhow::Result<()> {
    let ours = application(&db, "ours").await?;
    let last = key(&db, Role::Admin, None).await?;
    // Neither another role nor an admin of one application can make keys for all.
    let bound = key(&db, Role::Admin, Some(ours)).await?;
    let publisher = key(&db, Role::Publish, None).await?;
    assert_eq!(db.store.revoke_api_key(None, last.id).await?, Revocation::LastAdmin);
    assert!(db.store.find_api_key(&last.digest()).await?.is_some());
    for other in [bound.id, publisher.id] {
        assert_eq!(db.store.revoke_api_key(None, other).await?, Revocation::Revoked);
    }
    let next = key(&db, Role::Admin, None).await?;
    assert_eq!(db.store.revoke_api_key(None, last.id).await?, Revocation::Revoked);
    assert_eq!(db.store.revoke_api_key(None, next.id).await?, Revocation::LastAdmin);
    Ok(())
}

/// With two admins at a time, so that each sees the other until one of them commits.
async fn of_admins_that_revoke_one_another_at_once_one_stays(db: Fixture) -> anyhow::Result<()> {
    let mut survivor = key(&db, Role::Admin, None).await?.id;
    for round in 0..16 {
        let rivals = [survivor, key(&db, Role::Admin, None).await?.id];
        let store = Arc::clone(&db.store);
        let answers = race(rivals, move |_, id| {
            let store = Arc::clone(&store);
            async move { Ok(store.revoke_api_key(None, id).await?) }
        })
        .await?;
        survivor = match answers.as_slice() {
            [Revocation::LastAdmin, Revocation::Revoked] => rivals[0],
            [Revocation::Revoked, Revocation::LastAdmin] => rivals[1],
            other => anyhow::bail!("round {round}: {other:?}"),
        };
        assert!(view(&db, survivor).await?.revoked_at.is_none());
    }
    Ok(())
}

async fn a_use_is_noted_once_an_hour_however_many_note_it(db: Fixture) -> anyhow::Result<()> {
    let reader = key(&db, Role::Read, None).await?;
    let due = || async {
        let found = db.store.find_api_key(&reader.digest()).await?;
        found.map(|key| key.use_due).ok_or_else(|| anyhow::anyhow!("it is not found"))
    };
    for round in ["never used", "used an hour ago"] {
        assert!(due().await?, "{round}");
        let store = Arc::clone(&db.store);
        let noted = race([reader.id; 8], move |_, id| {
            let store = Arc::clone(&store);
            async move { Ok(store.note_api_key_use(id).await?) }
        })
        .await?;
        assert_eq!(noted.iter().filter(|noted| **noted).count(), 1, "{round}: {noted:?}");
        assert!(!due().await?, "{round}");
        assert!(!db.store.note_api_key_use(reader.id).await?, "{round}");
        assert!(view(&db, reader.id).await?.last_used_at.is_some());
        db.age_key_use(reader.id).await?;
    }
    Ok(())
}

async fn keys_are_listed_newest_first_with_their_application(db: Fixture) -> anyhow::Result<()> {
    let ours = application(&db, "ours").await?;
    let bound = NewApiKey::generate("shop", Role::Publish, Some(ours))?;
    let created = db.store.create_api_key(&bound).await?;
    assert_eq!(
        (created.id, created.role, created.name.as_str()),
        (bound.id, Role::Publish, "shop")
    );
    assert_eq!(created.application_id.as_deref(), Some("ours"));
    assert_eq!(created.shown_prefix, bound.shown_prefix());
    assert_eq!((created.last_used_at, created.revoked_at), (None, None));
    assert_eq!(view(&db, bound.id).await?, created);

    let mut ids = vec![bound.id];
    for _ in 0..4 {
        ids.push(key(&db, Role::Read, None).await?.id);
    }
    // Ids of one millisecond have no order of creation.
    ids.sort_unstable_by(|a, b| b.cmp(a));
    let mut listed = Vec::new();
    let mut page = Page { limit: 2, before: None };
    loop {
        let part = db.store.list_api_keys(None, page).await?;
        let Some(last) = part.last() else { break };
        page.before = Some(last.id);
        listed.extend(part.iter().map(|key| key.id));
    }
    assert_eq!(listed, ids);
    assert_eq!(db.store.list_api_keys(Some(ours), ALL).await?, [created]);
    Ok(())
}

async fn a_key_ends_with_its_application(db: Fixture) -> anyhow::Result<()> {
    let ours = application(&db, "ours").await?;
    let bound = key(&db, Role::Admin, Some(ours)).await?;
    let found = db.store.find_api_key(&bound.digest()).await?;
    assert_eq!(found.and_then(|key| key.application), Some(ours));
    db.delete_application(ours).await?;
    assert_eq!(db.store.find_api_key(&bound.digest()).await?, None);
    assert_eq!(view(&db, bound.id).await?.application_id.as_deref(), Some("ours"));
    Ok(())
}

async fn an_application_is_created_and_listed_until_it_is_deleted(
    db: Fixture,
) -> anyhow::Result<()> {
    let new = new_application("ours")?;
    let ApplicationCreation::Created(created) = db.store.create_application(&new).await? else {
        anyhow::bail!("the id is taken")
    };
    assert_eq!((created.key, created.id.as_str()), (new.key, "ours"));
    assert_eq!(created.name, "ours Ltd");
    assert_eq!(db.store.find_application(&new.id).await?, Some(new.key));
    let ids = |listed: Vec<store::application::Application>| -> Vec<String> {
        listed.into_iter().map(|application| application.id).collect()
    };
    assert_eq!(ids(db.store.list_applications(None, ALL).await?), ["ours", "default"]);
    assert_eq!(ids(db.store.list_applications(Some(new.key), ALL).await?), ["ours"]);
    let one = Page { limit: 1, before: None };
    assert_eq!(ids(db.store.list_applications(None, one).await?), ["ours"]);
    let rest = Page { limit: 1, before: Some(new.key.as_uuid()) };
    assert_eq!(ids(db.store.list_applications(None, rest).await?), ["default"]);

    db.delete_application(new.key).await?;
    assert_eq!(db.store.find_application(&new.id).await?, None);
    assert_eq!(ids(db.store.list_applications(None, ALL).await?), ["default"]);
    let again = new_application("ours")?;
    let taken = db.store.create_application(&again).await?;
    assert_eq!(taken, ApplicationCreation::IdTaken, "an id is never used again");
    Ok(())
}

async fn of_many_that_create_one_application_one_wins(db: Fixture) -> anyhow::Result<()> {
    let rivals = (0..8).map(|_| new_application("ours")).collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(rivals, move |_, new| {
        let store = Arc::clone(&store);
        async move { Ok(store.create_application(&new).await?) }
    })
    .await?;
    let created = answers.iter().filter(|a| matches!(a, ApplicationCreation::Created(_))).count();
    assert_eq!(created, 1, "{answers:?}");
    assert_eq!(db.count("applications").await?, 2, "with the default one");
    Ok(())
}

async fn one_endpoint_id_in_two_applications_is_two_endpoints(db: Fixture) -> anyhow::Result<()> {
    let theirs = application(&db, "theirs").await?;
    let mut accepted = Vec::new();
    for application in [DEFAULT_APPLICATION_KEY, theirs] {
        let new = store::endpoint::NewEndpoint {
            application,
            id: PublicId::parse("orders")?,
            ..new_endpoint()?
        };
        let EndpointCreation::Created(endpoint) = db.store.create_endpoint(&new).await? else {
            anyhow::bail!("the id is taken in {application}")
        };
        assert_eq!(
            db.store.find_endpoint(application, &endpoint.id).await?,
            Some(endpoint.clone())
        );
        // One idempotency key in two applications is two keys.
        let new = submission(&endpoint, Some("order-1"), application.to_string().as_bytes())?;
        let acceptance = db.accept_one(&new).await?;
        let store::submission::Acceptance::Accepted(one) = acceptance else {
            anyhow::bail!("{acceptance:?}")
        };
        accepted.push((application, endpoint, one));
    }
    let others = [accepted[1].0, accepted[0].0];
    for ((application, endpoint, one), other) in accepted.into_iter().zip(others) {
        let listed = db.store.list_endpoints(application, ALL).await?;
        assert_eq!(listed, [endpoint]);
        let filter = SubmissionFilter {
            application,
            endpoint: None,
            created: store::CreatedWindow::default(),
            page: ALL,
        };
        let listed = db.store.list_submissions(filter).await?;
        assert_eq!(listed.iter().map(|s| s.id).collect::<Vec<_>>(), [one.submission]);
        let filter = DeliveryFilter {
            application,
            endpoint: None,
            state: None,
            created: store::CreatedWindow::default(),
            page: ALL,
        };
        let listed = db.store.list_deliveries(filter).await?;
        assert_eq!(listed.iter().map(|d| d.id).collect::<Vec<_>>(), one.deliveries);
        assert_eq!(db.store.find_submission(other, one.submission).await?, None);
        assert_eq!(db.store.find_delivery(other, one.deliveries[0]).await?, None);
    }
    Ok(())
}
