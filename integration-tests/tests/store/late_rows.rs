//! Lists beside rows that commit behind what was read already (case C068).

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{DeliveryId, SubmissionId};
use store::delivery::DeliveryFilter;
use store::endpoint::Endpoint;
use store::outbox::{Draft, Limits};
use store::submission::{NewSubmission, SubmissionFilter};
use store::{CreatedWindow, Page};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::fixture::{Fixture, submission};

on_both_stores! {
    a_row_that_commits_ahead_of_the_cursor_is_in_the_next_part,
    a_row_that_commits_behind_the_cursor_is_told_to_who_reads_again,
    who_follows_a_list_finds_a_late_row_by_reading_from_before_it,
}

const FROM_THE_NEWEST: Page = Page { limit: 250, before: None };

#[derive(Debug, Clone, Copy)]
enum List {
    Submissions,
    Deliveries,
}

impl List {
    const ALL: [Self; 2] = [Self::Submissions, Self::Deliveries];

    /// The ids of one part, of what was made in that millisecond or later.
    async fn read(self, db: &Fixture, after: u64, page: Page) -> anyhow::Result<Vec<Uuid>> {
        let nanos = i128::from(after) * 1_000_000;
        let after = OffsetDateTime::from_unix_timestamp_nanos(nanos)?;
        let created = CreatedWindow::of(Some(after), None);
        let (application, endpoint) = (DEFAULT_APPLICATION_KEY, None);
        Ok(match self {
            Self::Submissions => {
                let filter = SubmissionFilter { application, endpoint, created, page };
                let rows = db.store.list_submissions(filter).await?;
                rows.iter().map(|row| row.id.as_uuid()).collect()
            }
            Self::Deliveries => {
                let state = None;
                let filter = DeliveryFilter { application, endpoint, state, created, page };
                let rows = db.store.list_deliveries(filter).await?;
                rows.iter().map(|row| row.id.as_uuid()).collect()
            }
        })
    }

    /// The ids of these in this list.
    fn ids<const N: usize>(self, rows: [&NewSubmission; N]) -> [Uuid; N] {
        rows.map(|row| match self {
            Self::Submissions => row.id.as_uuid(),
            Self::Deliveries => row.delivery.as_uuid(),
        })
    }
}

/// Made in this millisecond, whenever it is accepted.
fn made_in(millis: u64, endpoint: &Endpoint) -> anyhow::Result<NewSubmission> {
    let mut new = submission(endpoint, None, b"{}")?;
    new.id = SubmissionId::from_uuid(store::new_id::uuid_of_millis(millis));
    new.delivery = DeliveryId::from_uuid(store::new_id::uuid_of_millis(millis));
    Ok(new)
}

async fn a_row_that_commits_ahead_of_the_cursor_is_in_the_next_part(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, now) = (db.endpoint().await?, store::new_id::unix_millis_now());
    let [oldest, late, newer, newest] = [
        made_in(now - 2, &endpoint)?,
        made_in(now - 1, &endpoint)?,
        made_in(now, &endpoint)?,
        made_in(now + 1, &endpoint)?,
    ];
    for new in [&oldest, &newer, &newest] {
        db.accept_one(new).await?;
    }
    let mut first_parts = Vec::new();
    for list in List::ALL {
        let part = list.read(&db, 0, Page { limit: 2, before: None }).await?;
        assert_eq!(part, list.ids([&newest, &newer]), "{list:?}");
        first_parts.push(part);
    }
    db.accept_one(&late).await?;
    for (list, part) in List::ALL.into_iter().zip(first_parts) {
        let next = Page { limit: 2, before: part.last().copied() };
        assert_eq!(list.read(&db, 0, next).await?, list.ids([&late, &oldest]), "{list:?}");
    }
    Ok(())
}

async fn a_row_that_commits_behind_the_cursor_is_told_to_who_reads_again(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, now) = (db.endpoint().await?, store::new_id::unix_millis_now());
    let [oldest, late, newer] =
        [made_in(now - 2, &endpoint)?, made_in(now - 1, &endpoint)?, made_in(now, &endpoint)?];
    db.accept_one(&oldest).await?;
    db.accept_one(&newer).await?;
    for list in List::ALL {
        let part = list.read(&db, 0, FROM_THE_NEWEST).await?;
        assert_eq!(part, list.ids([&newer, &oldest]), "{list:?}");
    }
    db.accept_one(&late).await?;
    for list in List::ALL {
        let [end] = list.ids([&oldest]);
        let next = Page { limit: 250, before: Some(end) };
        assert!(list.read(&db, 0, next).await?.is_empty(), "{list:?}: a cursor does not turn back");
        let again = list.read(&db, 0, FROM_THE_NEWEST).await?;
        assert_eq!(again, list.ids([&newer, &late, &oldest]), "{list:?}");
    }
    Ok(())
}

async fn who_follows_a_list_finds_a_late_row_by_reading_from_before_it(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, now) = (db.endpoint().await?, store::new_id::unix_millis_now());
    let [late, newer] = [made_in(now - 5_000, &endpoint)?, made_in(now, &endpoint)?];
    db.accept_one(&newer).await?;
    db.accept_one(&late).await?;
    for list in List::ALL {
        let from_the_last = list.read(&db, now, FROM_THE_NEWEST).await?;
        assert_eq!(
            from_the_last,
            list.ids([&newer]),
            "{list:?}: its time is no mark to go on from"
        );
        let from_before = list.read(&db, now - 5_000, FROM_THE_NEWEST).await?;
        assert_eq!(from_before, list.ids([&newer, &late]), "{list:?}");
    }
    Ok(())
}

/// Nothing tells a reader that a row is coming: only its commit does.
#[tokio::test]
async fn a_submission_of_an_open_transaction_is_listed_at_its_own_time_once_it_commits()
-> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let pool = sqlx::PgPool::connect(db.url()).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    let draft = Draft::new(endpoint.id.as_str(), "{}");
    let late = store::postgres::accept_in_tx(&mut tx, &draft, &Limits::default()).await?.accepted;
    let late_millis = late.submission.as_uuid().as_u64_pair().0 >> 16;
    let newer = made_in(late_millis + 1, &endpoint)?;
    db.accept_one(&newer).await?;
    for list in List::ALL {
        assert_eq!(list.read(&db, 0, FROM_THE_NEWEST).await?, list.ids([&newer]), "{list:?}");
    }
    tx.commit().await?;

    let mut row = made_in(late_millis, &endpoint)?;
    (row.id, row.delivery) = (late.submission, late.deliveries[0]);
    for list in List::ALL {
        let from_the_last = list.read(&db, late_millis + 1, FROM_THE_NEWEST).await?;
        assert_eq!(from_the_last, list.ids([&newer]), "{list:?}");
        let from_its_time = list.read(&db, late_millis, FROM_THE_NEWEST).await?;
        assert_eq!(from_its_time, list.ids([&newer, &row]), "{list:?}");
    }
    assert_eq!(db.due_endpoints(true).await?, [endpoint.key], "and what is owed is found by state");
    Ok(())
}
