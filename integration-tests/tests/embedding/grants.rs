//! The least that a publisher or a consumer needs, on a real role.

use anyhow::Context as _;
use sqlx::{AssertSqlSafe, PgConnection};
use store::postgres::{DatabaseRole, Right, grant};
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

    let role = DatabaseRole::parse(&name)?;
    grant(database.url(), &role, &[Right::Submit]).await?;
    grant(database.url(), &role, &[Right::Submit]).await?;
    for text in [
        "'orders', '{}'::json, idempotency_key => 'a'",
        "'orders', 'text'",
        r"'orders', '\x00'::bytea",
        "'orders', '{}'::json, idempotency_key => 'a'",
    ] {
        call(&mut publisher, text).await?;
    }

    can_do_nothing_but_call(&mut publisher, &mut session, &name, &["submit"; 3]).await?;
    run(&mut session, format!("drop owned by \"{name}\"; drop role \"{name}\"")).await?;
    Ok(())
}

#[tokio::test]
async fn a_consumer_can_receive_in_its_own_transaction_and_can_read_nothing() -> anyhow::Result<()>
{
    let (database, mut session) = orders().await?;
    let name = format!("Consumer {}", Uuid::now_v7().simple());
    let made = format!(
        "create role \"{name}\"; create table paid (event text); grant insert on paid to \"{name}\""
    );
    run(&mut session, made).await?;
    let mut consumer = database.connect().await?;
    run(&mut consumer, format!("set session authorization \"{name}\"")).await?;
    assert_eq!(refusal(&receive(&mut consumer).await.unwrap_err())?.0, "42501");

    grant(database.url(), &DatabaseRole::parse(&name)?, &[Right::Receive]).await?;
    // Rolled back, it has not happened; committed, it has, together with what the consumer wrote.
    for (end, next) in [("rollback", "first"), ("commit", "duplicate")] {
        run(&mut consumer, "begin".to_owned()).await?;
        assert_eq!(receive(&mut consumer).await?, "first");
        run(&mut consumer, "insert into paid values ('evt_1')".to_owned()).await?;
        run(&mut consumer, end.to_owned()).await?;
        run(&mut consumer, "begin".to_owned()).await?;
        assert_eq!(receive(&mut consumer).await?, next);
        run(&mut consumer, "rollback".to_owned()).await?;
    }
    let paid: i64 = sqlx::query_scalar("select count(*) from paid").fetch_one(&mut session).await?;
    assert_eq!(paid, 1);

    can_do_nothing_but_call(&mut consumer, &mut session, &name, &["receive"]).await?;
    run(&mut session, format!("drop owned by \"{name}\"; drop role \"{name}\"")).await?;
    Ok(())
}

async fn receive(session: &mut PgConnection) -> sqlx::Result<String> {
    sqlx::query_scalar("select outcome from fencepost.receive('stripe', 'evt_1', '\\x7b7d')")
        .fetch_one(session)
        .await
}

/// The role's session may call these functions, read or change no table, and make nothing.
async fn can_do_nothing_but_call(
    granted: &mut PgConnection,
    session: &mut PgConnection,
    name: &str,
    functions: &[&str],
) -> anyhow::Result<()> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class c where c.relnamespace = 'fencepost'::regnamespace
            and c.relkind in ('r', 'p', 'v', 'm')",
    )
    .fetch_all(&mut *session)
    .await?;
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        for text in
            [format!("select 1 from fencepost.{table}"), format!("delete from fencepost.{table}")]
        {
            let refused = run(granted, text).await.err().context("it may not")?;
            assert_eq!(refusal(&refused)?.0, "42501", "{table}");
        }
    }
    let callable: Vec<String> = sqlx::query_scalar(
        "select p.proname::text from pg_proc p where p.pronamespace = 'fencepost'::regnamespace
            and has_function_privilege($1, p.oid, 'execute')",
    )
    .bind(name)
    .fetch_all(&mut *session)
    .await?;
    assert_eq!(callable, functions);
    let create = run(granted, "create table fencepost.mine (id int)".to_owned()).await;
    assert_eq!(refusal(&create.err().context("it may not")?)?.0, "42501");
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
