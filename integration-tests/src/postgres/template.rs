//! The database that all others are copies of: migrating costs more than copying.

use anyhow::Context as _;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;

use super::{database, fresh_name};

pub(super) async fn create(server: &Url) -> anyhow::Result<String> {
    let name = fresh_name();
    let mut connection = PgConnection::connect(server.as_str()).await?;
    execute(&mut connection, format!("create database {name}")).await?;
    store::postgres::migrate(database::url(server, &name).as_str()).await?;
    // A database that somebody is connected to cannot be copied.
    execute(&mut connection, format!("alter database {name} with allow_connections false")).await?;
    connection.close().await?;
    Ok(name)
}

/// Copies of one template may be made at once: each holds a share lock on it, and none connects to it.
pub(super) async fn clone(
    connection: &mut PgConnection,
    template: &str,
    name: &str,
) -> anyhow::Result<()> {
    execute(connection, format!("create database {name} template {template}")).await
}

/// Every name in such a statement is made by `fresh_name`, of letters, digits and underscores.
async fn execute(connection: &mut PgConnection, statement: String) -> anyhow::Result<()> {
    let result = sqlx::query(AssertSqlSafe(statement.clone())).execute(connection).await;
    result.map(drop).context(statement)
}
