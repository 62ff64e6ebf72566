//! `fencepost bench hot-row` for a moment: what it answers, never how fast.

use anyhow::Context as _;
use integration_tests::postgres::TestPostgres;
use proof::Scratch;
use proof::bench::{Scenario, bench};

use crate::scenarios::{MEASURING, plan};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hot_row_is_measured_in_every_manner_without_an_error_and_its_queue_is_drawn()
-> anyhow::Result<()> {
    let _alone = MEASURING.lock().await;
    let database = TestPostgres::shared().await?.database().await?;
    let scratch = Scratch::create(database.url(), None).await?;
    let report = bench(&scratch, &plan(&[Scenario::HotRow]), &|_| {}).await;
    scratch.drop().await?;
    let report = report?;
    let [hot_row] = report.scenarios.as_slice() else { anyhow::bail!("one scenario: {report}") };
    let figure = |name: &str| {
        let figure = hot_row.figures.iter().find(|figure| figure.name == name);
        figure.map(|figure| figure.median).with_context(|| format!("{name} in {hot_row}"))
    };
    for clients in ["1 client", "8 clients", "32 clients", "64 clients"] {
        for what in ["the update alone", "reserved", "p95", "lock wait p99"] {
            assert!(figure(&format!("{clients}: {what}"))? > 0.0, "{what} in {hot_row}");
        }
    }
    for way in ["the row last", "8 pools", "in groups"] {
        assert!(figure(&format!("32 clients, {way}: reserved"))? > 0.0, "{hot_row}");
    }
    let errors: Vec<_> = hot_row.figures.iter().filter(|it| it.name.ends_with("errors")).collect();
    assert!(errors.len() == 9 && errors.iter().all(|it| it.highest == 0.0), "{hot_row}");
    let through = figure("nominal ceiling")? * figure("critical section, mean")?;
    assert!((through - 1_000.0).abs() < 0.1, "{hot_row}");
    let points: Vec<usize> =
        hot_row.courses.iter().flat_map(|it| &it.rounds).map(Vec::len).collect();
    assert_eq!(points, [100, 100], "the queues at 80 % and at 120 %");
    assert_eq!(report.plot().matches("<polyline").count(), 2);
    Ok(())
}
