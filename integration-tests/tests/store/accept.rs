//! Accepting submissions (G4, G10, G11).

use std::sync::Arc;

use anyhow::bail;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::EndpointKey;
use integration_tests::race::race;
use store::submission::Acceptance;

use crate::fixture::{Fixture, submission};

on_both_stores! {
    a_submission_and_its_delivery_are_stored_together,
    the_stored_bytes_are_the_accepted_bytes,
    of_many_concurrent_copies_one_is_stored_and_all_get_its_answer,
    the_same_key_with_other_content_is_refused_and_nothing_is_stored,
    a_key_belongs_to_its_endpoint,
    without_a_key_every_submission_is_new,
    of_equal_keys_in_one_call_the_first_wins,
    a_repeated_call_whose_answer_was_lost_stores_nothing_twice,
    an_expired_key_is_new_and_its_old_delivery_stays,
    a_missing_or_deleted_endpoint_stores_nothing_and_holds_back_no_other,
}

async fn a_submission_and_its_delivery_are_stored_together(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, Some("order-1"), b"{}")?;
    let Acceptance::Accepted(accepted) = db.accept_one(&new).await? else {
        bail!("it was not accepted")
    };
    assert_eq!(accepted.submission, new.id);
    assert_eq!(accepted.deliveries, [new.delivery]);
    let stored = db.store.find_submission(DEFAULT_APPLICATION_KEY, new.id).await?;
    assert_eq!(stored.map(|s| (s.deliveries, s.payload_bytes)), Some((vec![new.delivery], 2)));
    let row = db.row(new.delivery).await?;
    assert_eq!((row.state, row.attempts, row.claim_token), (1, 0, None));
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key], "it is due at once");
    Ok(())
}

async fn the_stored_bytes_are_the_accepted_bytes(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let payloads: [&[u8]; 5] = [
        b"",
        b"{\"b\":1,\"a\":2,\"aa\":3,\"Z\":{\"y\":1,\"x\":2}}",
        b"{\"u64\":18446744073709551615,\"f\":9007199254740991.0}",
        "{\"t\":\"ñ 😊 \u{2028}\"}".as_bytes(),
        &every_byte,
    ];
    for payload in payloads {
        let new = submission(&endpoint, None, payload)?;
        db.accept_one(&new).await?;
        let read = db.store.read_payloads(&[(endpoint.key, new.id)]).await?;
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].payload, payload);
        assert_eq!(read[0].webhook_id, new.id.as_uuid());
    }
    Ok(())
}

async fn of_many_concurrent_copies_one_is_stored_and_all_get_its_answer(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let copies = (0..20)
        .map(|_| submission(&endpoint, Some("order-1"), b"{}"))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(copies, move |_, copy| {
        let store = Arc::clone(&store);
        async move { Ok(store.accept(&[copy]).await?) }
    })
    .await?;
    let mut winners = Vec::new();
    let mut replayed = Vec::new();
    for answer in answers.into_iter().flatten() {
        match answer {
            Acceptance::Accepted(accepted) => winners.push(accepted),
            Acceptance::Replayed(accepted) => replayed.push(accepted),
            other => bail!("neither accepted nor replayed: {other:?}"),
        }
    }
    assert_eq!((winners.len(), replayed.len()), (1, 19));
    assert!(replayed.iter().all(|answer| *answer == winners[0]), "all get the winner's answer");
    assert_eq!(db.count("submissions").await?, 1);
    assert_eq!(db.count("deliveries").await?, 1);
    Ok(())
}

async fn the_same_key_with_other_content_is_refused_and_nothing_is_stored(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.accept_one(&submission(&endpoint, Some("order-1"), b"{\"a\":1}")?).await?;
    let other = submission(&endpoint, Some("order-1"), b"{\"a\": 1}")?;
    assert_eq!(db.accept_one(&other).await?, Acceptance::Conflicted);
    assert_eq!(db.count("submissions").await?, 1);
    assert_eq!(db.count("deliveries").await?, 1);
    Ok(())
}

