//! A database that goes away never ends a process, and everything goes on when it is back.

use integration_tests::eventually;
use integration_tests::receiver::{Receiver, always};
use sqlx::{Connection as _, PgConnection};

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

/// The database takes no connections, and those that it has are ended: for the processes it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn api_and_worker_outlive_their_database_and_go_on_when_it_is_back() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(always(204))?;
    service.endpoint("orders", &receiver.url("/"), |_| {}).await?;
    let (api, client) = service.api().await?;
    let worker = service.worker("worker").await?;
    submit(&client, "orders", "key-1", "{}").await?;
    receiver.wait_for_requests(1, LONG).await?;

    let name = service.database.name();
    let mut server = url::Url::parse(service.database.url())?;
    server.set_path("postgres");
    let mut administrator = PgConnection::connect(server.as_str()).await?;
    let mut administer = async |text: String| {
        sqlx::query(sqlx::AssertSqlSafe(text)).execute(&mut administrator).await
    };
    let end_connections =
        format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
    administer(format!("alter database {name} allow_connections false")).await?;
    administer(end_connections).await?;
    let path = "/v1/endpoints/orders/submissions";
    let refused = client.post(path, &[], "{}").await?;
    assert_eq!(refused.status.as_u16(), 503, "never a 2xx without the database");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(client.get("/livez").await?.status.as_u16(), 200, "the process lives");

    administer(format!("alter database {name} allow_connections true")).await?;
    eventually("a submission is accepted again", LONG, async || {
        submit(&client, "orders", "key-2", "{}").await
    })
    .await?;
    receiver.wait_for_webhook_ids(2, LONG).await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_consistent(&service.database).await?;
    // Both are the processes that were there before.
    drop((api, worker));
    Ok(())
}
