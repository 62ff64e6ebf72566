//! `fencepost verify` on PostgreSQL: that it sees what holds, and what does not. And `fencepost bench`.

mod hot_row;
mod running;
mod scenarios;

use anyhow::Context as _;
use clap::ValueEnum as _;
use integration_tests::postgres::{TestPostgres, TransactionPooler};
use proof::Scratch;
use proof::verify::{Name, Plan, Report, Verdict, verify};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use url::Url;

fn plan(checks: &[Name]) -> Plan {
    Plan {
        checks: checks.to_vec(),
        rounds: 2,
        concurrency: 6,
        control: true,
        program: env!("CARGO_BIN_EXE_test-contestant").into(),
    }
}

/// All of it, on a scratch database that is dropped.
async fn proven(url: &str, lent: Option<&str>, checks: &[Name]) -> anyhow::Result<Report> {
    let scratch = Scratch::create(url, lent).await?;
    let report = verify(&scratch, &plan(checks), |_| {}).await;
    scratch.drop().await?;
    report
}

fn assert_all_hold(report: &Report) {
    for check in &report.checks {
        let control = check.control.as_ref().map(|control| control.violated);
        assert_eq!((check.verdict, control), (Verdict::Holds, Some(true)), "{check:?}");
    }
    assert!(report.holds);
    let names: Vec<&str> = report.checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [
            "claim",
            "fence",
            "idempotency",
            "replay",
            "rate-limit",
            "endpoint-update",
            "outbox",
            "reservation",
            "inbox",
            "inbox-killed",
            "inbox-gateway",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_check_holds_and_every_control_is_violated() -> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let report = proven(database.url(), None, Name::value_variants()).await?;
    assert_all_hold(&report);
    assert_eq!(report.isolation, "read committed");
    assert!(!report.warnings.iter().any(|it| it.contains("pooler")), "{:?}", report.warnings);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_a_transaction_pooler_every_check_holds_and_the_pooler_is_told() -> anyhow::Result<()>
{
    let database = TestPostgres::shared().await?.database().await?;
    let pooler = TransactionPooler::start(database.url()).await?;
    let report = proven(pooler.url(), None, Name::value_variants()).await?;
    assert_all_hold(&report);
    assert!(report.warnings.iter().any(|it| it.contains("pooler")), "{:?}", report.warnings);
    Ok(())
}

/// Proves one check in a database of its own, in which an event trigger spoils a table as soon as it is
/// made: nothing of the product is told. `prepared` is run before.
async fn proven_with_a_spoiled_table(
    check: Name,
    table: &str,
    prepared: &'static str,
    spoiling: &str,
) -> anyhow::Result<Report> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut session = database.connect().await?;
    let name = format!("without_{}_{}", table.replace('.', "_"), std::process::id());
    session.execute(AssertSqlSafe(format!("create database {name}"))).await?;
    let mut url = Url::parse(database.url())?;
    url.set_path(&name);
    let mut lent = PgConnection::connect(url.as_str()).await?;
    lent.execute(prepared).await?;
    lent.execute(AssertSqlSafe(format!(
        "create function spoil() returns event_trigger language plpgsql as $$
        begin
            if exists (select from pg_event_trigger_ddl_commands()
                where object_type = 'table' and object_identity = '{table}')
            then
                {spoiling};
            end if;
        end $$;
        create event trigger spoil on ddl_command_end when tag in ('CREATE TABLE')
            execute function spoil()"
    )))
    .await?;
    lent.close().await?;
    let report = proven(database.url(), Some(url.as_str()), &[check]).await?;
    session.execute(AssertSqlSafe(format!("drop database {name}"))).await?;
    assert!(!report.holds);
    Ok(report)
}

/// The guard of G9 is a primary key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_without_the_guard_is_seen_as_violated() -> anyhow::Result<()> {
    let table = "fencepost.receipts";
    let spoiling = "alter table fencepost.receipts drop constraint receipts_pkey";
    let report = proven_with_a_spoiled_table(Name::Inbox, table, "", spoiling).await?;
    let inbox = report.checks.first().context("a check")?;
    assert_eq!(inbox.verdict, Verdict::Violated, "{inbox:?}");
    assert_eq!(inbox.fields["success_count"], 6, "each copy was the first");
    let gateway = report.checks.last().context("a check")?;
    assert_eq!((gateway.name, gateway.verdict), ("inbox-gateway", Verdict::Violated));
    assert!(gateway.observed.contains("6 receipt, 6 submission"), "{}", gateway.observed);
    assert!(inbox.line().ends_with("FAIL"), "{}", inbox.line());
    Ok(())
}

/// What makes a submission owed is a row of `deliveries` in the same transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_loses_what_is_owed_is_seen_as_violated() -> anyhow::Result<()> {
    let lose =
        "create function lose() returns trigger language plpgsql as 'begin return null; end'";
    let spoiling = "create trigger lose before insert on fencepost.deliveries
        for each row execute function public.lose()";
    let report =
        proven_with_a_spoiled_table(Name::Outbox, "fencepost.deliveries", lose, spoiling).await?;
    let outbox = report.checks.first().context("a check")?;
    assert_eq!(outbox.verdict, Verdict::Violated, "{outbox:?}");
    assert_eq!(outbox.observed, "10 orders, 0 submissions owed, 0 of them for an order");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_takes_nothing_from_the_stock_is_seen_as_violated() -> anyhow::Result<()> {
    let keep = "create function keep() returns trigger language plpgsql as
        'begin new.available := old.available; return new; end'";
    let spoiling = "create trigger keep before update on fencepost.stock
        for each row execute function public.keep()";
    let report =
        proven_with_a_spoiled_table(Name::Reservation, "fencepost.stock", keep, spoiling).await?;
    let reservation = report.checks.first().context("a check")?;
    assert_eq!(reservation.verdict, Verdict::Violated, "{reservation:?}");
    assert_eq!(reservation.fields["oversold"], 3, "{}", reservation.observed);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn naive_buyers_oversell_under_read_committed_and_are_refused_under_repeatable_read()
-> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let report = proven(database.url(), None, &[Name::Reservation]).await?;
    let naive = report.checks.first().and_then(|check| check.control.as_ref()).context("naive")?;
    let read_committed = "6 sold, 0 refused, 5 left, 6 told";
    let repeatable_read = "under REPEATABLE READ 1 sold, 5 refused with 40001";
    assert_eq!(naive.observed, format!("{read_committed}; {repeatable_read}"));
    Ok(())
}

#[tokio::test]
async fn who_may_not_create_a_database_is_told_the_grant_and_a_used_one_is_refused()
-> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut session = database.connect().await?;
    let role = format!("without_createdb_{}", std::process::id());
    session.execute(AssertSqlSafe(format!("create role {role} login password 'p'"))).await?;
    let mut url = Url::parse(database.url())?;
    url.set_username(&role).ok().context("a user")?;
    url.set_password(Some("p")).ok().context("a password")?;
    let refused = Scratch::create(url.as_str(), None).await.err().context("a refusal")?;
    session.execute(AssertSqlSafe(format!("drop role {role}"))).await?;
    let told = format!("{refused:#}");
    assert!(told.contains("CREATEDB") && told.contains("--scratch-url"), "{told}");

    let used = Scratch::create(database.url(), Some(database.url())).await;
    let told = format!("{:#}", used.err().context("a refusal")?);
    assert!(told.contains("name an empty database"), "{told}");
    Ok(())
}
