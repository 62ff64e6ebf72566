//! A server that someone else runs.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Context as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;
use uuid::Uuid;

use super::database::NAME_PREFIX;
use super::{DATABASE_VARIABLE, Server};

/// No test run lasts that long.
const LEFTOVER_AGE: Duration = Duration::from_hours(6);

pub(super) fn server(url: &OsStr) -> anyhow::Result<Server> {
    let url = url.to_str().with_context(|| format!("{DATABASE_VARIABLE} is not UTF-8"))?;
    let url = Url::parse(url).with_context(|| format!("{DATABASE_VARIABLE} is not a URL"))?;
    Ok(Server { url, reaper: None })
}

/// A server that goes on keeps what a killed test run left, and the template of every run. A later run drops
/// it: by age, since the databases of another run may be in use at this moment.
pub(super) async fn drop_old_databases(url: &Url) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(url.as_str()).await?;
    let names: Vec<String> =
        sqlx::query_scalar("select datname from pg_database where starts_with(datname, $1)")
            .bind(NAME_PREFIX)
            .fetch_all(&mut connection)
            .await?;
    for name in names.iter().filter(|name| age(name).is_some_and(|age| age > LEFTOVER_AGE)) {
        // Another run may drop it at the same moment.
        let drop = format!("drop database if exists {name} with (force)");
        sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await.ok();
    }
    Ok(connection.close().await?)
}

fn age(name: &str) -> Option<Duration> {
    let id = Uuid::try_parse(name.strip_prefix(NAME_PREFIX)?).ok()?;
    let (seconds, _) = id.get_timestamp()?.to_unix();
    std::time::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_an_age() {
        let old = format!("{NAME_PREFIX}018bcfe568007000800000000000000a");
        assert!(age(&old).unwrap() > LEFTOVER_AGE);
        assert!(age(&crate::postgres::fresh_name()).is_none_or(|age| age < LEFTOVER_AGE));
        for other in ["postgres", "fencepost_test_", "fencepost_test_mine"] {
            assert_eq!(age(other), None, "{other}");
        }
    }
}
