//! What comes back, however broken: the head decides, the body is evidence.

use domain::delivery::{Failure, Outcome};
use domain::endpoint::CustomHeaders;
use domain::signing::verify;
use tokio::time::Instant;

use super::receiver::{
    AT, BODY, PATIENCE, Receiver, Step, payload, secret, sender, target, try_once,
};

const OK: Outcome = Outcome::Answered { status: 200, retry_after: None };

fn head(lines: &str) -> Step {
    Step::Write(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes())
}

#[tokio::test]
async fn the_request_carries_the_stored_bytes_our_headers_and_nothing_else() {
    let mut receiver = Receiver::playing([head("content-length: 2\r\n"), Step::write("ok")]).await;
    let tried = sender().send(&target(&receiver.url()), &payload(), AT).await;
    assert_eq!(tried.outcome, OK);
    assert_eq!(&tried.evidence.response[..], b"ok");
    assert!(!tried.evidence.response_truncated && tried.evidence.detail.is_none());
    assert_eq!(tried.evidence.url, receiver.url());

    let request = receiver.requests().remove(0);
    let split = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let (head, body) = (std::str::from_utf8(&request[..split]).unwrap(), &request[split + 4..]);
    assert_eq!(body, BODY);
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /hook?x=1 HTTP/1.1");
    let value = |name: &str| {
        let values: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(values.len(), 1, "{name} in {head}");
        values[0]
    };
    assert_eq!(value("host"), format!("127.0.0.1:{}", receiver.port));
    assert_eq!(value("content-type"), "application/json");
    assert_eq!(value("content-length"), BODY.len().to_string());
    assert_eq!(value("user-agent"), concat!("Fencepost/", env!("CARGO_PKG_VERSION")));
    assert_eq!(value("accept"), "*/*");
    assert_eq!(value("webhook-id"), payload().webhook_id.to_string());
    assert_eq!(value("webhook-timestamp"), AT.unix_timestamp().to_string());
    let verified = verify(
        &[secret()],
        value("webhook-id"),
        value("webhook-timestamp"),
        value("webhook-signature"),
        body,
        AT.unix_timestamp(),
        0,
    );
    assert_eq!(verified, Ok(()));
    assert_eq!(lines.len(), 8, "{head}");
}

/// Case C070, on the wire.
#[tokio::test]
async fn custom_headers_arrive_once_beside_ours() {
    let mut receiver = Receiver::playing([head("content-length: 0\r\n")]).await;
    let mut target = target(&receiver.url());
    let own = [("X-Api-Key", "k 1"), ("Authorization", "Bearer t")];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned().into()));
    target.headers = Ok(CustomHeaders::parse(own).unwrap());
    assert_eq!(sender().send(&target, &payload(), AT).await.outcome, OK);
    let request = receiver.requests().remove(0);
    let head = String::from_utf8_lossy(&request).to_ascii_lowercase();
    for line in ["\r\nx-api-key: k 1\r\n", "\r\nauthorization: bearer t\r\n"] {
        assert_eq!(head.matches(line).count(), 1, "{head}");
    }
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type", "host"] {
        assert_eq!(head.matches(&format!("\r\n{name}: ")).count(), 1, "{name} in {head}");
    }
}

