//! Migrating, and refusing a schema that does not fit.

use store::{SCHEMA_VERSION, StoreError};

use crate::fixture::Fixture;

on_both_stores! {
    a_migrated_database_passes_the_check,
    migrating_again_and_at_once_ends_well,
}

async fn a_migrated_database_passes_the_check(db: Fixture) -> anyhow::Result<()> {
    db.store.check().await?;
    Ok(())
}

async fn migrating_again_and_at_once_ends_well(db: Fixture) -> anyhow::Result<()> {
    let url = db.url().to_owned();
    let answers = integration_tests::race::race(0..6, move |_, _| {
        let url = url.clone();
        async move { Ok(store::migrate(&url).await?) }
    })
    .await?;
    assert_eq!(answers.len(), 6);
    db.store.check().await?;
    Ok(())
}

mod on_postgres {
    use anyhow::Context as _;
    use domain::application::DEFAULT_APPLICATION_KEY;
    use domain::delivery::Verdict;
    use integration_tests::postgres::{MortalPostgres, TestPostgres};
    use integration_tests::race::race;
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqlSafeStr as _};
    use store::StoreOptions;
    use store::endpoint::{Endpoint, EndpointChange};
    use store::sealing::{Sealer, SealingKey};

    use super::*;
    use crate::fixture::report;

    /// Longer than a statement and the wait for a connection may take together.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

    fn options() -> anyhow::Result<StoreOptions> {
        Ok(StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new())))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn six_processes_that_migrate_an_empty_database_at_once_all_end_well()
    -> anyhow::Result<()> {
        let server = TestPostgres::shared().await?.database().await?;
        let scratch = store::postgres::ScratchDatabase::create(server.url()).await?;
        let url = scratch.url.clone();
        race(0..6, move |_, _| {
            let url = url.clone();
            async move { Ok(store::migrate(&url).await?) }
        })
        .await?;
        let store = store::open(&scratch.url, options()?).await?;
        store.check().await?;
        drop(store);
        store::postgres::drop_scratch(&scratch).await?;
        assert!(PgConnection::connect(&scratch.url).await.is_err(), "the scratch is dropped");
        Ok(())
    }

    #[tokio::test]
    async fn an_empty_an_older_and_a_newer_schema_are_refused_with_what_mends_it()
    -> anyhow::Result<()> {
        let database = TestPostgres::shared().await?.database().await?;
        let store = store::open(database.url(), options()?).await?;
        let mut connection = database.connect().await?;
        let mut set = async |version: i32, compatible_from: i32| {
            sqlx::query("update fencepost.schema_version set version = $1, compatible_from = $2")
                .bind(version)
                .bind(compatible_from)
                .execute(&mut connection)
                .await
        };
        set(SCHEMA_VERSION - 1, 1).await?;
        let error = store.check().await.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("fencepost migrate"), "{error}");
        set(SCHEMA_VERSION + 5, SCHEMA_VERSION).await?;
        store.check().await?;
        set(SCHEMA_VERSION + 5, SCHEMA_VERSION + 1).await?;
        let error = store.check().await;
        assert!(matches!(error, Err(StoreError::SchemaTooNew { .. })), "{error:?}");
        sqlx::query("drop schema fencepost cascade").execute(&mut connection).await?;
        let error = store.check().await;
        let outdated = StoreError::SchemaOutdated { found: 0, needed: SCHEMA_VERSION };
        assert_eq!(error.err().map(|e| e.to_string()), Some(outdated.to_string()));
        Ok(())
    }

    /// What `just released` kept. The binary itself is in `tests/delivery/previous_release.rs`.
    #[tokio::test]
    async fn every_statement_of_the_previous_release_can_be_prepared_on_this_schema()
    -> anyhow::Result<()> {
        let statements: Vec<String> =
            serde_json::from_str(include_str!("../../released_statements.json"))?;
        assert!(statements.len() > 50, "{}", statements.len());
        let database = TestPostgres::shared().await?.database().await?;
        let mut connection = database.connect().await?;
        for statement in statements {
            let prepared =
                connection.prepare(AssertSqlSafe(statement.clone()).into_sql_str()).await;
            prepared.with_context(|| statement)?;
        }
        Ok(())
    }

    /// A server that dies without closing its connections: nobody would ever answer.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_that_falls_silent_is_unavailable_and_is_there_for_the_next_statement()
    -> anyhow::Result<()> {
        let server = MortalPostgres::start().await?;
        store::migrate(server.url()).await?;
        let mut options = options()?;
        // Short beside the patience, long beside what a busy machine needs for a trivial statement.
        options.statement_deadline = std::time::Duration::from_secs(2);
        options.acquire_timeout = std::time::Duration::from_secs(15);
        options.general_connections = 1;
        let store = store::open(server.url(), options).await?;
        for round in 0..6 {
            store.check().await?;
            server.fall_silent();
            if round % 2 == 0 {
                // It meets the silence itself, or the connection met it on its way back to the pool.
                let met = tokio::time::timeout(PATIENCE, store.check()).await?;
                let unavailable = matches!(met, Err(StoreError::Unavailable { .. }));
                assert!(met.is_ok() || unavailable, "{met:?}");
            } else {
                // A caller that goes away takes its connection along.
                let moment = std::time::Duration::from_millis(20);
                let _ = tokio::time::timeout(moment, store.check()).await;
            }
            // With one place in the pool there is no other connection to go on with.
            let next = tokio::time::timeout(PATIENCE, store.check()).await;
            next.context("for ever")?.with_context(|| format!("round {round}"))?;
        }
        Ok(())
    }

    /// Wherever in a statement, or on its connection's way back to the pool, the silence falls.
    #[tokio::test(flavor = "multi_thread")]
    async fn no_moment_of_silence_costs_a_place_in_the_pool() -> anyhow::Result<()> {
        let server = MortalPostgres::start().await?;
        store::migrate(server.url()).await?;
        let mut options = options()?;
        options.statement_deadline = std::time::Duration::from_secs(2);
        options.acquire_timeout = std::time::Duration::from_secs(15);
        options.general_connections = 1;
        for messages in 0..6 {
            let store = store::open(server.url(), options.clone()).await?;
            store.check().await?;
            server.fall_silent_after(messages);
            let mut unavailable = 0;
            // More statements than messages: the silence has come by the end.
            for _ in 0..6 {
                let answer = tokio::time::timeout(PATIENCE, store.check()).await;
                unavailable += u32::from(answer.context("for ever")?.is_err());
            }
            assert!(unavailable <= 1, "after {messages} messages {unavailable} statements failed");
        }
        Ok(())
    }

    #[tokio::test]
    async fn an_unreachable_database_is_unavailable_and_the_store_opens_all_the_same()
    -> anyhow::Result<()> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let url = format!("postgres://nobody:secret@{}/none", listener.local_addr()?);
        drop(listener);
        let mut options = options()?;
        options.acquire_timeout = std::time::Duration::from_millis(300);
        let store = store::open(&url, options).await?;
        let error = store.check().await.err();
        assert!(error.as_ref().is_some_and(StoreError::is_transient), "{error:?}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        Ok(())
    }

    /// What a process does again and again, on statements that it has prepared.
    async fn work(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
        db.failed(endpoint).await?;
        db.submit(endpoint).await?;
        let claim = db.claim_one(endpoint).await?;
        db.record(report(claim, Verdict::Delivered)).await?;
        let change = EndpointChange { name: Some(None), ..EndpointChange::default() };
        db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
        db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
        db.store.read_lives(&[endpoint.key]).await?;
        db.detail(claim.delivery).await?;
        Ok(())
    }

    /// Case C096: a statement that named no columns would fail on every connection that has prepared it.
    #[tokio::test(flavor = "multi_thread")]
    async fn columns_that_a_later_migration_adds_disturb_no_running_process() -> anyhow::Result<()>
    {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        // Often enough for each connection of the pool to have prepared each statement.
        for _ in 0..6 {
            work(&db, &endpoint).await?;
        }
        let mut session = db.session().await?;
        for table in [
            "endpoints",
            "endpoint_schedule",
            "endpoint_secrets",
            "submissions",
            "deliveries",
            "settled_deliveries",
            "attempts",
            "idempotency_keys",
        ] {
            let text =
                format!("alter table fencepost.{table} add column later text not null default 'x'");
            sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut session).await?;
        }
        for _ in 0..6 {
            work(&db, &endpoint).await?;
        }
        Ok(())
    }
}
