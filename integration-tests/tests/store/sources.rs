//! Sources of other people's webhooks, and what they send (G7, G9).

mod receipts;
mod secrets;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::PublicId;
use domain::label::Label;
use domain::receipt::ReceiptKey;
use domain::source::{EventIdLocation, HeaderName, Refusal, Scheme, SchemeKind, SourceSecret};
use domain::submission::ContentType;
use integration_tests::race::race;
use sqlx::Connection as _;
use store::delivery::DeliveryFilter;
use store::endpoint::Endpoint;
use store::receipt::NewReceipt;
use store::source::{
    NewReception, NewSource, REFUSALS_KEPT, Reception, Source, SourceChange, SourceCreation,
};
use store::submission::{NewSubmission, SubmissionFilter};
use store::{CreatedWindow, Page};

use crate::fixture::Fixture;

on_both_stores! {
    every_field_of_a_source_is_stored_and_a_change_leaves_what_it_does_not_name,
    of_many_who_create_one_source_one_does_and_a_deleted_id_stays_taken,
    operators_who_change_different_fields_of_a_source_lose_nothing,
    of_many_concurrent_copies_of_an_event_one_is_stored_and_the_others_are_duplicates,
    a_repeated_reception_whose_answer_was_lost_stores_nothing_twice,
    other_content_under_an_events_id_is_told_apart_and_not_stored,
    one_id_of_two_sources_is_two_events,
    what_a_deleted_source_or_endpoint_is_sent_is_not_stored,
    every_refusal_is_counted_and_the_newest_are_kept,
}

const PAGE: Page = Page { limit: 250, before: None };

