//! What `fencepost.submit` stores.

use anyhow::{Context as _, bail};
use integration_tests::postgres::{TestDatabase, TestPostgres};
use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use uuid::Uuid;

/// A database with the endpoint `orders`, and a session on it.
pub(crate) async fn orders() -> anyhow::Result<(TestDatabase, PgConnection)> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut session = database.connect().await?;
    let made = sqlx::query(
        "insert into fencepost.endpoints (key, application, id, url, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses, in_flight_max)
        select '00000000-0000-7000-8000-000000000007', key, 'orders', 'http://127.0.0.1:9/', 1000,
            1000, '{1000}', 60000, '{}', 32
        from fencepost.applications where id = 'default'",
    );
    made.execute(&mut session).await?;
    Ok((database, session))
}

#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Told {
    pub(crate) submission: Uuid,
    pub(crate) deliveries: Vec<Uuid>,
    pub(crate) replayed: bool,
}

/// Runs one call.
pub(crate) async fn call(session: &mut PgConnection, text: &'static str) -> sqlx::Result<Told> {
    let text = format!("select * from fencepost.submit({text})");
    let row = sqlx::query(AssertSqlSafe(text)).fetch_one(session).await?;
    Ok(Told {
        submission: row.try_get("submission_id")?,
        deliveries: row.try_get("delivery_ids")?,
        replayed: row.try_get("replayed")?,
    })
}

/// The SQLSTATE and the first word of the message.
pub(crate) fn refusal(error: &sqlx::Error) -> anyhow::Result<(String, String)> {
    let error = error.as_database_error().context("not refused by the database")?;
    let state = error.code().context("no state")?.into_owned();
    let field = error.message().split(':').next().unwrap_or_default().to_owned();
    Ok((state, field))
}

pub(crate) async fn count(session: &mut PgConnection, table: &str) -> anyhow::Result<i64> {
    let text = format!("select count(*) from fencepost.{table}");
    Ok(sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(session).await?)
}

#[tokio::test]
async fn bytes_text_and_json_are_stored_as_they_were_given() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    let forms: [(_, &[u8], _); 4] = [
        (r"'orders', '\x00ff'::bytea", b"\x00\xff", "application/octet-stream"),
        ("'orders', 'ñ 😊', 'text/plain'", "ñ 😊".as_bytes(), "text/plain"),
        (r#"'orders', '{"b":1,  "a":1.0}'::json"#, br#"{"b":1,  "a":1.0}"#, "application/json"),
        ("'orders', ''", b"", "application/octet-stream"),
    ];
    for (text, bytes, content_type) in forms {
        let told = call(&mut session, text).await?;
        let row = sqlx::query(
            "select s.payload, s.content_type, s.payload_bytes, s.webhook_id, s.deliveries,
                d.state, d.due_at <= clock_timestamp() as due, d.payload_bytes as owed_bytes
            from fencepost.submissions s join fencepost.deliveries d on d.submission = s.id
            where s.id = $1",
        )
        .bind(told.submission)
        .fetch_one(&mut session)
        .await?;
        assert_eq!(row.try_get::<Vec<u8>, _>("payload")?, bytes);
        assert_eq!(row.try_get::<String, _>("content_type")?, content_type);
        let length = i32::try_from(bytes.len())?;
        assert_eq!(row.try_get::<i32, _>("payload_bytes")?, length);
        assert_eq!(row.try_get::<i32, _>("owed_bytes")?, length);
        assert_eq!(row.try_get::<Uuid, _>("webhook_id")?, told.submission);
        assert_eq!(row.try_get::<Vec<Uuid>, _>("deliveries")?, told.deliveries);
        assert_eq!((row.try_get::<i16, _>("state")?, row.try_get("due")?), (1, true));
        assert!(!told.replayed);
    }
    Ok(())
}

