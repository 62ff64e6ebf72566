//! Submissions that meet an open transaction, as an application's own would be.

use anyhow::bail;
use domain::id::SubmissionId;
use domain::submission::IdempotencyKey;
use sqlx::PgConnection;
use store::endpoint::Endpoint;
use store::submission::{Acceptance, NewSubmission};

use super::session::{run, until_it_waits};
use crate::fixture::{Fixture, submission};

/// Takes a key in an open transaction, as an outbox submission does.
async fn hold_key(
    session: &mut PgConnection,
    endpoint: &Endpoint,
    held: &NewSubmission,
) -> anyhow::Result<()> {
    run(session, "begin").await?;
    sqlx::query(
        "insert into fencepost.idempotency_keys
            (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
        values ($1, $2, $3, $4, array[$5], now(), now() + interval '1 day')",
    )
    .bind(endpoint.key.as_uuid())
    .bind(held.idempotency_key.as_ref().map(IdempotencyKey::as_str))
    .bind(held.fingerprint.as_bytes().as_slice())
    .bind(held.id.as_uuid())
    .bind(held.delivery.as_uuid())
    .execute(session)
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_an_open_transaction_holds_delays_only_its_own_request() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let held = submission(&endpoint, Some("held"), b"{}")?;
    let mut session = db.session().await?;
    hold_key(&mut session, &endpoint, &held).await?;
    let batch = [
        submission(&endpoint, Some("free"), b"{}")?,
        submission(&endpoint, Some("held"), b"{}")?,
        submission(&endpoint, None, b"{}")?,
    ];
    let answers = db.store.accept(&batch).await?;
    assert!(matches!(answers[0], Acceptance::Accepted(_)), "{answers:?}");
    assert_eq!(answers[1], Acceptance::KeyInProgress);
    assert!(matches!(answers[2], Acceptance::Accepted(_)), "{answers:?}");
    assert_eq!(db.count("submissions").await?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_rolls_back_leaves_its_key_to_the_loser() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let held = submission(&endpoint, Some("order-1"), b"{}")?;
    let mut session = db.session().await?;
    hold_key(&mut session, &endpoint, &held).await?;
    let loser = submission(&endpoint, Some("order-1"), b"[]")?;
    let (store, waiting) = (db.patient_store().await?, loser.clone());
    let accepting = tokio::spawn(async move { store.accept(&[waiting]).await });
    until_it_waits(&mut db.session().await?, "postgres::submission::accept::insert_new").await?;
    run(&mut session, "rollback").await?;
    let answers = accepting.await??;
    let Acceptance::Accepted(accepted) = &answers[0] else { bail!("{answers:?}") };
    assert_eq!(accepted.submission, loser.id);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_commits_while_the_loser_waits_gives_its_answer() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let held = submission(&endpoint, Some("order-1"), b"{}")?;
    for (payload, replayed) in [(&b"{}"[..], true), (b"[]", false)] {
        let mut session = db.session().await?;
        run(&mut session, "delete from fencepost.idempotency_keys").await?;
        hold_key(&mut session, &endpoint, &held).await?;
        let (store, waiting) =
            (db.patient_store().await?, submission(&endpoint, Some("order-1"), payload)?);
        let accepting = tokio::spawn(async move { store.accept(&[waiting]).await });
        until_it_waits(&mut db.session().await?, "postgres::submission::accept::insert_new")
            .await?;
        run(&mut session, "commit").await?;
        let answers = accepting.await??;
        match &answers[0] {
            Acceptance::Replayed(accepted) if replayed => {
                assert_eq!(accepted.submission, held.id);
            }
            Acceptance::Conflicted if !replayed => {}
            other => bail!("{other:?}"),
        }
    }
    assert_eq!(db.count("submissions").await?, 0, "a loser stores nothing");
    Ok(())
}

/// Between the insert that lost and the look at who won: a lock on the whole table is asked for while
/// the insert still waits, and is had when it ends, before the look can be.
async fn between_insert_and_look(
    what_happens: &'static str,
) -> anyhow::Result<(Fixture, NewSubmission, Vec<Acceptance>)> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let held = submission(&endpoint, Some("order-1"), b"{}")?;
    let mut session = db.session().await?;
    hold_key(&mut session, &endpoint, &held).await?;
    let loser = submission(&endpoint, Some("order-1"), b"{}")?;
    let (store, waiting) = (db.patient_store().await?, loser.clone());
    let accepting = tokio::spawn(async move { store.accept(&[waiting]).await });
    until_it_waits(&mut db.session().await?, "postgres::submission::accept::insert_new").await?;
    let mut other = db.session().await?;
    let happening = tokio::spawn(async move { run(&mut other, what_happens).await });
    until_it_waits(&mut db.session().await?, "postgres::between").await?;
    run(&mut session, "commit").await?;
    happening.await??;
    let answers = accepting.await??;
    Ok((db, loser, answers))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_expires_between_the_insert_and_the_look_is_new() -> anyhow::Result<()> {
    let (db, loser, answers) = between_insert_and_look(
        "-- postgres::between
        begin; lock table fencepost.idempotency_keys in access exclusive mode;
        update fencepost.idempotency_keys set expires_at = now() - interval '1 second'; commit",
    )
    .await?;
    let [Acceptance::Accepted(accepted)] = &answers[..] else { bail!("{answers:?}") };
    assert_eq!(accepted.submission, loser.id);
    assert_eq!(db.count("idempotency_keys").await?, 1, "the old one is forgotten");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_swept_between_the_insert_and_the_look_is_new() -> anyhow::Result<()> {
    let (db, loser, answers) = between_insert_and_look(
        "-- postgres::between
        begin; lock table fencepost.idempotency_keys in access exclusive mode;
        delete from fencepost.idempotency_keys; commit",
    )
    .await?;
    let [Acceptance::Accepted(accepted)] = &answers[..] else { bail!("{answers:?}") };
    assert_eq!(accepted.submission, loser.id);
    assert_eq!(db.count("submissions").await?, 1);
    Ok(())
}

/// An endpoint does not exist before its creation commits, and is claimed from as soon as it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_to_a_brand_new_endpoint_is_claimed_at_once() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let mut session = db.session().await?;
    run(
        &mut session,
        "create table kept as select * from fencepost.endpoints;
        create table kept_schedule as select * from fencepost.endpoint_schedule;
        delete from fencepost.endpoints; delete from fencepost.endpoint_schedule",
    )
    .await?;
    run(
        &mut session,
        "begin; insert into fencepost.endpoints select * from kept;
        insert into fencepost.endpoint_schedule select * from kept_schedule",
    )
    .await?;
    let early = db.accept_one(&submission(&endpoint, None, b"{}")?).await?;
    assert_eq!(early, Acceptance::EndpointMissing);
    run(&mut session, "commit").await?;
    let delivery = db.submit(&endpoint).await?;
    assert_eq!(db.claim_one(&endpoint).await?.delivery, delivery, "no sweep, no mark in between");
    Ok(())
}

/// A delivery that was given its due time before the mark passed, and is committed after, is below
/// the mark: a claim does not look there, a sweep does.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_commits_after_the_mark_passed_it_is_found_by_the_sweep()
-> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let late = submission(&endpoint, None, b"{}")?;
    let mut session = db.session().await?;
    run(&mut session, "begin").await?;
    insert_delivery(&mut session, &endpoint, &late, late.id).await?;
    db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    run(&mut session, "commit").await?;

    assert!(db.due_endpoints(false).await?.is_empty(), "it lies below the mark");
    assert_eq!(db.due_endpoints(true).await?, [endpoint.key]);
    let request = store::delivery::ClaimRequest {
        endpoints: &[endpoint.key],
        per_endpoint: 10,
        total: 10,
        worker: crate::fixture::WORKER,
        token: store::new_id::claim_token(),
        sweep: true,
    };
    let batch = db.store.claim_due(&request).await?;
    assert_eq!(batch.claimed.iter().map(|c| c.delivery).collect::<Vec<_>>(), [late.delivery]);
    Ok(())
}

/// Due ten seconds ago, as if the transaction had begun then.
async fn insert_delivery(
    session: &mut PgConnection,
    endpoint: &Endpoint,
    new: &NewSubmission,
    submission: SubmissionId,
) -> anyhow::Result<()> {
    sqlx::query(
        "insert into fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state)
        values ($1, $2, $3, statement_timestamp() - interval '10 s', 2, 1)",
    )
    .bind(endpoint.key.as_uuid())
    .bind(new.delivery.as_uuid())
    .bind(submission.as_uuid())
    .execute(session)
    .await?;
    Ok(())
}
