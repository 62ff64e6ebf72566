//! What running processes show of themselves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use domain::delivery::retry::RetrySchedule;
use integration_tests::http::ApiClient;
use integration_tests::process::{Api, Worker};
use integration_tests::receiver::{Receiver, sequence};
use integration_tests::{eventually, worker_binary};
use process::metrics::ALL;
use reqwest::StatusCode;
use sqlx::Executor as _;

use crate::history::wait_until_nothing_is_owed;
use crate::service::{LONG, Service, submit};

/// What stands on a private address, as text.
async fn scrape(private_url: &str) -> anyhow::Result<String> {
    let reply = ApiClient::new(private_url, "none")?.get("/metrics").await?;
    ensure!(reply.status == StatusCode::OK, "{}", reply.status);
    Ok(String::from_utf8(reply.body.to_vec())?)
}

/// Names of metrics with their help.
fn helps(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    lines.map(|(name, help)| (name.to_owned(), help.to_owned())).collect()
}

/// The series, without their values.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}

async fn readiness(worker: &Worker) -> anyhow::Result<(StatusCode, String)> {
    let reply = ApiClient::new(&worker.private_url, "none")?.get("/readyz").await?;
    Ok((reply.status, String::from_utf8(reply.body.to_vec())?))
}

/// A service of which an endpoint answers, one refuses once, and one is gone.
async fn busy() -> anyhow::Result<(Service, Api, ApiClient, Worker, [Receiver; 3])> {
    let service = Service::start().await?;
    let receivers = [
        Receiver::start(sequence([204]))?,
        Receiver::start(sequence([500, 204]))?,
        Receiver::start(sequence([410]))?,
    ];
    for (id, receiver) in ["well", "late", "gone"].into_iter().zip(&receivers) {
        let retries = RetrySchedule::new(vec![std::time::Duration::ZERO; 3])?;
        service.endpoint(id, &receiver.url("/"), |draft| draft.retry_schedule = retries).await?;
    }
    let (api, client) = service.api().await?;
    let worker = service.worker("watched").await?;
    for (number, endpoint) in ["well", "late", "gone"].into_iter().enumerate() {
        submit(&client, endpoint, &format!("key-{number}"), "{}").await?;
    }
    Ok((service, api, client, worker, receivers))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn running_processes_show_every_metric_of_the_table_and_no_other() -> anyhow::Result<()> {
    let (service, api, _client, worker, _receivers) = busy().await?;
    let expected: BTreeMap<String, String> =
        ALL.iter().map(|metric| (metric.name.to_owned(), metric.help.to_owned())).collect();
    eventually("every metric is shown", LONG, async || {
        let mut shown = helps(&scrape(&api.private_url).await?);
        shown.extend(helps(&scrape(&worker.private_url).await?));
        ensure!(shown == expected, "shown: {shown:#?}");
        Ok(())
    })
    .await?;

    let document = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/OPERATIONS.md"),
    )?;
    for metric in ALL {
        let row = format!("| `{}` | {} |", metric.name, metric.help);
        assert!(document.contains(&row), "docs/OPERATIONS.md lacks the row\n{row}");
    }
    let rows = document.lines().filter(|line| line.starts_with("| `fencepost_")).count();
    assert_eq!(rows, ALL.len(), "docs/OPERATIONS.md has a row of a metric that is not there");

    eventually("all is counted", LONG, async || {
        let text = scrape(&worker.private_url).await?;
        for (series, count) in [
            ("fencepost_delivered_total", 2.0),
            ("fencepost_retries_total", 1.0),
            ("fencepost_failed_total{reason=\"gone\"}", 1.0),
            ("fencepost_attempts_total{outcome=\"2xx\"}", 2.0),
            ("fencepost_attempts_total{outcome=\"5xx\"}", 1.0),
            ("fencepost_in_flight", 0.0),
            ("fencepost_upkeep", 1.0),
        ] {
            let shown = value(&text, series);
            ensure!((shown - count).abs() < f64::EPSILON, "{series} is {shown}, not {count}");
        }
        Ok(())
    })
    .await?;
    let text = scrape(&api.private_url).await?;
    assert!((value(&text, "fencepost_submissions_total{result=\"accepted\"}") - 3.0).abs() < 0.1);
    drop(service);
    Ok(())
}

