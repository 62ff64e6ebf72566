//! `fencepost doctor`: each condition is made for real, told with what to do, and gone when it is mended.

mod left_behind;

use std::time::Duration;

use anyhow::Context as _;
use domain::delivery::Verdict;
use domain::endpoint::DisabledCause;
use domain::health::judge::{Thresholds, judge};
use domain::health::{Finding, Level};
use store::StoreOptions;
use store::maintenance::Candidacy;
use store::sealing::{Sealer, SealingKey};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::fixture::{Fixture, report};

on_both_stores! {
    of_a_healthy_database_nothing_is_told,
    that_no_worker_lives_is_told_and_is_worse_while_something_is_due,
    a_delivery_that_nobody_claims_is_told_and_so_is_an_endpoint_that_is_full,
    slots_out_of_step_are_told_until_they_are_counted_anew,
    rows_that_belong_to_nothing_are_told_by_kind,
    clocks_that_disagree_are_told,
    a_hold_is_told,
}

async fn examine_by(
    url: &str,
    thresholds: &Thresholds,
    now: fn() -> OffsetDateTime,
) -> anyhow::Result<Vec<Finding>> {
    let options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    Ok(judge(&store::doctor::examine(url, options, now).await?, thresholds))
}

async fn examine(db: &Fixture) -> anyhow::Result<Vec<Finding>> {
    examine_by(db.url(), &Thresholds::default(), OffsetDateTime::now_utc).await
}

/// What was found in that matter.
async fn found(db: &Fixture, check: &str) -> anyhow::Result<Finding> {
    of(examine(db).await?, check)
}

fn of(findings: Vec<Finding>, check: &str) -> anyhow::Result<Finding> {
    findings.into_iter().find(|it| it.check == check).with_context(|| format!("no {check}"))
}

/// What a living worker does all the time.
async fn a_worker_lives(db: &Fixture) -> anyhow::Result<Uuid> {
    let token = store::new_id::uuid_now();
    let lease = Duration::from_secs(30);
    let candidacy = Candidacy { holder: "worker-7", token, lease };
    assert!(db.store.lead(&candidacy).await?);
    Ok(token)
}

async fn of_a_healthy_database_nothing_is_told(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    db.failed(&endpoint).await?;
    db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    a_worker_lives(&db).await?;
    let findings = examine(&db).await?;
    let told: Vec<_> = findings.iter().filter(|it| it.level != Level::Fine).collect();
    assert!(told.is_empty(), "{told:#?}");
    assert_eq!(findings.len(), 12);
    Ok(())
}

async fn that_no_worker_lives_is_told_and_is_worse_while_something_is_due(
    db: Fixture,
) -> anyhow::Result<()> {
    let none = found(&db, "worker").await?;
    assert_eq!(none.level, Level::Warning, "{none:?}");
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    db.make_due(delivery).await?;
    let late = found(&db, "worker").await?;
    assert_eq!(late.level, Level::Critical, "{late:?}");
    let token = a_worker_lives(&db).await?;
    assert_eq!(found(&db, "worker").await?.level, Level::Fine);
    // Killed: nobody renews its lease.
    let text = if db.url().starts_with("sqlite") {
        "update leaders set expires_at = expires_at - 3600000000 where token = $1"
    } else {
        "update fencepost.leaders set expires_at = expires_at - interval '1 hour' where token = $1"
    };
    db.run(text, token).await?;
    let killed = found(&db, "worker").await?;
    assert!(killed.level == Level::Critical && killed.found.contains("worker-7"), "{killed:?}");
    Ok(())
}

async fn a_delivery_that_nobody_claims_is_told_and_so_is_an_endpoint_that_is_full(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint_with(|draft| draft.in_flight_max = 1).await?;
    let delivery = db.submit(&endpoint).await?;
    assert_eq!(found(&db, "due").await?.level, Level::Fine, "it is due since now");
    db.make_due(delivery).await?;
    let late = found(&db, "due").await?;
    assert_eq!(late.level, Level::Critical, "{late:?}");
    assert!(
        late.found.contains("1 deliveries are due") && late.found.contains("40 days"),
        "{late:?}"
    );
    assert!(late.found.contains(&endpoint.key.to_string()), "{late:?}");

    db.claim_one(&endpoint).await?;
    assert_eq!(found(&db, "due").await?.level, Level::Fine, "nothing else is due");
    let second = db.submit(&endpoint).await?;
    db.make_due(second).await?;
    let full = found(&db, "due").await?;
    assert!(full.level == Level::Warning && full.what_to_do.contains("in_flight_max"), "{full:?}");

    db.store.disable_endpoint(endpoint.key, endpoint.version, DisabledCause::Operator).await?;
    assert_eq!(found(&db, "due").await?.level, Level::Fine, "a closed endpoint is not late");
    Ok(())
}

