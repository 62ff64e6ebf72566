use std::thread;

use anyhow::Context as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;

use super::Source;

pub(super) const NAME_PREFIX: &str = "fencepost_test_";

/// A database of one test. On a server of ours it ends with the server, on another's it is dropped with
/// this value.
#[derive(Debug)]
pub struct TestDatabase {
    server: Url,
    name: String,
    url: Url,
    source: Source,
}

impl TestDatabase {
    pub(super) fn new(server: &Url, name: String, source: Source) -> Self {
        Self { server: server.clone(), url: url(server, &name), name, source }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection of the test's own, beside those of what is tested.
    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        PgConnection::connect(self.url())
            .await
            .with_context(|| format!("connecting to {}", self.name))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.source != Source::External {
            return;
        }
        // The test's runtime cannot be blocked on from inside it, and may be ending.
        let (server, name) = (self.server.clone(), self.name.clone());
        let _ = thread::spawn(move || drop_database(&server, &name)).join();
    }
}

/// What fails here is left to the next run, which drops what is old.
fn drop_database(server: &Url, name: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = PgConnection::connect(server.as_str()).await?;
        let drop = format!("drop database {name} with (force)");
        sqlx::query(AssertSqlSafe(drop)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    })
}

/// The same server, another database.
pub(super) fn url(server: &Url, database: &str) -> Url {
    let mut url = server.clone();
    url.set_path(database);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_the_url_changes() {
        let server = Url::parse("postgres://u:p@h:1/postgres?host=%2Ftmp%2Fx").unwrap();
        assert_eq!(url(&server, "a").as_str(), "postgres://u:p@h:1/a?host=%2Ftmp%2Fx");
    }
}
