//! Resending: a new submission with the bytes and the `webhook-id` of an old one.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::Verdict;
use domain::endpoint::DisabledCause;
use domain::id::{ApplicationKey, DeliveryId};
use domain::submission::IdempotencyKey;
use integration_tests::race::race;
use store::submission::{Acceptance, NewResend, Resend, Resent};

use crate::fixture::{Fixture, report, submission};

on_both_stores! {
    a_resend_is_a_submission_of_its_own_with_the_bytes_and_the_webhook_id_of_the_old_one,
    of_many_resends_under_one_key_one_is_stored_and_all_get_its_answer,
    a_key_stands_for_one_resend_and_for_nothing_else,
    what_cannot_be_sent_is_not_resent,
    of_an_erasure_and_a_resend_at_once_none_copies_what_was_erased_before,
}

fn resend_of(delivery: DeliveryId, key: Option<&str>) -> anyhow::Result<NewResend> {
    let key = key.map(|key| IdempotencyKey::parse(key.as_bytes())).transpose()?;
    Ok(NewResend::new(DEFAULT_APPLICATION_KEY, delivery, key))
}

async fn resend(db: &Fixture, delivery: DeliveryId) -> anyhow::Result<Resent> {
    match db.store.resend(&resend_of(delivery, None)?).await? {
        Resend::Accepted(resent) => Ok(resent),
        other => bail!("not resent: {other:?}"),
    }
}

async fn a_resend_is_a_submission_of_its_own_with_the_bytes_and_the_webhook_id_of_the_old_one(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let old = submission(&endpoint, None, b"\x00\xff bytes")?;
    db.accept_one(&old).await?;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    let before = db.row(old.delivery).await?;

    let first = resend(&db, old.delivery).await?;
    let second = resend(&db, first.accepted.deliveries[0]).await?;
    assert_eq!(first.endpoint_id, endpoint.id.as_str());
    for (resent, of) in [(&first, old.id), (&second, first.accepted.submission)] {
        let id = resent.accepted.submission;
        assert_eq!(resent.resend_of, of);
        let found =
            db.store.find_submission(DEFAULT_APPLICATION_KEY, id).await?.context("found")?;
        assert_eq!(found.resend_of, Some(of));
        assert_eq!(found.webhook_id, old.webhook_id, "the receiver sees what it saw before");
        assert_eq!(found.deliveries, resent.accepted.deliveries);
        let payloads = db.store.read_payloads(&[(endpoint.key, id)]).await?;
        assert_eq!(payloads[0].payload, old.payload);
        assert_eq!(payloads[0].webhook_id, old.webhook_id);
        assert_eq!(db.row(resent.accepted.deliveries[0]).await?.state, 1);
    }
    assert_eq!(db.row(old.delivery).await?, before, "the old one is as it was");
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 2);
    Ok(())
}

async fn of_many_resends_under_one_key_one_is_stored_and_all_get_its_answer(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let resends =
        (0..8).map(|_| resend_of(delivery, Some("k"))).collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(resends, move |_, resend| {
        let store = Arc::clone(&store);
        async move { Ok(store.resend(&resend).await?) }
    })
    .await?;
    let (mut accepted, mut submissions) = (0, Vec::new());
    for answer in answers {
        match answer {
            Resend::Accepted(resent) => {
                accepted += 1;
                submissions.push(resent.accepted.submission);
            }
            Resend::Replayed(resent) => submissions.push(resent.accepted.submission),
            other => bail!("{other:?}"),
        }
    }
    submissions.dedup();
    assert_eq!((accepted, submissions.len()), (1, 1));
    assert_eq!(db.count("submissions").await?, 2);
    assert_eq!(db.count("deliveries").await?, 2);
    Ok(())
}

async fn a_key_stands_for_one_resend_and_for_nothing_else(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (one, other) = (db.submit(&endpoint).await?, db.submit(&endpoint).await?);
    let answer = db.store.resend(&resend_of(one, Some("k"))?).await?;
    assert!(matches!(answer, Resend::Accepted(_)), "{answer:?}");
    let answer = db.store.resend(&resend_of(other, Some("k"))?).await?;
    assert_eq!(answer, Resend::Conflicted);
    let answer = db.accept_one(&submission(&endpoint, Some("k"), b"{}")?).await?;
    assert_eq!(answer, Acceptance::Conflicted);
    assert_eq!(db.count("submissions").await?, 3);
    db.expire_key("k").await?;
    let answer = db.store.resend(&resend_of(other, Some("k"))?).await?;
    assert!(matches!(answer, Resend::Accepted(_)), "after its window a key is new: {answer:?}");
    Ok(())
}

async fn what_cannot_be_sent_is_not_resent(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (erased, kept) = (db.submit(&endpoint).await?, db.submit(&endpoint).await?);
    let id = db.detail(erased).await?.delivery.submission;
    db.store.erase_payload(DEFAULT_APPLICATION_KEY, id).await?;
    assert_eq!(db.store.resend(&resend_of(erased, None)?).await?, Resend::PayloadErased);

    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    let of_stranger = NewResend::new(stranger, kept, None);
    assert_eq!(db.store.resend(&of_stranger).await?, Resend::Missing);

    db.store.disable_endpoint(endpoint.key, endpoint.version, DisabledCause::Operator).await?;
    assert_eq!(db.store.resend(&resend_of(kept, None)?).await?, Resend::EndpointDisabled);

    let id = db.detail(kept).await?.delivery.submission;
    db.run("delete from {}submissions where id = $1", id.as_uuid()).await?;
    assert_eq!(db.store.resend(&resend_of(kept, None)?).await?, Resend::PayloadExpired);
    assert_eq!(db.count("submissions").await?, 1);
    Ok(())
}

async fn of_an_erasure_and_a_resend_at_once_none_copies_what_was_erased_before(
    db: Fixture,
) -> anyhow::Result<()> {
    for _ in 0..10 {
        let endpoint = db.endpoint().await?;
        let new = submission(&endpoint, None, b"personal")?;
        db.accept_one(&new).await?;
        let (store, resend) = (Arc::clone(&db.store), resend_of(new.delivery, None)?);
        let answers = race([true, false], move |_, erases| {
            let (store, resend) = (Arc::clone(&store), resend.clone());
            async move {
                if erases {
                    store.erase_payload(DEFAULT_APPLICATION_KEY, new.id).await?;
                    return Ok(None);
                }
                Ok(Some(store.resend(&resend).await?))
            }
        })
        .await?;
        match &answers[1] {
            Some(Resend::PayloadErased) => {}
            Some(Resend::Accepted(resent)) => {
                let id = resent.accepted.submission;
                let copied = db.store.read_payloads(&[(endpoint.key, id)]).await?;
                assert_eq!(copied.len(), 1, "a copy that was made is whole");
            }
            other => bail!("{other:?}"),
        }
    }
    Ok(())
}
