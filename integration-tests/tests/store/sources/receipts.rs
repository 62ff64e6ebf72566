//! What is kept of an event beside its body, read from its submission.

use anyhow::Context as _;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, SubmissionId};
use domain::label::Label;
use store::receipt::Receipt;
use time::macros::datetime;

use super::{reception, source};
use crate::fixture::{Fixture, submission};

on_both_stores! {
    the_receipt_of_a_submission_has_its_headers_and_tells_of_other_content,
    the_headers_of_an_event_go_with_its_payload,
    what_no_source_brought_and_what_is_anothers_has_no_receipt,
}

async fn receipt(db: &Fixture, id: SubmissionId) -> anyhow::Result<Option<Receipt>> {
    Ok(db.store.find_receipt(DEFAULT_APPLICATION_KEY, id).await?)
}

async fn the_receipt_of_a_submission_has_its_headers_and_tells_of_other_content(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let mut new = reception(&source, &endpoint, "evt-1", b"a")?;
    new.receipt.action = Some(Label::parse("push")?);
    new.receipt.sent_at = Some(datetime!(2026-11-30 12:00 UTC));
    new.headers.push(("x-github-event".to_owned(), "a second \u{1f642}".to_owned()));
    db.store.receive(&new).await?;
    let mut expected = Receipt {
        source_id: "gh".to_owned(),
        event_id: "evt-1".to_owned(),
        action: Some("push".to_owned()),
        sent_at: new.receipt.sent_at,
        headers: new.headers.clone(),
        conflicted: false,
    };
    assert_eq!(receipt(&db, new.submission.id).await?.as_ref(), Some(&expected));

    db.store.receive(&reception(&source, &endpoint, "evt-1", b"b")?).await?;
    db.store.delete_source(DEFAULT_APPLICATION_KEY, &source.id).await?;
    expected.conflicted = true;
    assert_eq!(receipt(&db, new.submission.id).await?, Some(expected));
    Ok(())
}

async fn the_headers_of_an_event_go_with_its_payload(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let source = source(&db, &endpoint, "gh").await?;
    let [erased, kept] = ["evt-1", "evt-2"].map(|event| reception(&source, &endpoint, event, b"a"));
    let (erased, kept) = (erased?, kept?);
    for new in [&erased, &kept] {
        db.store.receive(new).await?;
    }
    assert!(db.store.erase_payload(DEFAULT_APPLICATION_KEY, erased.submission.id).await?);
    let gone = receipt(&db, erased.submission.id).await?.context("it stays")?;
    assert_eq!((gone.event_id.as_str(), gone.headers.len()), ("evt-1", 0));
    let other = receipt(&db, kept.submission.id).await?.context("another")?;
    assert_eq!(other.headers, kept.headers);
    Ok(())
}

async fn what_no_source_brought_and_what_is_anothers_has_no_receipt(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let plain = submission(&endpoint, None, b"{}")?;
    db.accept_one(&plain).await?;
    assert_eq!(receipt(&db, plain.id).await?, None);

    let new = reception(&source(&db, &endpoint, "gh").await?, &endpoint, "evt-1", b"a")?;
    db.store.receive(&new).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    assert_eq!(db.store.find_receipt(stranger, new.submission.id).await?, None);
    Ok(())
}
