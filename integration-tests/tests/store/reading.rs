//! Lists and single resources.

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{StateName, Verdict};
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, SubmissionId};
use store::delivery::DeliveryFilter;
use store::submission::SubmissionFilter;
use store::{CreatedWindow, Page};

use crate::fixture::{Fixture, WORKER, failure, report, submission};

on_both_stores! {
    submissions_are_listed_newest_first_by_pages_and_by_endpoint,
    deliveries_of_both_tables_are_listed_together,
    a_list_belongs_to_its_application,
    a_delivery_shows_its_attempts_in_order,
    payloads_that_are_not_there_are_left_out,
    each_of_250_rows_of_one_millisecond_is_told_once,
}

const ANY_TIME: CreatedWindow = CreatedWindow { from: None, below: None };
const ALL: Page = Page { limit: 250, before: None };

async fn submissions_are_listed_newest_first_by_pages_and_by_endpoint(
    db: Fixture,
) -> anyhow::Result<()> {
    let (one, other) = (db.endpoint().await?, db.endpoint().await?);
    let mut ids = Vec::new();
    for endpoint in [&one, &other, &one, &other, &one] {
        let new = submission(endpoint, None, b"{}")?;
        db.accept_one(&new).await?;
        ids.push((endpoint.key, new.id));
    }
    ids.sort_unstable_by_key(|(_, id)| std::cmp::Reverse(*id));
    let mut listed = Vec::new();
    let mut page = Page { limit: 2, before: None };
    loop {
        let filter = SubmissionFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: None,
            created: ANY_TIME,
            page,
        };
        let part = db.store.list_submissions(filter).await?;
        let Some(last) = part.last() else { break };
        page.before = Some(last.id.as_uuid());
        listed.extend(part.iter().map(|s| (s.endpoint, s.id)));
    }
    assert_eq!(listed, ids);
    let filter = SubmissionFilter {
        application: DEFAULT_APPLICATION_KEY,
        endpoint: Some(one.key),
        created: ANY_TIME,
        page: ALL,
    };
    let of_one = db.store.list_submissions(filter).await?;
    assert_eq!(of_one.len(), 3);
    assert!(of_one.iter().all(|s| s.endpoint_id == one.id.as_str()));
    Ok(())
}

async fn deliveries_of_both_tables_are_listed_together(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let failed = db.failed(&endpoint).await?;
    let delivered = db.submit(&endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    let pending = db.submit(&endpoint).await?;
    let list = async |state| {
        let filter = DeliveryFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: Some(endpoint.key),
            state,
            created: ANY_TIME,
            page: ALL,
        };
        let mut ids: Vec<_> =
            db.store.list_deliveries(filter).await?.into_iter().map(|d| (d.id, d.state)).collect();
        ids.sort_unstable();
        anyhow::Ok(ids)
    };
    let mut expected = [
        (failed, StateName::Failed),
        (delivered, StateName::Delivered),
        (pending, StateName::Pending),
    ];
    expected.sort_unstable();
    assert_eq!(list(None).await?, expected);
    for (id, state) in expected {
        assert_eq!(list(Some(state)).await?, [(id, state)]);
    }
    assert!(list(Some(StateName::Expired)).await?.is_empty());
    Ok(())
}

async fn a_list_belongs_to_its_application(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, None, b"{}")?;
    db.accept_one(&new).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    for endpoint in [None, Some(endpoint.key)] {
        let page = ALL;
        let submissions =
            SubmissionFilter { application: stranger, endpoint, created: ANY_TIME, page };
        assert!(db.store.list_submissions(submissions).await?.is_empty());
        let deliveries = DeliveryFilter {
            application: stranger,
            endpoint,
            state: None,
            created: ANY_TIME,
            page,
        };
        assert!(db.store.list_deliveries(deliveries).await?.is_empty());
    }
    assert!(db.store.list_endpoints(stranger, ALL).await?.is_empty());
    assert!(db.store.find_submission(stranger, new.id).await?.is_none());
    Ok(())
}