async fn slots_out_of_step_are_told_until_they_are_counted_anew(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    let text = "update {}endpoint_schedule set in_flight = 7 where endpoint = $1";
    db.run(text, endpoint.key.as_uuid()).await?;
    let off = found(&db, "slots").await?;
    assert!(
        off.level == Level::Warning && off.found.contains("counts 7, and 1 are held"),
        "{off:?}"
    );
    db.store.recount_slots(None, 10).await?;
    assert_eq!(found(&db, "slots").await?.level, Level::Fine);
    Ok(())
}

async fn rows_that_belong_to_nothing_are_told_by_kind(db: Fixture) -> anyhow::Result<()> {
    let [bare, gone] = [db.endpoint().await?, db.endpoint().await?];
    db.run("delete from {}endpoint_schedule where endpoint = $1", bare.key.as_uuid()).await?;
    let strays = found(&db, "strays").await?;
    assert_eq!(strays.level, Level::Warning);
    assert!(strays.found.starts_with("1 endpoints without a schedule row"), "{strays:?}");
    db.store.recount_slots(None, 10).await?;
    assert_eq!(found(&db, "strays").await?.level, Level::Fine);

    // What is left when an endpoint is deleted by hand.
    db.submit(&gone).await?;
    db.run("delete from {}endpoints where key = $1", gone.key.as_uuid()).await?;
    db.run("delete from {}submissions where endpoint = $1", gone.key.as_uuid()).await?;
    let strays = found(&db, "strays").await?;
    assert_eq!(strays.level, Level::Critical);
    for kind in [
        "1 schedule rows without an endpoint",
        "2 secrets without an endpoint",
        "1 deliveries without a submission",
        "1 deliveries without an endpoint",
    ] {
        assert!(strays.found.contains(kind), "{kind}: {strays:?}");
    }

    let tried = db.failed(&bare).await?;
    db.run("delete from {}deliveries where id = $1", tried.as_uuid()).await?;
    let strays = found(&db, "strays").await?;
    assert!(strays.found.contains("1 attempts without a delivery"), "{strays:?}");
    Ok(())
}

async fn a_hold_is_told(db: Fixture) -> anyhow::Result<()> {
    db.store.set_hold(true, None).await?;
    assert_eq!(found(&db, "hold").await?.level, Level::Warning);
    db.store.set_hold(false, None).await?;
    assert_eq!(found(&db, "hold").await?.level, Level::Fine);
    Ok(())
}

async fn clocks_that_disagree_are_told(db: Fixture) -> anyhow::Result<()> {
    let ahead = || OffsetDateTime::now_utc() + Duration::from_mins(10);
    let off = of(examine_by(db.url(), &Thresholds::default(), ahead).await?, "clock")?;
    assert!(off.level == Level::Warning && off.found.contains("ms behind"), "{off:?}");
    let behind = || OffsetDateTime::now_utc() - Duration::from_mins(10);
    let off = of(examine_by(db.url(), &Thresholds::default(), behind).await?, "clock")?;
    assert!(off.level == Level::Warning && off.found.contains("ms ahead"), "{off:?}");
    Ok(())
}

mod on_postgres {
    use integration_tests::eventually;
    use integration_tests::postgres::TransactionPooler;
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

