//! Callers who mean harm: what each can make the process hold is bounded, and it serves the others.

use std::time::Duration;

use api::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, Api, PATIENCE, settings};

const SHORT: Duration = Duration::from_millis(300);

/// All that comes until the server ends the connection, which it has to do in time.
async fn until_closed(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        // A reset ends it too.
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the server ends the connection");
    String::from_utf8(all).unwrap()
}

/// Writes these bytes again and again until the server takes no more.
async fn flood(stream: &mut TcpStream, bytes: &[u8]) {
    let flooding = async { while stream.write_all(bytes).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flooding).await.expect("the server ends the connection");
}

/// Reads and writes at once: the bytes one at a time, every now and then, until the connection ends.
async fn drip(stream: TcpStream, bytes: &'static [u8]) -> String {
    let (mut reader, mut writer) = stream.into_split();
    let dripping = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(SHORT / 10);
        for byte in bytes.iter().cycle() {
            ticks.tick().await;
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    });
    let mut answer = Vec::new();
    let reading = async {
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the server ends the connection");
    dripping.abort();
    String::from_utf8(answer).unwrap()
}

async fn connect(api: &Api) -> TcpStream {
    TcpStream::connect(api.running.address()).await.unwrap()
}

async fn assert_serves(api: &Api) {
    assert_eq!(api.get("/livez").send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_is_cut_at_its_deadline() {
    let api = Api::start_with(Settings { client_request_timeout: SHORT, ..settings() }).await;
    let answer = drip(connect(&api).await, b"GET /livez HTTP/1.1\r\nx: aaaaaaaaaaaaaaaaaaaa").await;
    // It may be lost to a reset, since more comes than is read.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_headers_ends_the_connection() {
    let api = Api::start().await;
    let start = b"GET /livez HTTP/1.1\r\n".as_slice();
    for (name, bytes) in [
        ("many", b"x: y\r\n".repeat(1_000)),
        ("long", [b"x: ".as_slice(), &b"y".repeat(65_536)].concat()),
        ("a name without end", vec![b'x'; 65_536]),
        ("a line without end", vec![b' '; 65_536]),
        ("empty lines before it", b"\r\n".repeat(30_000)),
    ] {
        let mut stream = connect(&api).await;
        if name != "empty lines before it" {
            stream.write_all(start).await.unwrap();
        }
        flood(&mut stream, &bytes).await;
        let answer = until_closed(stream).await;
        // The answer may be lost to a reset, since more was sent than is read.
        let refused = answer.is_empty()
            || answer.starts_with("HTTP/1.1 431 ")
            || answer.starts_with("HTTP/1.1 400 ");
        assert!(refused, "{name}: {answer}");
    }
    let head = |bytes: usize| format!("GET /livez HTTP/1.1\r\nHost: a\r\nx: {}", "y".repeat(bytes));
    let mut stream = connect(&api).await;
    stream.write_all(head(140_000).as_bytes()).await.unwrap();
    let answer = until_closed(stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut stream = connect(&api).await;
    stream.write_all((head(100_000) + "\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.status, 200);
    assert_serves(&api).await;
}

/// What stands between chunks has no end either.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_without_end_or_content_are_given_up() {
    let api = Api::start_with(Settings { body_deadline: SHORT, ..settings() }).await;
    api.create_endpoint("orders").await;
    for (name, bytes) in [
        ("extensions", [b"1;".as_slice(), &[b'x'; 9_000]].concat()),
        ("zeroes", vec![b'0'; 9_000]),
        ("bytes, one a chunk", b"1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\na\r\n".repeat(200)),
    ] {
        let request = api.submit("orders");
        let mut stream = request.connect().await;
        stream.write_all(&request.head("Transfer-Encoding: chunked\r\n")).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let flooding = async { while writer.write_all(&bytes).await.is_ok() {} };
        let mut answer = Vec::new();
        let reading = async {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer).await {
                answer.extend_from_slice(&buffer[..count]);
            }
        };
        let both = async { tokio::join!(flooding, reading) };
        tokio::time::timeout(PATIENCE, both).await.expect("the server ends the connection");
        let answer = String::from_utf8(answer).unwrap();
        let refused = ["", "HTTP/1.1 408 ", "HTTP/1.1 400 ", "HTTP/1.1 413 "];
        assert!(
            refused.iter().skip(1).any(|it| answer.starts_with(it)) || answer.is_empty(),
            "{name}: {answer}"
        );
    }
    assert!(api.submissions().await.is_empty());
    assert_serves(&api).await;
}

/// The bytes of a body are never taken for a request, whatever its request was answered and when.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_an_early_answer_is_not_a_request() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let smuggled = {
        let mut bytes = api.submit("orders").head("Content-Length: 2\r\n");
        bytes.extend_from_slice(b"{}");
        bytes
    };
    let limit = 256 * 1024;
    let long = format!("Content-Length: {}\r\n", limit + smuggled.len());
    let exact = format!("Content-Length: {}\r\n", smuggled.len());
    let chunked = "Transfer-Encoding: chunked\r\n".to_owned();
    let chunk =
        [format!("{:x}\r\n", smuggled.len()).as_bytes(), &smuggled, b"\r\n0\r\n\r\n"].concat();
    for (name, request, framing, body, status) in [
        ("too large", api.submit("orders"), &long, &smuggled, 413),
        ("no such endpoint", api.submit("nothing"), &exact, &smuggled, 404),
        ("no such call", api.post("/v1/nothing"), &exact, &smuggled, 404),
        ("no key", api.submit("orders").without("Authorization"), &exact, &smuggled, 401),
        ("no key, chunked", api.submit("orders").without("Authorization"), &chunked, &chunk, 401),
        ("no such call, chunked", api.post("/v1/nothing"), &chunked, &chunk, 404),
    ] {
        let mut stream = request.connect().await;
        stream.write_all(&request.head(framing)).await.unwrap();
        let answer = Answer::read(&mut stream).await;
        assert_eq!(answer.status, status, "{name}");
        // The connection may be closed already.
        let _ = stream.write_all(body).await;
        let rest = until_closed_or_answered(&mut stream).await;
        assert!(!rest.contains("202"), "{name}: {rest}");
        assert!(api.submissions().await.is_empty(), "{name}");
    }
}

/// What comes on a connection whose next request is this: an answer to it, or the end.
async fn until_closed_or_answered(stream: &mut TcpStream) -> String {
    let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let mut all = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            all.extend_from_slice(&buffer[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer and the end");
    String::from_utf8(all).unwrap()
}

/// RFC 9112, section 6.3: where the end of a body is told in two ways, it is not guessed.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_whose_end_is_told_in_two_ways_is_refused() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for framing in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length: 2, 2\r\n",
        "Content-Length : 2\r\n",
        "Content-Length:\r\n 2\r\n",
    ] {
        let request = api.submit("orders");
        let mut stream = request.connect().await;
        let mut bytes = request.head(framing);
        bytes.extend_from_slice(b"2\r\n{}\r\n0\r\n\r\n");
        stream.write_all(&bytes).await.unwrap();
        let answer = until_closed(stream).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{framing:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{framing:?}: {answer}");
    }
    assert!(api.submissions().await.is_empty());
}

/// Requests that are sent ahead are answered in their order.
#[tokio::test(flavor = "multi_thread")]
async fn requests_sent_ahead_are_answered_in_order() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let mut bytes = Vec::new();
    for length in [2, 300_000, 3] {
        let request = if length > 4 { api.get("/v1/nothing") } else { api.submit("orders") };
        let body = if length > 4 { Vec::new() } else { vec![b'1'; length] };
        bytes.extend(request.head(&format!("Content-Length: {}\r\n", body.len())));
        bytes.extend(body);
    }
    let mut stream = connect(&api).await;
    stream.write_all(&bytes).await.unwrap();
    for status in [202, 404, 202] {
        assert_eq!(Answer::read(&mut stream).await.status, status);
    }
    assert_eq!(api.submissions().await.len(), 2);
}