#[tokio::test]
async fn the_ids_are_version_7_of_one_millisecond_and_of_now() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    for _ in 0..50 {
        let now: i64 = sqlx::query_scalar(
            "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
        )
        .fetch_one(&mut session)
        .await?;
        let told = call(&mut session, "'orders', ''").await?;
        let [delivery] = told.deliveries[..] else { bail!("{told:?}") };
        for id in [told.submission, delivery] {
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        }
        let millis = |id: Uuid| i64::try_from(id.as_u128() >> 80);
        assert_eq!(millis(told.submission)?, millis(delivery)?);
        assert!((now..now + 60_000).contains(&millis(delivery)?));
        assert_ne!(told.submission, delivery);
    }
    Ok(())
}

#[tokio::test]
async fn a_submission_by_sql_exists_if_and_only_if_its_transaction_commits() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    for (end, expected) in [("rollback", 0), ("commit", 1)] {
        sqlx::raw_sql("begin").execute(&mut session).await?;
        call(&mut session, "'orders', '{}'::json, idempotency_key => 'order-1'").await?;
        sqlx::raw_sql(end).execute(&mut session).await?;
        for table in ["submissions", "deliveries", "idempotency_keys"] {
            assert_eq!(count(&mut session, table).await?, expected, "{table} after {end}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_sql_refuses_has_a_state_of_its_own_and_names_its_field() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    let key = "idempotency_key => 'k'";
    call(&mut session, "'orders', '{}'::json, idempotency_key => 'k'").await?;
    for (text, state, field) in [
        ("'orders', '', application_id => 'nobody'", "WH001", "application_id"),
        ("'Nowhere', ''", "WH002", "endpoint_id"),
        ("null, ''", "WH002", "endpoint_id"),
        ("'orders', '', idempotency_key => ''", "WH003", "idempotency_key"),
        ("'orders', '', event_type => 'a..b'", "WH004", "event_type"),
        ("'orders', '', 'json'", "WH005", "content_type"),
        ("'orders', '{', 'application/json'", "WH006", "payload"),
        ("'orders', repeat('x', 262145)", "WH007", "payload"),
        ("'orders', '[]'::json, idempotency_key => 'k'", "WH008", "idempotency_key"),
        ("'orders', null::bytea", "WH010", "payload"),
    ] {
        let error = call(&mut session, text).await.err().with_context(|| text.to_owned())?;
        assert_eq!(refusal(&error)?, (state.to_owned(), field.to_owned()), "{text}");
    }
    assert_eq!(count(&mut session, "submissions").await?, 1, "but for the first, with {key}");
    Ok(())
}

#[tokio::test]
async fn a_day_without_partition_is_named_by_sql_and_none_is_made() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    sqlx::raw_sql(
        "do $$ declare name regclass; begin
        for name in select inhrelid::regclass from pg_inherits
            where inhparent = 'fencepost.submissions'::regclass
        loop execute format('drop table %s', name); end loop; end $$",
    )
    .execute(&mut session)
    .await?;
    let error = call(&mut session, "'orders', ''").await.err().context("it was stored")?;
    assert_eq!(refusal(&error)?.0, "WH009");
    assert_eq!(count(&mut session, "deliveries").await?, 0);
    Ok(())
}

/// The limits of the api are flags; here they are a function that an operator replaces.
#[tokio::test]
async fn replaced_limits_hold() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    sqlx::raw_sql(
        "create or replace function fencepost.submit_limits(
            out payload_bytes_max integer, out idempotency_window interval)
        language sql immutable as $$ select 10, interval '0' $$",
    )
    .execute(&mut session)
    .await?;
    assert!(call(&mut session, "'orders', '01234567890'").await.is_err());
    let first = call(&mut session, "'orders', '1', idempotency_key => 'k'").await?;
    let second = call(&mut session, "'orders', '2', idempotency_key => 'k'").await?;
    assert!(!second.replayed && first.submission != second.submission, "its time was over");
    Ok(())
}
