//! Bodies that are too large, too slow, or endless.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Answer, Api, PATIENCE, problem, settings};

/// Case C082.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_payload_is_exact_with_and_without_a_declared_length() {
    for limit in [1024, 300 * 1024] {
        let api = Api::start_with(api::Settings { body_limit_bytes: limit, ..settings() }).await;
        api.create_endpoint("orders").await;
        for (length, taken) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let request = api.submit("orders").body(vec![b'x'; length]);
            for answer in [request.send().await, request.send_chunked().await] {
                if taken {
                    assert_eq!(answer.status, 202, "{length}");
                } else {
                    assert_eq!(answer.problem(), problem(413, "body_too_large"), "{length}");
                    assert_eq!(answer.json()["limit_bytes"], json!(limit));
                    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                    assert!(detail.contains(&limit.to_string()), "{detail}");
                }
            }
        }
        assert_eq!(api.submissions().await.len(), 4);
    }
}

/// Case C082.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_management_body_is_exact() {
    let api = Api::start().await;
    let limit = 64 * 1024;
    let object = r#"{"url":"https://example.com/hook"}"#;
    for (length, status) in [(limit, 201), (limit + 1, 413)] {
        let body = format!("{object}{}", " ".repeat(length - object.len()));
        let request = api.post("/v1/endpoints").header("Content-Type", "application/json");
        assert_eq!(request.body(&body).send().await.status, status, "{length}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_length_over_the_limit_is_refused_before_any_byte_of_the_body() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders");
    let mut stream = request.connect().await;
    stream.write_all(&request.head("Content-Length: 262145\r\n")).await.unwrap();
    let answer = Answer::read(&mut stream).await;
    assert_eq!(answer.problem(), problem(413, "body_too_large"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_on_after_the_refusal_still_gets_it_and_is_cut_off() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders");
    let mut stream = request.connect().await;
    stream.write_all(&request.head("Transfer-Encoding: chunked\r\n")).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let chunk = [b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat();
    // The body has no end: the writing ends when the server ends the connection.
    let endless = async { while writer.write_all(&chunk).await.is_ok() {} };
    let mut answer = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..count]);
        }
    };
    let both = async { tokio::join!(endless, reading) };
    tokio::time::timeout(PATIENCE, both).await.expect("the server ends the connection");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    assert!(answer.contains("body_too_large"), "{answer}");
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_on_after_a_body_that_was_read_whole() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let refused = api.submit("orders").header("Idempotency-Key", "");
    let mut stream = refused.connect().await;
    for _ in 0..2 {
        let mut bytes = refused.head("Content-Length: 2\r\n");
        bytes.extend_from_slice(b"{}");
        stream.write_all(&bytes).await.unwrap();
        let answer = Answer::read(&mut stream).await;
        assert_eq!(answer.problem(), problem(400, "idempotency_key_invalid"));
        assert_eq!(answer.header("connection"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_arrive_in_time_is_given_up() {
    let body_deadline = Duration::from_millis(100);
    let api = Api::start_with(api::Settings { body_deadline, ..settings() }).await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders");
    let mut stream = request.connect().await;
    stream.write_all(&request.head("Content-Length: 10\r\n")).await.unwrap();
    stream.write_all(b"half").await.unwrap();
    let answer = Answer::read(&mut stream).await;
    assert_eq!(answer.problem(), problem(408, "body_too_slow"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_early_stores_nothing() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders");
    let mut stream = request.connect().await;
    stream.write_all(&request.head("Content-Length: 10\r\n")).await.unwrap();
    stream.write_all(b"half").await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = Answer::read(&mut stream).await;
    assert_eq!(answer.problem(), problem(400, "body_incomplete"));
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_broken_chunks_ends_the_connection_and_stores_nothing() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders");
    let mut stream = request.connect().await;
    stream.write_all(&request.head("Transfer-Encoding: chunked\r\n")).await.unwrap();
    stream.write_all(b"4\r\nhalf\r\nzz\r\n").await.unwrap();
    // Where the next request would start is not known. Whether actix-web still answers depends on
    // how far it has come by then.
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection is still open");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
    assert!(api.submissions().await.is_empty());
}
