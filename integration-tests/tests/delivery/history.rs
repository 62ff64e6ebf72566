//! What must hold of all deliveries and attempts afterwards, read from the tables themselves.

use std::time::Duration;

use anyhow::ensure;
use integration_tests::eventually;
use integration_tests::postgres::TestDatabase;

/// Waits until nothing is owed any more, and answers how many deliveries are in each settled state or
/// failed.
pub(crate) async fn wait_until_nothing_is_owed(
    database: &TestDatabase,
    within: Duration,
) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    eventually("nothing is owed any more", within, async || {
        let owed: i64 =
            sqlx::query_scalar("select count(*) from fencepost.deliveries where state in (1, 2)")
                .fetch_one(&mut connection)
                .await?;
        ensure!(owed == 0, "{owed} deliveries are owed");
        Ok(())
    })
    .await
}

/// Fails if a number has a gap or a repeat, a count differs from its attempts, a slot is taken, or a
/// delivery stands in both tables.
pub(crate) async fn assert_consistent(database: &TestDatabase) -> anyhow::Result<()> {
    let rules = [
        (
            "attempt numbers have no gap and no repeat",
            "select count(*) from (
                select from fencepost.attempts group by delivery
                having count(*) <> max(number) or min(number) <> 1
                    or count(distinct number) <> count(*)
            ) broken",
        ),
        (
            "a delivery counts its attempts",
            "select count(*) from (
                select id, attempts from fencepost.deliveries
                union all select id, attempts from fencepost.settled_deliveries
            ) d where d.attempts <> (
                select count(*) from fencepost.attempts a where a.delivery = d.id
            )",
        ),
        (
            "the slots that are counted are the slots that are held",
            "select count(*) from fencepost.endpoint_schedule s where s.in_flight <> (
                select count(*) from fencepost.deliveries d
                where d.endpoint = s.endpoint and d.state = 2
            )",
        ),
        (
            "a delivery stands in one table",
            "select count(*) from fencepost.deliveries join fencepost.settled_deliveries using (id)",
        ),
        (
            "every submission owes or owed its deliveries",
            "select count(*) from fencepost.submissions s, unnest(s.deliveries) as owed(id)
            where not exists (select from fencepost.deliveries d where d.id = owed.id)
                and not exists (select from fencepost.settled_deliveries d where d.id = owed.id)",
        ),
    ];
    let mut connection = database.connect().await?;
    for (rule, count_of_violations) in rules {
        let violations: i64 =
            sqlx::query_scalar(count_of_violations).fetch_one(&mut connection).await?;
        ensure!(violations == 0, "{violations} violations of: {rule}");
    }
    Ok(())
}

/// Settled deliveries in that state.
pub(crate) async fn settled(database: &TestDatabase, state: i16) -> anyhow::Result<i64> {
    let count =
        sqlx::query_scalar("select count(*) from fencepost.settled_deliveries where state = $1")
            .bind(state)
            .fetch_one(&mut database.connect().await?)
            .await?;
    Ok(count)
}

/// The state in settled deliveries that means delivered.
pub(crate) const DELIVERED: i16 = 4;
