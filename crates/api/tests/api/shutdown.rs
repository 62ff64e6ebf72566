//! Stopping.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, Api, PATIENCE};

/// Case C103.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_finished_and_idle_connections_are_closed() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;

    let idle_request = api.get("/livez");
    let mut idle = idle_request.connect().await;
    idle.write_all(&idle_request.head("")).await.unwrap();
    assert_eq!(Answer::read(&mut idle).await.status, 200);

    let request = api.submit("orders");
    let mut half_sent = request.connect().await;
    half_sent
        .write_all(&request.head("Content-Length: 8\r\nExpect: 100-continue\r\n"))
        .await
        .unwrap();
    // The server says that it waits for the body, so the request is in flight.
    assert_eq!(Answer::read(&mut half_sent).await.status, 100);
    half_sent.write_all(b"half").await.unwrap();

    api.stop.cancel();
    let closed = tokio::time::timeout(PATIENCE, idle.read(&mut [0])).await.expect("a closed one");
    assert_eq!(closed.unwrap(), 0);

    half_sent.write_all(b"half").await.unwrap();
    let answer = Answer::read(&mut half_sent).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.header("connection"), Some("close"));
    let stored = api.submissions().await;
    assert_eq!(answer.json()["submission_id"], json!(stored.first().unwrap().id));

    let address = api.running.address();
    tokio::time::timeout(PATIENCE, api.running.finished()).await.expect("an end").unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_an_error_and_leaves_nothing_running() {
    let api = Api::start().await;
    let taken = api.running.address();
    let settings = api::Settings { private_listen: taken, ..crate::harness::settings() };
    let error = api::start(settings, api.store.clone(), api.stop.clone()).unwrap_err();
    assert!(format!("{error:#}").contains(&taken.to_string()), "{error:#}");
}
