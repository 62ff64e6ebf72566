//! Sessions that stand still where a test wants them to.

use std::time::Duration;

use anyhow::ensure;
use integration_tests::eventually;
use sqlx::PgConnection;

/// Long beside anything that is waited for.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) async fn run(session: &mut PgConnection, text: &'static str) -> anyhow::Result<()> {
    sqlx::raw_sql(text).execute(session).await?;
    Ok(())
}

/// Waits until a statement with that leading comment waits for a lock.
pub(crate) async fn until_it_waits(
    session: &mut PgConnection,
    comment: &str,
) -> anyhow::Result<()> {
    eventually("the statement waits for a lock", LONG, async || {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
            where wait_event_type = 'Lock' and state = 'active' and query like '-- ' || $1 || '%'",
        )
        .bind(comment)
        .fetch_one(&mut *session)
        .await?;
        ensure!(waiting > 0, "no {comment} waits");
        Ok(())
    })
    .await
}
