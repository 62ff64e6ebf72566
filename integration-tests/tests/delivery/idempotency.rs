//! G4 across processes: of any number of copies one is stored, and all are told the same.

use anyhow::ensure;
use integration_tests::eventually;
use integration_tests::http::{ApiClient, Reply};
use integration_tests::race::race;
use reqwest::header::HeaderName;
use serde_json::Value;

use crate::service::{LONG, Service};

const COPIES: usize = 20;
const PROCESSES: usize = 3;

async fn submit(client: &ApiClient, body: &'static str) -> anyhow::Result<Reply> {
    let header = [(HeaderName::from_static("idempotency-key"), "order-1")];
    client.post("/v1/endpoints/orders/submissions", &header, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_copies_to_three_processes_one_is_stored_and_nineteen_are_told_that_they_are_copies()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    service.endpoint("orders", "http://127.0.0.1:49151/", |_| {}).await?;
    let (mut apis, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let (api, client) = service.api().await?;
        client.get("/livez").await?;
        apis.push(api);
        clients.push(client);
    }
    let contestants: Vec<_> = clients.iter().cloned().cycle().take(COPIES).collect();
    let mut replies =
        race(contestants, |_, client| async move { submit(&client, "{}").await }).await?;
    // Who came while the winner took longer to commit than a request waits asks again, as it is told to.
    for (reply, client) in replies.iter_mut().zip(clients.iter().cycle()) {
        *reply = eventually("the key is no longer in progress", LONG, async || {
            if reply.status.as_u16() != 409 {
                return Ok(reply.clone());
            }
            let again = submit(client, "{}").await?;
            ensure!(again.status.as_u16() != 409, "{again:?}");
            Ok(again)
        })
        .await?;
    }

    let (mut answers, mut replayed) = (Vec::new(), 0);
    for reply in &replies {
        ensure!(reply.status.as_u16() == 202, "{reply:?}");
        let mut answer: Value = reply.json()?;
        let is_copy = answer["replayed"].take() == Value::Bool(true);
        assert_eq!(reply.header("idempotent-replayed"), is_copy.then_some("true"));
        replayed += usize::from(is_copy);
        answers.push(answer);
    }
    assert_eq!(replayed, COPIES - 1);
    answers.dedup();
    assert_eq!(answers.len(), 1, "all are told the same");

    let other = submit(&clients[1], "[]").await?;
    assert_eq!(other.status.as_u16(), 422);
    assert_eq!(other.json::<Value>()?["code"], "idempotency_key_reused");
    let stored: (i64, i64) = sqlx::query_as(
        "select (select count(*) from fencepost.submissions),
            (select count(*) from fencepost.deliveries)",
    )
    .fetch_one(&mut service.database.connect().await?)
    .await?;
    assert_eq!(stored, (1, 1));
    Ok(())
}
