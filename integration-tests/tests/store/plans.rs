//! The plans of the statements on a database with 100,000 submissions, under the settings that the store's
//! sessions have: what a plan reads follows from what is asked for, not from how much lies beside it.

mod dispatch;
mod lists;
mod plan;
mod statement;
mod upkeep;

use anyhow::ensure;
use integration_tests::postgres::{TestDatabase, TestPostgres};
use sqlx::{PgConnection, Row as _};
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use uuid::Uuid;

use self::plan::Plan;
use self::statement::Statement;

/// Filled once. No test changes it, and one at a time looks at it: a lock of another could be read as a
/// row that is not there.
static DATABASE: OnceCell<TestDatabase> = OnceCell::const_new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A session like those of the store, in a database that holds a lot.
struct Large {
    session: PgConnection,
    _alone: MutexGuard<'static, ()>,
}

impl Large {
    async fn open() -> anyhow::Result<Self> {
        let alone = ONE_AT_A_TIME.lock().await;
        let database = DATABASE.get_or_try_init(fill).await?;
        let mut session = database.connect().await?;
        sqlx::raw_sql(store::postgres::STABLE_PLANS).execute(&mut session).await?;
        Ok(Self { session, _alone: alone })
    }

    /// Runs the statement of the store by its name, and answers what its plan did.
    async fn explain(&mut self, name: &str, values: &[String]) -> anyhow::Result<Plan> {
        self.explain_after("", name, values).await
    }

    /// The same behind another statement. What either wrote is rolled back.
    async fn explain_after(
        &mut self,
        before: &str,
        name: &str,
        values: &[String],
    ) -> anyhow::Result<Plan> {
        let Statement { text, types } = Statement::find(name)?;
        let values = values.join(", ");
        let script = format!(
            "begin; {before}; prepare it ({types}) as {text};
            explain (analyze, timing off, summary off, format json) execute it ({values});
            deallocate it; rollback"
        );
        let script = sqlx::raw_sql(sqlx::AssertSqlSafe(script));
        let rows = script.fetch_all(&mut self.session).await?;
        ensure!(rows.len() == 1, "{} plans of {name}", rows.len());
        // The column is `json`, whose text is all that is needed.
        let json = rows[0].try_get_raw(0)?.as_str().map_err(anyhow::Error::from_boxed)?;
        Plan::parse(name, json)
    }

    async fn endpoints(&mut self, numbers: &[u32]) -> anyhow::Result<Vec<Uuid>> {
        let ids: Vec<String> = numbers.iter().map(|number| format!("endpoint-{number}")).collect();
        let keys = sqlx::query_scalar("select key from fencepost.endpoints where id = any($1)");
        Ok(keys.bind(ids).fetch_all(&mut self.session).await?)
    }

    async fn application(&mut self, id: &str) -> anyhow::Result<Uuid> {
        let key = sqlx::query_scalar("select key from fencepost.applications where id = $1");
        Ok(key.bind(id).fetch_one(&mut self.session).await?)
    }
}

async fn fill() -> anyhow::Result<TestDatabase> {
    let database = TestPostgres::shared().await?.database().await?;
    sqlx::raw_sql(include_str!("plans/seed.sql")).execute(&mut database.connect().await?).await?;
    Ok(database)
}

/// A value as it stands in a statement.
fn quoted(value: impl std::fmt::Display) -> String {
    format!("'{value}'")
}

fn array(values: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("'{{{}}}'", values.join(","))
}