fn new_source(endpoint: &Endpoint, id: &str) -> anyhow::Result<NewSource> {
    Ok(NewSource {
        key: store::new_id::source_key(),
        application: DEFAULT_APPLICATION_KEY,
        id: PublicId::parse(id)?,
        name: Some(Label::parse("GitHub")?),
        endpoint: (endpoint.key, endpoint.id.clone()),
        scheme: Scheme::from_json(r#"{"type":"github"}"#)?,
        event_id: None,
        headers: vec![HeaderName::parse("x-github-event")?],
        secret: SourceSecret::parse(SchemeKind::Github, "the first secret")?,
    })
}

async fn source(db: &Fixture, endpoint: &Endpoint, id: &str) -> anyhow::Result<Source> {
    match db.store.create_source(&new_source(endpoint, id)?).await? {
        SourceCreation::Created(source) => Ok(source),
        other => bail!("not created: {other:?}"),
    }
}

fn reception(
    source: &Source,
    endpoint: &Endpoint,
    event: &str,
    body: &'static [u8],
) -> anyhow::Result<NewReception> {
    let key = ReceiptKey::new(&source.key.to_string(), event)?;
    let payload = Bytes::from_static(body);
    Ok(NewReception {
        source: source.key,
        receipt: NewReceipt::new(key, body),
        headers: vec![("x-github-event".to_owned(), "push".to_owned())],
        submission: NewSubmission::new(endpoint.key, None, None, ContentType::default(), payload),
    })
}

/// How many submissions and deliveries there are.
async fn stored(db: &Fixture) -> anyhow::Result<(usize, usize)> {
    let application = DEFAULT_APPLICATION_KEY;
    let created = CreatedWindow::default();
    let submissions = SubmissionFilter { application, endpoint: None, created, page: PAGE };
    let deliveries =
        DeliveryFilter { application, endpoint: None, state: None, created, page: PAGE };
    let submissions = db.store.list_submissions(submissions).await?.len();
    Ok((submissions, db.store.list_deliveries(deliveries).await?.len()))
}

async fn every_field_of_a_source_is_stored_and_a_change_leaves_what_it_does_not_name(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, other) = (db.endpoint().await?, db.endpoint().await?);
    let created = source(&db, &endpoint, "gh").await?;
    let find = || db.store.find_source(DEFAULT_APPLICATION_KEY, &created.id);
    assert_eq!(find().await?.as_ref(), Some(&created));
    assert_eq!((created.name.as_deref(), created.version), (Some("GitHub"), 1));
    assert_eq!(created.endpoint_id, endpoint.id.as_str());

    let change = SourceChange {
        endpoint: Some(other.key),
        scheme: Some(Scheme::from_json(r#"{"type":"github","legacy_sha1":true}"#)?),
        event_id: Some(Some(EventIdLocation::Digest)),
        ..SourceChange::default()
    };
    let update = db.store.update_source(DEFAULT_APPLICATION_KEY, &created.id, &change);
    let changed = update.await?.context("updated")?;
    assert_eq!((changed.name.as_deref(), changed.version), (Some("GitHub"), 2));
    assert_eq!(changed.headers, created.headers);
    assert_eq!(changed.endpoint_id, other.id.as_str());
    assert_eq!(changed.event_id, Some(EventIdLocation::Digest));
    assert_eq!(Some(&changed.scheme), change.scheme.as_ref());
    assert_eq!(find().await?.as_ref(), Some(&changed));
    assert_eq!(db.store.list_sources(DEFAULT_APPLICATION_KEY, PAGE).await?, [changed]);

    let cleared = SourceChange {
        name: Some(None),
        event_id: Some(None),
        headers: Some(Vec::new()),
        ..SourceChange::default()
    };
    let update = db.store.update_source(DEFAULT_APPLICATION_KEY, &created.id, &cleared);
    let cleared = update.await?.context("updated")?;
    assert_eq!((cleared.name, cleared.event_id), (None, None));
    ensure!(cleared.headers.is_empty());
    Ok(())
}

async fn of_many_who_create_one_source_one_does_and_a_deleted_id_stays_taken(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let contestants: Vec<NewSource> =
        (0..8).map(|_| new_source(&endpoint, "gh")).collect::<anyhow::Result<_>>()?;
    let made = race(contestants, |_, new| {
        let store = Arc::clone(&db.store);
        async move { Ok(store.create_source(&new).await?) }
    });
    let made = made.await?;
    let won = made.iter().filter(|it| matches!(it, SourceCreation::Created(_))).count();
    let lost = made.iter().filter(|it| matches!(it, SourceCreation::IdTaken)).count();
    assert_eq!((won, lost), (1, 7));

    let id = PublicId::parse("gh")?;
    assert!(db.store.delete_source(DEFAULT_APPLICATION_KEY, &id).await?);
    assert!(!db.store.delete_source(DEFAULT_APPLICATION_KEY, &id).await?);
    assert_eq!(db.store.find_source(DEFAULT_APPLICATION_KEY, &id).await?, None);
    assert!(db.store.read_gateway(DEFAULT_APPLICATION_KEY, &id).await?.is_none());
    let again = db.store.create_source(&new_source(&endpoint, "gh")?).await?;
    assert_eq!(again, SourceCreation::IdTaken);

    db.store.delete_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    let orphan = db.store.create_source(&new_source(&endpoint, "other")?).await?;
    assert_eq!(orphan, SourceCreation::EndpointMissing);
    Ok(())
}

async fn operators_who_change_different_fields_of_a_source_lose_nothing(
    db: Fixture,
) -> anyhow::Result<()> {
    let created = source(&db, &db.endpoint().await?, "gh").await?;
    let changes = [
        SourceChange { name: Some(Some(Label::parse("renamed")?)), ..SourceChange::default() },
        SourceChange { event_id: Some(Some(EventIdLocation::Digest)), ..SourceChange::default() },
        SourceChange { headers: Some(Vec::new()), ..SourceChange::default() },
        SourceChange {
            scheme: Some(Scheme::from_json(r#"{"type":"github","legacy_sha1":true}"#)?),
            ..SourceChange::default()
        },
    ];
    let told = race(changes.clone(), |_, change| {
        let (store, id) = (Arc::clone(&db.store), created.id.clone());
        async move {
            let updated = store.update_source(DEFAULT_APPLICATION_KEY, &id, &change).await?;
            updated.context("updated")
        }
    });
    let versions: BTreeSet<i64> = told.await?.iter().map(|source| source.version).collect();
    assert_eq!(versions, BTreeSet::from([2, 3, 4, 5]), "each was told what it had made");
    let found = db.store.find_source(DEFAULT_APPLICATION_KEY, &created.id).await?;
    let found = found.context("found")?;
    assert_eq!(found.name.as_deref(), Some("renamed"));
    assert_eq!(found.event_id, Some(EventIdLocation::Digest));
    assert_eq!((found.headers.len(), Some(found.scheme)), (0, changes[3].scheme.clone()));
    Ok(())
}

/// Case C120: the copies of one event that many replicas get in the same millisecond.
async fn of_many_concurrent_copies_of_an_event_one_is_stored_and_the_others_are_duplicates(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let copies: Vec<NewReception> = (0..50)
        .map(|_| reception(&source, &endpoint, "evt-1", b"{}"))
        .collect::<anyhow::Result<_>>()?;
    let told = race(copies, |_, copy| {
        let store = Arc::clone(&db.store);
        async move { Ok(store.receive(&copy).await?) }
    });
    let told = told.await?;
    let first = told.iter().filter(|it| matches!(it, Reception::First(_))).count();
    let duplicates = told.iter().filter(|it| **it == Reception::Duplicate).count();
    assert_eq!((first, duplicates), (1, 49), "{told:?}");
    assert_eq!(stored(&db).await?, (1, 1));
    Ok(())
}

async fn a_repeated_reception_whose_answer_was_lost_stores_nothing_twice(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let new = reception(&source, &endpoint, "evt-1", b"{}")?;
    let Reception::First(first) = db.store.receive(&new).await? else { bail!("not the first") };
    let Reception::First(again) = db.store.receive(&new).await? else { bail!("not its own") };
    assert_eq!((first.submission, first.deliveries), (again.submission, again.deliveries));
    assert_eq!(stored(&db).await?, (1, 1));
    Ok(())
}

/// Case C119: the same id with another body.
async fn other_content_under_an_events_id_is_told_apart_and_not_stored(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let receive = async |event: &str, body: &'static [u8]| {
        anyhow::Ok(db.store.receive(&reception(&source, &endpoint, event, body)?).await?)
    };
    ensure!(matches!(receive("evt-1", b"a").await?, Reception::First(_)));
    for _ in 0..2 {
        assert_eq!(receive("evt-1", b"b").await?, Reception::Conflicted);
    }
    assert_eq!(receive("evt-1", b"a").await?, Reception::Duplicate, "the first one stands");
    ensure!(matches!(receive("EVT-1", b"b").await?, Reception::First(_)), "letter case counts");
    assert_eq!(stored(&db).await?, (2, 2));
    Ok(())
}

/// Case C119: an id is the source's.
async fn one_id_of_two_sources_is_two_events(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for id in ["one", "two"] {
        let source = source(&db, &endpoint, id).await?;
        let received = db.store.receive(&reception(&source, &endpoint, "evt-1", b"{}")?).await?;
        ensure!(matches!(received, Reception::First(_)), "{received:?}");
    }
    assert_eq!(stored(&db).await?, (2, 2));
    Ok(())
}

async fn what_a_deleted_source_or_endpoint_is_sent_is_not_stored(
    db: Fixture,
) -> anyhow::Result<()> {
    let (kept, gone) = (db.endpoint().await?, db.endpoint().await?);
    let (deleted, orphan) = (source(&db, &kept, "one").await?, source(&db, &gone, "two").await?);
    db.store.delete_source(DEFAULT_APPLICATION_KEY, &deleted.id).await?;
    db.store.delete_endpoint(DEFAULT_APPLICATION_KEY, &gone.id).await?;
    for (source, endpoint) in [(&deleted, &kept), (&orphan, &gone)] {
        let received = db.store.receive(&reception(source, endpoint, "evt-1", b"{}")?).await?;
        assert_eq!(received, Reception::Missing);
    }
    assert_eq!(stored(&db).await?, (0, 0));
    Ok(())
}

async fn every_refusal_is_counted_and_the_newest_are_kept(db: Fixture) -> anyhow::Result<()> {
    let source = source(&db, &db.endpoint().await?, "gh").await?;
    let noted = race(1..=30_u64, |_, by_seconds| {
        let (store, key) = (Arc::clone(&db.store), source.key);
        async move { Ok(store.note_refusal(key, &Refusal::Stale { by_seconds }).await?) }
    });
    noted.await?;
    db.store.note_refusal(source.key, &Refusal::Mismatch).await?;
    let found = db.store.find_source(DEFAULT_APPLICATION_KEY, &source.id).await?;
    let found = found.context("found")?;
    assert_eq!((found.refused, found.refusals.len()), (31, REFUSALS_KEPT));
    assert_eq!(found.refusals[0].code, "mismatch", "the newest stands first");
    ensure!(found.refusals.is_sorted_by(|newer, older| newer.at_micros >= older.at_micros));
    assert_eq!(found.version, 1, "no change of the configuration");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_beside_an_open_transaction_of_its_event_is_told_to_come_again() -> anyhow::Result<()>
{
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let new = reception(&source, &endpoint, "evt-1", b"{}")?;
    let mut session = db.session().await?;
    let mut open = session.begin().await?;
    sqlx::query("select fencepost.receive($1, 'evt-1', '{}')")
        .bind(source.key.to_string())
        .execute(&mut *open)
        .await?;
    assert_eq!(db.store.receive(&new).await?, Reception::InProgress);
    open.rollback().await?;
    ensure!(matches!(db.store.receive(&new).await?, Reception::First(_)), "nothing was left");
    Ok(())
}

/// What an application in another language is told by `fencepost.receive`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sql_function_tells_one_of_many_copies_that_it_is_the_first() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(db.session().await?);
    }
    let told = race(sessions, |_, mut session| async move {
        let outcome: String =
            sqlx::query_scalar("select outcome from fencepost.receive('shop', 'evt-1', 'body')")
                .fetch_one(&mut session)
                .await?;
        Ok((outcome, session))
    });
    let mut told = told.await?;
    let count = |told: &[(String, _)], outcome| told.iter().filter(|it| it.0 == outcome).count();
    assert_eq!((count(&told, "first"), count(&told, "duplicate")), (1, 7));

    let (_, session) = told.first_mut().context("a session")?;
    let mut outcome = async |call: &'static str| -> anyhow::Result<String> {
        Ok(sqlx::query_scalar(call).fetch_one(&mut *session).await?)
    };
    let other = "select outcome from fencepost.receive('shop', 'evt-1', 'other')";
    assert_eq!(outcome(other).await?, "conflicted");
    let elsewhere = "select outcome from fencepost.receive('other', 'evt-1', 'body')";
    assert_eq!(outcome(elsewhere).await?, "first");
    for bad in [
        "select outcome from fencepost.receive('', 'evt-1', 'body')",
        "select outcome from fencepost.receive('shop', repeat('x', 256), 'body')",
        "select outcome from fencepost.receive('shop', E'a\\nb', 'body')",
        "select outcome from fencepost.receive('shop', 'evt-2', null)",
    ] {
        ensure!(outcome(bad).await.is_err(), "{bad}");
    }
    // The same fingerprint as the library's, so that both tell copies alike.
    let kept: Vec<u8> = sqlx::query_scalar(
        "select fingerprint from fencepost.receipts where source = 'shop' and event_id = 'evt-1'",
    )
    .fetch_one(&mut *session)
    .await?;
    let mine = domain::submission::Fingerprint::of_received(b"body");
    assert_eq!(kept, mine.as_bytes());
    Ok(())
}