/// Case C107.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn series_do_not_grow_with_endpoints_ids_paths_or_event_types() -> anyhow::Result<()> {
    use reqwest::header::{CONTENT_TYPE, HeaderName};
    let service = Service::start().await?;
    let receiver = Receiver::start(sequence([204]))?;
    let (api, client) = service.api().await?;
    let worker = service.worker("watched").await?;
    let round = async |round: usize| {
        for number in 0..10 {
            let id = format!("e{round}-{number}");
            service.endpoint(&id, &receiver.url(&format!("/{id}")), |_| {}).await?;
            let headers = [
                (CONTENT_TYPE, "application/json"),
                (HeaderName::from_static("fencepost-event-type"), id.as_str()),
            ];
            let path = format!("/v1/endpoints/{id}/submissions");
            client.post(&path, &headers, "{}").await?.expect_status(StatusCode::ACCEPTED)?;
            client.get(&format!("/{id}/nothing")).await?;
            client.get(&format!("/v1/deliveries/{id}")).await?;
        }
        wait_until_nothing_is_owed(&service.database, LONG).await?;
        let mut shown = series(&scrape(&api.private_url).await?);
        shown.extend(series(&scrape(&worker.private_url).await?));
        anyhow::Ok(shown)
    };
    // The first shows what a first time makes: the series of the first scrape itself, for one.
    round(0).await?;
    let first = round(1).await?;
    let second = round(2).await?;
    let new: Vec<_> = second.difference(&first).collect();
    assert!(new.is_empty(), "{new:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_claims_nothing_of_what_is_due_is_not_ready_until_it_does()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(sequence([204]))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    submit(&client, "a", "key", "{}").await?;
    let mut session = service.database.connect().await?;
    session.execute("begin; select from fencepost.deliveries for update").await?;

    let settings = service.settings.clone().with("FENCEPOST_WORKER_STALLED_AFTER", "100ms");
    let worker = Worker::start(worker_binary!(), "stalled", &settings).await?;
    eventually("the worker is not ready", LONG, async || {
        let (status, body) = readiness(&worker).await?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status} {body}");
        ensure!(body.contains("deliveries are due and none is claimed"), "{body}");
        Ok(())
    })
    .await?;
    session.execute("rollback").await?;
    receiver.wait_for_requests(1, LONG).await?;
    eventually("the worker is ready", LONG, async || {
        let (status, body) = readiness(&worker).await?;
        ensure!(status == StatusCode::OK, "{status} {body}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_id_stands_in_the_answer_in_both_logs_and_at_the_attempt() -> anyhow::Result<()> {
    let mut service = Service::start().await?;
    service.settings = service.settings.clone().with("RUST_LOG", "info,api=debug,worker=debug");
    let receiver = Receiver::start(sequence([204]))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let (api, client) = service.api().await?;
    let worker = service.worker("w").await?;
    let accepted = submit(&client, "a", "key", "{}").await?;
    let id = accepted.submission_id.as_str();
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_eq!(receiver.requests()[0].header("webhook-id"), Some(id));
    let answered = format!("\"request.id\":\"{id}\"");
    let attempted = format!("\"submission.id\":\"{id}\"");
    eventually("it is in both logs", LONG, async || {
        let lines = |lines: Vec<String>, what: [&str; 2]| {
            lines.iter().any(|line| what.iter().all(|part| line.contains(part)))
        };
        ensure!(lines(api.process.lines(), [&answered, "answered"]));
        ensure!(lines(worker.process.lines(), [&attempted, "\"attempt.number\":1"]));
        Ok(())
    })
    .await?;
    let again = submit(&client, "a", "key", "{}").await?;
    assert_eq!(again.submission_id, id, "who repeats it is told of the first");
    Ok(())
}

/// Case C108: what was sent and could not be recorded is counted, sent again, and nothing is hidden.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn results_that_the_database_refuses_are_counted_and_sent_again() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(sequence([204]))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    let mut session = service.database.connect().await?;
    session
        .execute(
            "create function fencepost.refuse() returns trigger language plpgsql as
                $$ begin raise exception 'no room'; end $$;
            create trigger refuse before insert on fencepost.attempts
                for each row execute function fencepost.refuse();",
        )
        .await?;
    let worker = service.worker("unlucky").await?;
    let accepted = submit(&client, "a", "key", "{}").await?;
    eventually("it is counted", LONG, async || {
        let text = scrape(&worker.private_url).await?;
        ensure!(value(&text, "fencepost_unrecorded_results_total") > 0.0);
        Ok(())
    })
    .await?;
    session
        .execute(
            "drop trigger refuse on fencepost.attempts;
            update fencepost.deliveries set claim_expires_at = now() - interval '1 minute';",
        )
        .await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    let id = accepted.delivery_ids.first().context("a delivery")?;
    let shown: serde_json::Value = client.get(&format!("/v1/deliveries/{id}")).await?.json()?;
    assert_eq!(shown["state"], "delivered", "{shown}");
    assert_eq!(receiver.wait_for_requests(2, LONG).await?.len(), 2);
    eventually("the lapse is counted", LONG, async || {
        ensure!(value(&scrape(&worker.private_url).await?, "fencepost_lapses_total") > 0.0);
        Ok(())
    })
    .await
}