/// Case C015: what follows a 2xx head changes nothing.
#[tokio::test]
async fn a_2xx_head_is_delivered_whatever_its_body_does() {
    let gzip = || head("content-encoding: gzip\r\ncontent-length: 1000\r\n");
    for (name, steps, detail, truncated) in [
        ("reset", vec![head("content-length: 9\r\n"), Step::write("abc"), Step::Reset], true, true),
        ("cut", vec![head("content-length: 9\r\n"), Step::write("abc")], true, true),
        ("endless", vec![head(""), Step::Flood(vec![b'x'; 9_000])], false, true),
        (
            "endless chunks",
            vec![head("transfer-encoding: chunked\r\n"), Step::Flood(b"3\r\nabc\r\n".repeat(500))],
            false,
            true,
        ),
        (
            "broken chunks",
            vec![head("transfer-encoding: chunked\r\n"), Step::write("zz")],
            true,
            true,
        ),
        ("gzip that is none", vec![gzip(), Step::Write(vec![0xff; 1_000])], false, false),
        (
            "50 MB announced",
            vec![head("content-length: 50000000\r\n"), Step::Flood(vec![0; 65_536])],
            false,
            true,
        ),
        ("204", vec![Step::write("HTTP/1.1 204 No Content\r\n\r\n")], false, false),
    ] {
        let tried = try_once(steps).await;
        let Outcome::Answered { status: 200..=299, .. } = tried.outcome else {
            panic!("{name}: {tried:?}");
        };
        assert_eq!(tried.evidence.detail.is_some(), detail, "{name}: {:?}", tried.evidence.detail);
        assert_eq!(tried.evidence.response_truncated, truncated, "{name}");
        assert!(tried.evidence.response.len() <= 16 * 1024, "{name}");
    }
}

/// Case C016: nothing is decompressed, so a bomb is as large as it is on the wire.
#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    bomb.resize(20_000, 0);
    let length = format!("content-encoding: gzip\r\ncontent-length: {}\r\n", bomb.len());
    let tried = try_once([head(&length), Step::Write(bomb.clone())]).await;
    assert_eq!(tried.outcome, OK);
    assert_eq!(&tried.evidence.response[..], &bomb[..16 * 1024]);
    assert!(tried.evidence.response_truncated);
}

#[tokio::test]
async fn a_body_need_not_be_text() {
    let tried =
        try_once([head("content-length: 4\r\n"), Step::Write(vec![0, 0xff, 0xfe, 0])]).await;
    assert_eq!(tried.outcome, OK);
    assert_eq!(&tried.evidence.response[..], [0, 0xff, 0xfe, 0]);
}

