//! What keeps dead rows alive and has no session: a prepared transaction, a replication slot. Servers allow
//! either only if they were started so.

use integration_tests::postgres::MortalPostgres;
use sqlx::Executor as _;

use super::*;

async fn server() -> anyhow::Result<MortalPostgres> {
    let settings = [("max_prepared_transactions", "4"), ("wal_level", "logical")];
    let server = MortalPostgres::start_with(&settings).await?;
    store::migrate(server.url()).await?;
    Ok(server)
}

async fn told(server: &MortalPostgres, thresholds: &Thresholds) -> anyhow::Result<Finding> {
    of(examine_by(server.url(), thresholds, OffsetDateTime::now_utc).await?, "old_snapshot")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_transaction_that_was_prepared_and_left_is_named_with_how_to_end_it() -> anyhow::Result<()>
{
    let server = server().await?;
    let at_once = Thresholds { transaction: Duration::ZERO, ..Thresholds::default() };
    let mut session = server.connect().await?;
    session.execute("begin; select; prepare transaction 'left behind'").await?;
    let left = told(&server, &at_once).await?;
    assert_eq!(left.level, Level::Warning, "{left:?}");
    assert!(left.found.contains("the prepared transaction left behind"), "{left:?}");
    assert!(left.found.contains("postgres"), "whose it is: {left:?}");
    assert!(left.what_to_do.contains("ROLLBACK PREPARED"), "{left:?}");
    assert_eq!(told(&server, &Thresholds::default()).await?.level, Level::Fine, "it is new");

    session.execute("rollback prepared 'left behind'").await?;
    let ended = told(&server, &at_once).await?;
    assert!(!ended.found.contains("left behind"), "{ended:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_that_nobody_reads_is_named_with_how_to_end_it() -> anyhow::Result<()> {
    let server = server().await?;
    let few = Thresholds { slot_transactions: 100, ..Thresholds::default() };
    let mut session = server.connect().await?;
    session.execute("select pg_create_logical_replication_slot('left_behind', 'pgoutput')").await?;
    assert_eq!(told(&server, &few).await?.level, Level::Fine, "nothing has happened since");
    session
        .execute(
            "do $$ begin
                for n in 1..200 loop perform pg_current_xact_id(); commit; end loop;
            end $$",
        )
        .await?;
    let left = told(&server, &few).await?;
    assert_eq!(left.level, Level::Warning, "{left:?}");
    assert!(left.found.contains("replication slot left_behind"), "{left:?}");
    assert!(left.found.contains("not in use"), "{left:?}");
    assert!(left.what_to_do.contains("drop the slot"), "{left:?}");
    assert_eq!(told(&server, &Thresholds::default()).await?.level, Level::Fine, "it is close");

    session.execute("select pg_drop_replication_slot('left_behind')").await?;
    assert_eq!(told(&server, &few).await?.level, Level::Fine);
    Ok(())
}