    use super::*;
    use crate::partitions::on_postgres::day;
    use crate::partitions::{AGE, old};

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_session_with_an_old_snapshot_is_named_with_how_to_end_it() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut session = db.connection().await?;
        let pid: i32 =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await?;
        session.execute("begin isolation level repeatable read; select 1").await?;
        let at_once = Thresholds { transaction: Duration::ZERO, ..Thresholds::default() };
        let now = OffsetDateTime::now_utc;
        let old = of(examine_by(db.url(), &at_once, now).await?, "old_snapshot")?;
        assert_eq!(old.level, Level::Warning, "{old:?}");
        assert!(old.what_to_do.contains(&format!("pg_terminate_backend({pid})")), "{old:?}");
        assert_eq!(found(&db, "old_snapshot").await?.level, Level::Fine, "it is not old yet");
        session.execute("rollback").await?;
        let ended = of(examine_by(db.url(), &at_once, now).await?, "old_snapshot")?;
        assert!(!ended.what_to_do.contains(&pid.to_string()), "{ended:?}");
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn dead_rows_that_vacuum_does_not_take_are_told() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut session = db.connection().await?;
        session
            .execute(
                "alter table fencepost.rate_limit_counters set (autovacuum_enabled = off);
                insert into fencepost.rate_limit_counters
                    select 1, n::text, now(), 1, now() from generate_series(1, 50000) n;
                delete from fencepost.rate_limit_counters;",
            )
            .await?;
        // Statistics are told when a session ends, and arrive soon after.
        session.close().await?;
        eventually("the dead rows are told", LONG, async || {
            let dead = found(&db, "dead_rows").await?;
            anyhow::ensure!(dead.level == Level::Warning, "{dead:?}");
            anyhow::ensure!(dead.found.contains("rate_limit_counters has 50000 dead"), "{dead:?}");
            Ok(())
        })
        .await?;
        let mut session = db.connection().await?;
        session.execute("vacuum fencepost.rate_limit_counters").await?;
        session.close().await?;
        eventually("they are gone", LONG, async || {
            anyhow::ensure!(found(&db, "dead_rows").await?.level == Level::Fine);
            Ok(())
        })
        .await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_index_whose_build_failed_is_told() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        db.submit(&endpoint).await?;
        db.submit(&endpoint).await?;
        let mut session = db.connection().await?;
        let text = "create unique index concurrently unfinished on fencepost.deliveries (endpoint)";
        assert!(session.execute(text).await.is_err(), "two deliveries have one endpoint");
        let invalid = found(&db, "invalid_index").await?;
        assert!(invalid.level == Level::Warning && invalid.found.contains("unfinished"));
        session.execute("drop index fencepost.unfinished").await?;
        assert_eq!(found(&db, "invalid_index").await?.level, Level::Fine);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_without_room_is_told_until_it_is_made() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut session = db.connection().await?;
        let name = day(Duration::ZERO)?.name;
        session.execute(AssertSqlSafe(format!("drop table fencepost.attempts_{name}"))).await?;
        let missing = found(&db, "missing_partition").await?;
        assert_eq!(missing.level, Level::Critical, "{missing:?}");
        assert!(missing.found.starts_with("1 days have no room"), "{missing:?}");
        db.store.prepare_history().await?;
        assert_eq!(found(&db, "missing_partition").await?.level, Level::Fine);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_day_that_cannot_be_dropped_is_told_with_why() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let endpoint = db.endpoint().await?;
        let mut session = db.connection().await?;
        let day = day(AGE)?;
        day.make(&mut session).await?;
        let free = found(&db, "overdue_partition").await?;
        assert!(free.found.contains("nothing is in the way"), "{free:?}");

        db.accept_one(&old(&endpoint)?).await?;
        let owed = found(&db, "overdue_partition").await?;
        assert!(owed.found.contains("1 of its deliveries are owed"), "{owed:?}");
        let claim = db.claim_one(&endpoint).await?;
        db.record(report(claim, Verdict::Delivered)).await?;

        let pid: i32 =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await?;
        let look = format!("begin; select from fencepost.submissions_{}", day.name);
        session.execute(AssertSqlSafe(look)).await?;
        let used = found(&db, "overdue_partition").await?;
        assert!(used.found.contains(&format!("sessions {pid} use its tables")), "{used:?}");
        session.execute("rollback").await?;
        db.store.clear_history(1).await?;
        assert_eq!(found(&db, "overdue_partition").await?.level, Level::Fine);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn that_wake_ups_do_not_arrive_is_told() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let pooler = TransactionPooler::start(db.url()).await?;
        let now = OffsetDateTime::now_utc;
        let silent = of(examine_by(pooler.url(), &Thresholds::default(), now).await?, "wake_ups")?;
        assert!(silent.level == Level::Warning && silent.found.contains("polling"), "{silent:?}");
        assert_eq!(found(&db, "wake_ups").await?.level, Level::Fine);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_fact_that_cannot_be_read_hides_no_other() -> anyhow::Result<()> {
        let db = Fixture::postgres().await?;
        let mut session = db.connection().await?;
        session.execute("alter table fencepost.leaders rename to lost").await?;
        let findings = examine(&db).await?;
        let unread = of(findings.clone(), "worker")?;
        assert!(unread.found.contains("could not be read"), "{unread:?}");
        assert_eq!(findings.iter().filter(|it| it.level != Level::Fine).count(), 1);
        Ok(())
    }
}