/// Case C041: the other server sees no connection, and the body is not sent twice.
#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let mut other = Receiver::playing([head("")]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = other.url();
        let answer = format!(
            "HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\
             refresh: 0; url={location}\r\nalt-svc: h2=\"127.0.0.1:{}\"\r\n\r\n",
            other.port
        );
        let mut receiver = Receiver::playing([Step::write(answer)]).await;
        let tried = sender().send(&target(&receiver.url()), &payload(), AT).await;
        assert_eq!(tried.outcome, Outcome::Answered { status, retry_after: None });
        assert_eq!(tried.evidence.location, Some(location));
        assert_eq!(receiver.requests().len(), 1);
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_location_is_kept_in_its_bounds_and_only_of_a_redirect() {
    let with = |status: &str, location: &str| {
        let text =
            format!("HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        [Step::write(text)]
    };
    let long = "gopher://".to_owned() + &"x".repeat(5_000);
    let tried = try_once(with("302 Found", &long)).await;
    assert_eq!(tried.evidence.location.unwrap().len(), 2_048);
    let tried = try_once(with("201 Created", "/new")).await;
    assert_eq!(tried.evidence.location, None);
}

#[tokio::test]
async fn retry_after_is_read_as_seconds_or_as_a_date() {
    for (value, wait) in [
        ("retry-after: 120\r\n", Some(120)),
        ("retry-after: Fri, 31 Jul 2026 12:02:00 GMT\r\n", Some(120)),
        ("retry-after: soon\r\n", None),
        ("retry-after: 1\r\nretry-after: 2\r\n", None),
    ] {
        let answer = format!("HTTP/1.1 503 Busy\r\n{value}content-length: 0\r\n\r\n");
        let tried = try_once([Step::write(answer)]).await;
        let Outcome::Answered { status: 503, retry_after } = tried.outcome else {
            panic!("{value}: {tried:?}");
        };
        // A date is compared with the time of the answer, a few milliseconds later.
        let seconds = retry_after.map(|wait| wait.as_secs_f64().ceil());
        assert_eq!(seconds, wait.map(f64::from), "{value}");
    }
}

/// Case C072.
#[tokio::test]
async fn odd_answers_that_are_http_are_taken() {
    let headers = |count: usize| "x: y\r\n".repeat(count);
    for (name, answer, body) in [
        ("HTTP/1.0 without a length", "HTTP/1.0 200 OK\r\n\r\nhello".to_owned(), "hello"),
        ("line feeds only", "HTTP/1.1 200 OK\ncontent-length: 2\n\nok".to_owned(), "ok"),
        ("no reason", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n".to_owned(), ""),
        ("200 headers", format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", headers(200)), ""),
        (
            "64 KiB of headers",
            format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "y".repeat(65_536)),
            "",
        ),
        (
            "an interim answer",
            "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
            "",
        ),
    ] {
        let tried = try_once([Step::write(answer)]).await;
        assert_eq!(tried.outcome, OK, "{name}: {:?}", tried.evidence.detail);
        assert_eq!(&tried.evidence.response[..], body.as_bytes(), "{name}");
    }
}

/// Case C072.
#[tokio::test]
async fn an_answer_that_is_not_http_is_invalid_and_says_what_is_wrong() {
    let headers = |count: usize| "x: y\r\n".repeat(count);
    for (name, answer, word) in [
        (
            "a length of 5O",
            "HTTP/1.1 200 OK\r\ncontent-length: 5O\r\n\r\n".to_owned(),
            "content-length",
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n".to_owned(),
            "content-length",
        ),
        ("a space in a name", "HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n".to_owned(), "header"),
        ("a control character", "HTTP/1.1 200 OK\r\nx: \u{1}\r\n\r\n".to_owned(), "header"),
        ("a folded line", "HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n".to_owned(), "header"),
        ("1,000 headers", format!("HTTP/1.1 200 OK\r\n{}\r\n", headers(1_000)), "too large"),
        (
            "a head of 512 KiB",
            format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(524_288)),
            "too large",
        ),
        ("HTTP/2 in text", "HTTP/2 200\r\n\r\n".to_owned(), "version"),
        ("HTTP/2 in frames", "\0\0\0\u{4}\0\0\0\0\0".repeat(9), "version"),
        ("ICY", "ICY 200 OK\r\n\r\n".to_owned(), "version"),
        ("no head", "hello".repeat(10), "version"),
        ("a mail server", "220 mx.example ESMTP\r\n".to_owned(), "version"),
    ] {
        let tried = try_once([Step::write(answer), Step::Hang]).await;
        let detail = tried.evidence.detail.unwrap_or_default();
        let invalid = Outcome::Unanswered(Failure::ResponseInvalid);
        assert_eq!(tried.outcome, invalid, "{name}: {detail}");
        assert!(detail.contains(word), "{name}: {detail}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_the_head_is_its_own_failure() {
    for (name, steps) in [
        ("closed", vec![]),
        ("reset", vec![Step::Reset]),
        ("half a head", vec![Step::write("HTTP/1.1 200 OK\r\ncontent-le")]),
    ] {
        let tried = try_once(steps).await;
        let closed = Outcome::Unanswered(Failure::ConnectionClosed);
        assert_eq!(tried.outcome, closed, "{name}: {:?}", tried.evidence.detail);
        assert!(tried.evidence.detail.is_some_and(|detail| !detail.is_empty()), "{name}");
    }
}

/// Case C028: a pooled connection serves the next request, and one that the receiver closes costs at
/// most that attempt.
#[tokio::test]
async fn a_request_is_never_sent_twice_within_one_attempt() {
    let mut receiver = Receiver::playing([Step::Reset]).await;
    let sender = sender();
    for _ in 0..3 {
        let tried = sender.send(&target(&receiver.url()), &payload(), AT).await;
        assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectionClosed));
    }
    assert_eq!(receiver.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_before_the_deadline_is_not_delayed_to_it() {
    let began = Instant::now();
    let tried = try_once([head("content-length: 0\r\n"), Step::Hang]).await;
    assert_eq!(tried.outcome, OK);
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
}
