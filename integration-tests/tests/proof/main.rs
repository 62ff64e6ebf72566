//! `fencepost verify` on PostgreSQL: that it sees what holds, and what does not.

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

/// The guard of G9 is a primary key. In this database an event trigger takes it away as soon as the
/// migrations have made it: nothing of the product is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_without_the_guard_is_seen_as_violated() -> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut session = database.connect().await?;
    let name = format!("without_the_guard_{}", std::process::id());
    session.execute(AssertSqlSafe(format!("create database {name}"))).await?;
    let mut url = Url::parse(database.url())?;
    url.set_path(&name);
    let mut lent = PgConnection::connect(url.as_str()).await?;
    lent.execute(
        "create function take_the_key() returns event_trigger language plpgsql as $$
        begin
            if exists (select from pg_event_trigger_ddl_commands()
                where object_type = 'table' and object_identity = 'fencepost.receipts')
            then
                alter table fencepost.receipts drop constraint receipts_pkey;
            end if;
        end $$;
        create event trigger take_the_key on ddl_command_end when tag in ('CREATE TABLE')
            execute function take_the_key()",
    )
    .await?;
    lent.close().await?;

    let report = proven(database.url(), Some(url.as_str()), &[Name::Inbox]).await?;
    let inbox = report.checks.first().context("a check")?;
    assert_eq!((inbox.verdict, report.holds), (Verdict::Violated, false), "{inbox:?}");
    assert_eq!(inbox.fields["success_count"], 6, "each copy was the first");
    let gateway = report.checks.last().context("a check")?;
    assert_eq!((gateway.name, gateway.verdict), ("inbox-gateway", Verdict::Violated));
    assert!(gateway.observed.contains("6 receipt, 6 submission"), "{}", gateway.observed);
    assert!(inbox.line().ends_with("FAIL"), "{}", inbox.line());
    session.execute(AssertSqlSafe(format!("drop database {name}"))).await?;
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
