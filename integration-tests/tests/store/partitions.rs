//! History goes when its time is over and nothing of it is owed: days on PostgreSQL, rows on SQLite.

use std::time::Duration;

use domain::delivery::Verdict;
use domain::id::{DeliveryId, SubmissionId};
use store::endpoint::Endpoint;
use store::new_id::{unix_millis_now, uuid_of_millis};
use store::submission::NewSubmission;

use crate::fixture::{Fixture, report, submission};

/// Longer than history is kept.
pub(crate) const AGE: Duration = Duration::from_hours(24 * 40);

/// A submission of 40 days ago.
pub(crate) fn old(endpoint: &Endpoint) -> anyhow::Result<NewSubmission> {
    let millis = unix_millis_now() - u64::try_from(AGE.as_millis())?;
    let mut new = submission(endpoint, None, b"old")?;
    new.id = SubmissionId::from_uuid(uuid_of_millis(millis));
    new.delivery = DeliveryId::from_uuid(uuid_of_millis(millis));
    new.webhook_id = new.id.as_uuid();
    Ok(new)
}

mod on_sqlite {
    use super::*;

    #[tokio::test]
    async fn old_history_is_deleted_in_batches_and_what_is_owed_stays() -> anyhow::Result<()> {
        let db = Fixture::sqlite().await?;
        let endpoint = db.endpoint().await?;
        let owed = old(&endpoint)?;
        db.accept_one(&owed).await?;
        db.claim_one(&endpoint).await?;
        for _ in 0..3 {
            db.accept_one(&old(&endpoint)?).await?;
            let claim = db.claim_one(&endpoint).await?;
            db.record(report(claim, Verdict::Delivered)).await?;
        }
        let young = db.submit(&endpoint).await?;
        let claim = db.claim_one(&endpoint).await?;
        db.record(report(claim, Verdict::Delivered)).await?;

        let mut removed = Vec::new();
        loop {
            let cleared = db.store.clear_history(2).await?;
            removed.push(cleared.removed);
            if !cleared.more {
                break;
            }
        }
        assert_eq!(removed, [2, 2, 2, 0], "three deliveries and three submissions");
        assert_eq!(db.count("settled_deliveries").await?, 1);
        assert_eq!(db.count("attempts").await?, 1);
        assert_eq!(db.count("submissions").await?, 2);
        assert_eq!(db.row(owed.delivery).await?.state, 2);
        assert_eq!(db.row(young).await?.state, 4);
        Ok(())
    }
}

pub(crate) mod on_postgres {
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
    use store::maintenance::{Cleared, WhyKept};
    use time::{OffsetDateTime, UtcOffset};
    use uuid::Uuid;

    use super::*;

    const PARENTS: [&str; 3] = ["submissions", "settled_deliveries", "attempts"];

    /// The partitions of a day, counted whether they are attached or not.
    pub(crate) struct Day {
        pub(crate) name: String,
        from: Uuid,
        to: Uuid,
    }

