use anyhow::Context as _;
use integration_tests::http::ApiClient;
use integration_tests::receiver::{Answer, Receiver, always};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderName};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[tokio::test]
async fn a_client_sends_its_key_its_headers_and_its_bytes() -> anyhow::Result<()> {
    let answer = Answer::status(202).header("x-seen", "yes").body("{\"replayed\":false}");
    let receiver = Receiver::start(always(answer))?;
    let client = ApiClient::new(&receiver.url("/"), "fp_live_key")?;

    let headers = [(CONTENT_TYPE, "text/plain"), (IDEMPOTENCY_KEY, "k1")];
    let reply = client.post("/v1/things?x=1", &headers, &b"\x00 bytes"[..]).await?;
    let reply = reply.expect_status(StatusCode::ACCEPTED)?;
    assert_eq!(reply.header("x-seen"), Some("yes"));
    assert_eq!(reply.json::<serde_json::Value>()?["replayed"], false);
    client.with_key(None).get("/livez").await?;

    let requests = receiver.requests();
    let (post, get) = (&requests[0], &requests[1]);
    assert_eq!((post.method.as_str(), post.target.as_str()), ("POST", "/v1/things?x=1"));
    assert_eq!(post.header("authorization"), Some("Bearer fp_live_key"));
    assert_eq!(post.header("content-type"), Some("text/plain"));
    assert_eq!(post.header("idempotency-key"), Some("k1"));
    assert_eq!(post.body, b"\x00 bytes"[..]);
    assert_eq!((get.path(), get.header("authorization")), ("/livez", None));
    Ok(())
}

#[tokio::test]
async fn an_unexpected_status_is_told_with_the_answer() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(Answer::status(404).body("no such endpoint")))?;
    let reply = ApiClient::new(&receiver.url(""), "key")?.get("/v1/endpoints/x").await?;
    let error = reply.expect_status(StatusCode::OK).err().context("404 is not 200")?;
    assert_eq!(error.to_string(), "expected 200 OK, got 404 Not Found: no such endpoint");
    Ok(())
}