async fn a_delivery_shows_its_attempts_in_order(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.failed(&endpoint).await?;
    db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
    let claim = db.claim_one(&endpoint).await?;
    let processing = db.detail(delivery).await?.delivery;
    assert_eq!(processing.state, StateName::Processing);
    assert_eq!(processing.claimed_by.as_deref(), Some(WORKER));
    assert!(processing.claim_expires_at.is_some() && processing.due_at.is_none());

    let mut sent = report(claim, failure());
    sent.evidence.response = bytes::Bytes::from_static(b"\xff no");
    sent.evidence.detail = Some("500 Internal Server Error".to_owned());
    db.record(sent.clone()).await?;
    let detail = db.detail(delivery).await?;
    let [first, second] = detail.attempts.as_slice() else {
        anyhow::bail!("{:?}", detail.attempts)
    };
    assert_eq!((first.number, second.number, second.late), (1, 2, false));
    assert_eq!((second.outcome, second.status), ("answered", Some(500)));
    assert_eq!(second.evidence, sent.evidence);
    assert_eq!(second.started_at, sent.started_at);
    assert_eq!((second.duration_millis, second.worker.as_str()), (12, WORKER));
    assert_eq!(detail.delivery.endpoint_id, endpoint.id.as_str());
    Ok(())
}

async fn payloads_that_are_not_there_are_left_out(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, None, b"{}")?;
    db.accept_one(&new).await?;
    let unknown = SubmissionId::from_uuid(store::new_id::uuid_now());
    let stranger = EndpointKey::from_uuid(store::new_id::uuid_now());
    let asked = [(endpoint.key, unknown), (endpoint.key, new.id), (stranger, new.id)];
    let read = db.store.read_payloads(&asked).await?;
    assert_eq!(read.iter().map(|p| p.submission).collect::<Vec<_>>(), [new.id]);
    assert_eq!(read[0].content_type, "application/json");
    Ok(())
}

/// Case C087, with the limits of its walks.
async fn each_of_250_rows_of_one_millisecond_is_told_once(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let millis = store::new_id::unix_millis_now();
    let mut news = Vec::new();
    for _ in 0..250 {
        let mut new = submission(&endpoint, None, b"{}")?;
        new.id = SubmissionId::from_uuid(store::new_id::uuid_of_millis(millis));
        new.delivery = DeliveryId::from_uuid(store::new_id::uuid_of_millis(millis));
        news.push(new);
    }
    db.store.accept(&news).await?;
    let mut expected: Vec<_> = news.iter().map(|new| (new.id, new.delivery)).collect();
    let at = |millis: u64| {
        let nanos = i128::from(millis) * 1_000_000;
        time::OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
    };
    let created = CreatedWindow::of(at(millis), at(millis + 1));
    for limit in [1, 10, 100] {
        let (mut submissions, mut deliveries) = (Vec::new(), Vec::new());
        let mut page = Page { limit, before: None };
        let (application, endpoint) = (DEFAULT_APPLICATION_KEY, None);
        for _ in 0..=250 {
            let filter = SubmissionFilter { application, endpoint, created, page };
            let part = db.store.list_submissions(filter).await?;
            let Some(last) = part.last() else { break };
            page.before = Some(last.id.as_uuid());
            submissions.extend(part.iter().map(|row| row.id));
        }
        page.before = None;
        for _ in 0..=250 {
            let filter = DeliveryFilter { application, endpoint, state: None, created, page };
            let part = db.store.list_deliveries(filter).await?;
            let Some(last) = part.last() else { break };
            page.before = Some(last.id.as_uuid());
            deliveries.extend(part.iter().map(|row| row.id));
        }
        expected.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
        assert_eq!(submissions, expected.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        expected.sort_unstable_by_key(|(_, id)| std::cmp::Reverse(*id));
        assert_eq!(deliveries, expected.iter().map(|(_, id)| *id).collect::<Vec<_>>());
    }
    let later = CreatedWindow::of(at(millis + 1), None);
    let earlier = CreatedWindow::of(None, at(millis));
    for created in [later, earlier] {
        let filter = SubmissionFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: None,
            created,
            page: ALL,
        };
        assert!(db.store.list_submissions(filter).await?.is_empty());
    }
    Ok(())
}