async fn a_key_belongs_to_its_endpoint(db: Fixture) -> anyhow::Result<()> {
    let (one, other) = (db.endpoint().await?, db.endpoint().await?);
    for endpoint in [&one, &other] {
        let answer = db.accept_one(&submission(endpoint, Some("order-1"), b"{}")?).await?;
        assert!(matches!(answer, Acceptance::Accepted(_)), "{answer:?}");
    }
    Ok(())
}

async fn without_a_key_every_submission_is_new(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..3 {
        db.submit(&endpoint).await?;
    }
    assert_eq!(db.count("submissions").await?, 3);
    assert_eq!(db.count("idempotency_keys").await?, 0);
    Ok(())
}

async fn of_equal_keys_in_one_call_the_first_wins(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let first = submission(&endpoint, Some("order-1"), b"{}")?;
    let batch = [
        first.clone(),
        submission(&endpoint, Some("order-1"), b"{}")?,
        submission(&endpoint, Some("order-1"), b"[]")?,
        submission(&endpoint, Some("order-2"), b"[]")?,
    ];
    let answers = db.store.accept(&batch).await?;
    let [
        Acceptance::Accepted(won),
        Acceptance::Replayed(same),
        Acceptance::Conflicted,
        Acceptance::Accepted(_),
    ] = answers.as_slice()
    else {
        bail!("{answers:?}")
    };
    assert_eq!((won.submission, won), (first.id, same));
    assert_eq!(db.count("submissions").await?, 2);
    Ok(())
}

async fn a_repeated_call_whose_answer_was_lost_stores_nothing_twice(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let batch =
        [submission(&endpoint, Some("order-1"), b"{}")?, submission(&endpoint, None, b"{}")?];
    let first = db.store.accept(&batch).await?;
    let again = db.store.accept(&batch).await?;
    assert_eq!(again, first, "the answer that was lost, with its time");
    for (answer, new) in again.iter().zip(&batch) {
        let Acceptance::Accepted(accepted) = answer else { bail!("{answer:?}") };
        assert_eq!((accepted.submission, &accepted.deliveries), (new.id, &vec![new.delivery]));
    }
    assert_eq!(db.count("submissions").await?, 2);
    assert_eq!(db.count("deliveries").await?, 2);
    Ok(())
}

async fn an_expired_key_is_new_and_its_old_delivery_stays(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let old = submission(&endpoint, Some("order-1"), b"{}")?;
    db.accept_one(&old).await?;
    db.expire_key("order-1").await?;
    let new = submission(&endpoint, Some("order-1"), b"[]")?;
    let answer = db.accept_one(&new).await?;
    assert!(matches!(answer, Acceptance::Accepted(a) if a.submission == new.id));
    assert_eq!(db.row(old.delivery).await?.state, 1);
    assert_eq!(db.count("idempotency_keys").await?, 1);
    Ok(())
}

async fn a_missing_or_deleted_endpoint_stores_nothing_and_holds_back_no_other(
    db: Fixture,
) -> anyhow::Result<()> {
    let (live, deleted) = (db.endpoint().await?, db.endpoint().await?);
    db.delete(&deleted).await?;
    let mut unknown = submission(&live, Some("order-1"), b"{}")?;
    unknown.endpoint = EndpointKey::from_uuid(store::new_id::uuid_now());
    let batch =
        [unknown, submission(&deleted, None, b"{}")?, submission(&live, Some("order-1"), b"{}")?];
    let answers = db.store.accept(&batch).await?;
    assert_eq!(answers[..2], [Acceptance::EndpointMissing, Acceptance::EndpointMissing]);
    assert!(matches!(answers[2], Acceptance::Accepted(_)));
    assert_eq!(db.count("submissions").await?, 1);
    assert_eq!(db.count("idempotency_keys").await?, 1);
    Ok(())
}