    pub(crate) fn day(ago: Duration) -> anyhow::Result<Day> {
        let date = (OffsetDateTime::now_utc() - ago).to_offset(UtcOffset::UTC).date();
        let bound = |date: time::Date| {
            let millis = date.midnight().assume_utc().unix_timestamp() * 1_000;
            anyhow::Ok(Uuid::from_u128(u128::try_from(millis)? << 80))
        };
        let name = format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day());
        Ok(Day { name, from: bound(date)?, to: bound(date + time::Duration::DAY)? })
    }

    impl Day {
        pub(crate) async fn make(&self, connection: &mut PgConnection) -> anyhow::Result<()> {
            for parent in PARENTS {
                let (name, from, to) = (&self.name, self.from, self.to);
                let text = format!(
                    "create table fencepost.{parent}_{name} partition of fencepost.{parent}
                    for values from ('{from}') to ('{to}')"
                );
                connection.execute(AssertSqlSafe(text)).await?;
            }
            Ok(())
        }

        /// How many tables there are, and how many of them are attached.
        async fn tables(&self, connection: &mut PgConnection) -> anyhow::Result<(i64, i64)> {
            Ok(sqlx::query_as(
                "select count(*), count(i.inhrelid)
                from pg_class c left join pg_inherits i on i.inhrelid = c.oid
                where c.relkind = 'r' and c.relname like '%\\_' || $1",
            )
            .bind(&self.name)
            .fetch_one(connection)
            .await?)
        }

        async fn run(
            &self,
            connection: &mut PgConnection,
            text: impl Fn(&str, &str) -> String,
        ) -> anyhow::Result<()> {
            for parent in PARENTS {
                let text = text(parent, &format!("{parent}_{}", self.name));
                connection.execute(AssertSqlSafe(text)).await?;
            }
            Ok(())
        }
    }

    fn kept(cleared: &Cleared) -> Vec<WhyKept> {
        cleared.kept.iter().map(|(_, why)| *why).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_submission_that_meets_no_partition_makes_it() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        let mut connection = db.connection().await?;
        let today = day(Duration::ZERO)?;
        today.run(&mut connection, |_, name| format!("drop table fencepost.{name}")).await?;
        let delivery = db.submit(&endpoint).await?;
        assert_eq!(today.tables(&mut connection).await?, (3, 3));
        let claim = db.claim_one(&endpoint).await?;
        db.record(report(claim, Verdict::Delivered)).await?;
        assert_eq!(db.row(delivery).await?.state, 4);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_id_of_a_day_long_past_makes_no_partition() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        assert!(db.accept_one(&old(&endpoint)?).await.is_err());
        let mut connection = db.connection().await?;
        assert_eq!(day(AGE)?.tables(&mut connection).await?, (0, 0));
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn upkeep_makes_the_partitions_of_the_days_to_come() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut connection = db.connection().await?;
        let today = day(Duration::ZERO)?;
        today.run(&mut connection, |_, name| format!("drop table fencepost.{name}")).await?;
        db.store.prepare_history().await?;
        assert_eq!(today.tables(&mut connection).await?, (3, 3));
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_is_dropped_when_nothing_of_it_is_owed_any_more() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        let new = old(&endpoint)?;
        db.accept_one(&new).await?;
        let claim = db.claim_one(&endpoint).await?;

        let cleared = db.store.clear_history(1).await?;
        assert_eq!((cleared.removed, kept(&cleared)), (0, vec![WhyKept::Owed]));
        assert_eq!(day.tables(&mut connection).await?, (3, 3));
        db.record(report(claim, Verdict::Delivered)).await?;

        let cleared = db.store.clear_history(1).await?;
        assert_eq!((cleared.removed, kept(&cleared)), (1, vec![]));
        assert_eq!(day.tables(&mut connection).await?, (0, 0));
        assert_eq!(db.store.clear_history(1).await?, Cleared::default());
        db.submit(&endpoint).await?;
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_that_an_open_submission_uses_is_kept_until_that_is_over() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        let new = old(&endpoint)?;
        let mut submitter = db.connection().await?;
        let mut open = submitter.begin().await?;
        sqlx::query(
            "with s as (insert into fencepost.submissions (endpoint, id, webhook_id, received_at,
                payload_bytes, deliveries, content_type, payload)
                values ($1, $2, $2, statement_timestamp(), 0, array[$3], 'text/plain', ''))
            insert into fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state)
            values ($1, $3, $2, statement_timestamp(), 0, 1)",
        )
        .bind(endpoint.key.as_uuid())
        .bind(new.id.as_uuid())
        .bind(new.delivery.as_uuid())
        .execute(&mut *open)
        .await?;
        assert_eq!(kept(&db.store.clear_history(1).await?), [WhyKept::InUse]);
        // It gave up before it marked or detached anything: what is accepted meanwhile has its day.
        let begun: i64 = sqlx::query_scalar(
            "select count(*) from pg_class c left join pg_inherits i on i.inhrelid = c.oid
            where c.relkind = 'r' and c.relname like '%\\_' || $1
                and (obj_description(c.oid, 'pg_class') is not null or i.inhdetachpending)",
        )
        .bind(&day.name)
        .fetch_one(&mut connection)
        .await?;
        assert_eq!(begun, 0);
        open.commit().await?;
        assert_eq!(kept(&db.store.clear_history(1).await?), [WhyKept::Owed]);
        assert_eq!(day.tables(&mut connection).await?, (3, 3));
        let claim = db.claim_one(&endpoint).await?;
        db.record(report(claim, Verdict::Delivered)).await?;
        assert_eq!(db.row(new.delivery).await?.state, 4, "its result can be recorded");
        Ok(())
    }

    const MARK: &str = "Over, and being dropped by the maintenance of Fencepost.";

    fn detach(parent: &str, name: &str) -> String {
        format!("alter table fencepost.{parent} detach partition fencepost.{name}")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_that_a_crash_left_detached_is_dropped_the_next_time() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        let mark = |_: &str, name: &str| format!("comment on table fencepost.{name} is '{MARK}'");
        day.run(&mut connection, mark).await?;
        connection
            .execute(AssertSqlSafe(detach(PARENTS[0], &format!("{}_{}", PARENTS[0], day.name))))
            .await?;
        assert_eq!(day.tables(&mut connection).await?, (3, 2));
        assert_eq!(db.store.clear_history(1).await?.removed, 1);
        assert_eq!(day.tables(&mut connection).await?, (0, 0));
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_that_was_detached_and_is_owed_after_all_is_attached_again() -> anyhow::Result<()>
    {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        let new = old(&endpoint)?;
        db.accept_one(&new).await?;
        let mark = |_: &str, name: &str| format!("comment on table fencepost.{name} is '{MARK}'");
        day.run(&mut connection, mark).await?;
        day.run(&mut connection, detach).await?;
        assert_eq!(kept(&db.store.clear_history(1).await?), [WhyKept::Owed]);
        assert_eq!(day.tables(&mut connection).await?, (3, 3));
        assert_eq!(db.store.read_payloads(&[(endpoint.key, new.id)]).await?.len(), 1);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_that_somebody_detached_to_keep_it_stays() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        day.run(&mut connection, detach).await?;
        assert_eq!(db.store.clear_history(1).await?, Cleared::default());
        assert_eq!(day.tables(&mut connection).await?, (3, 0));
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_two_leaders_that_drop_one_day_neither_fails() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut connection = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut connection).await?;
        let store = std::sync::Arc::clone(&db.store);
        integration_tests::race::race(0..3, move |_, _| {
            let store = std::sync::Arc::clone(&store);
            async move { Ok(store.clear_history(1).await?) }
        })
        .await?;
        db.store.clear_history(1).await?;
        assert_eq!(day.tables(&mut connection).await?, (0, 0));
        Ok(())
    }
}
