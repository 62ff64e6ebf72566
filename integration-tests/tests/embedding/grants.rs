//! The least that a publisher needs, on a real role.

use sqlx::{AssertSqlSafe, PgConnection};
use store::postgres::{PublisherRole, grant_publisher};
use uuid::Uuid;

use crate::sql_function::{call, orders, refusal};

async fn run(session: &mut PgConnection, text: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(text)).execute(session).await.map(drop)
}

#[tokio::test]
async fn a_publisher_can_submit_and_can_read_nothing() -> anyhow::Result<()> {
    let (database, mut session) = orders().await?;
    // A name that has to be quoted.
    let name = format!("Publisher {}", Uuid::now_v7().simple());
    run(&mut session, format!("create role \"{name}\"")).await?;
    let as_publisher = format!("set session authorization \"{name}\"");

    let mut publisher = database.connect().await?;
    run(&mut publisher, as_publisher).await?;
    let refused = call(&mut publisher, "'orders', '{}'::json").await;
    assert_eq!(refusal(&refused.unwrap_err())?.0, "42501", "nothing was granted yet");

    let role = PublisherRole::parse(&name)?;
    grant_publisher(database.url(), &role).await?;
    grant_publisher(database.url(), &role).await?;
    for text in [
        "'orders', '{}'::json, idempotency_key => 'a'",
        "'orders', 'text'",
        r"'orders', '\x00'::bytea",
        "'orders', '{}'::json, idempotency_key => 'a'",
    ] {
        call(&mut publisher, text).await?;
    }

    let tables: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class c where c.relnamespace = 'fencepost'::regnamespace
            and c.relkind in ('r', 'p', 'v', 'm')",
    )
    .fetch_all(&mut session)
    .await?;
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        for text in
            [format!("select 1 from fencepost.{table}"), format!("delete from fencepost.{table}")]
        {
            let refused = run(&mut publisher, text).await;
            assert_eq!(refusal(&refused.unwrap_err())?.0, "42501", "{table}");
        }
    }
    let callable: Vec<String> = sqlx::query_scalar(
        "select p.proname::text from pg_proc p where p.pronamespace = 'fencepost'::regnamespace
            and has_function_privilege($1, p.oid, 'execute')",
    )
    .bind(&name)
    .fetch_all(&mut session)
    .await?;
    assert_eq!(callable, ["submit"; 3]);
    let create = run(&mut publisher, "create table fencepost.mine (id int)".to_owned()).await;
    assert_eq!(refusal(&create.unwrap_err())?.0, "42501");

    run(&mut session, format!("drop owned by \"{name}\"; drop role \"{name}\"")).await?;
    Ok(())
}

/// What the function calls is found in the catalog, whatever the caller has put in its way.
#[tokio::test]
async fn a_publishers_search_path_changes_nothing() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    sqlx::raw_sql(
        "create schema evil;
        create function evil.octet_length(bytea) returns integer language sql as 'select 0/0';
        create function evil.sha256(bytea) returns bytea language sql as 'select null::bytea';
        set search_path = evil, pg_catalog",
    )
    .execute(&mut session)
    .await?;
    call(&mut session, "'orders', '{}'::json, idempotency_key => 'a'").await?;
    Ok(())
}
