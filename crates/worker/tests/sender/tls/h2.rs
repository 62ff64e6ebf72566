//! Receivers that speak HTTP/2, which the handshake decides, and misuse it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Failure, Outcome};
use store::endpoint::Target;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;
use worker::send::Tried;

use super::receiver::{Authority, acceptor};
use super::{NAME, OK, sender_at_home};
use crate::sender::receiver::{AT, BODY, payload, target_with};

/// RFC 9113, section 6.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH: u8 = 5;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The stream of the first request.
const STREAM: u32 = 1;

/// `:status: 200`, from the static table.
const STATUS_200: &[u8] = &[0x88];

/// Long enough for a handshake on a busy machine.
const DEADLINE: Duration = Duration::from_secs(4);
/// Longer than the deadline may be missed by.
const PATIENCE: Duration = Duration::from_secs(30);

fn frame(kind: u8, flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), bytes].concat()
}

/// A header that goes into no table. Names and values of less than 127 bytes.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

fn answer(flags: u8, more: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, STREAM, &[STATUS_200, more].concat())
}

/// What a receiver says after the handshake, after the request, and from then on without end.
#[derive(Clone, Default)]
struct Play {
    settings: Vec<u8>,
    then: Vec<u8>,
    again: Vec<u8>,
}

impl Play {
    fn then(then: Vec<u8>) -> Self {
        Self { then, ..Self::default() }
    }

    fn again(then: Vec<u8>, again: Vec<u8>) -> Self {
        Self { then, again, ..Self::default() }
    }
}

/// Reads frames up to the end of the first request, and answers its body.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let mut body = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut bytes).await?;
        let (kind, flags) = (head[3], head[4]);
        if kind == DATA {
            body.extend_from_slice(&bytes);
        }
        if (kind == DATA || kind == HEADERS) && flags & END_STREAM != 0 {
            return Ok(body);
        }
    }
}

/// What becomes of a request to a receiver that plays this on every connection.
async fn try_with(play: Play) -> Tried {
    let (target, _) = receiver(play).await;
    sender_at_home().send(&target, &payload(), AT).await
}

/// Such a receiver, and the bodies of the requests that it reads.
async fn receiver(play: Play) -> (Target, tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>) {
    let ours = Authority::new("ours");
    let acceptor = acceptor(ours.issue(&[NAME]), None, &[b"h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{NAME}:{}/", listener.local_addr().unwrap().port());
    let (seen, bodies) = tokio::sync::mpsc::unbounded_channel();
    let play = Arc::new(play);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, play, seen) = (acceptor.clone(), Arc::clone(&play), seen.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await?;
                let (mut reader, mut writer) = tokio::io::split(stream);
                writer.write_all(&frame(SETTINGS, 0, 0, &play.settings)).await?;
                let _ = seen.send(read_request(&mut reader).await?);
                tokio::spawn(
                    async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await },
                );
                writer.write_all(&play.then).await?;
                while !play.again.is_empty() {
                    writer.write_all(&play.again).await?;
                }
                writer.flush().await?;
                std::future::pending::<io::Result<()>>().await
            });
        }
    });
    let target = target_with(&url, |draft| {
        draft.ca_certificates = Some(ours.certificates());
        draft.deadline = DEADLINE;
        draft.connect_deadline = DEADLINE;
    });
    (target, bodies)
}

#[tokio::test]
async fn a_receiver_that_offers_http_2_is_spoken_to_in_it() {
    let body = frame(DATA, END_STREAM, STREAM, b"ok");
    let (target, mut bodies) = receiver(Play::then([answer(0, &[]), body].concat())).await;
    let tried = sender_at_home().send(&target, &payload(), AT).await;
    assert_eq!(tried.outcome, OK, "{:?}", tried.evidence.detail);
    assert_eq!(&tried.evidence.response[..], b"ok");
    assert_eq!(bodies.try_recv().unwrap(), BODY);
}

/// The head decides, as over HTTP/1.1.
#[tokio::test]
async fn a_body_over_http_2_that_has_no_end_is_cut_off() {
    let data = frame(DATA, 0, STREAM, &[b'x'; 16_384]);
    for (name, again) in [("a flood", data), ("empty frames", frame(DATA, 0, STREAM, b""))] {
        let tried = try_with(Play::again(answer(0, &[]), again)).await;
        assert_eq!(tried.outcome, OK, "{name}: {:?}", tried.evidence.detail);
        assert!(tried.evidence.response_truncated, "{name}");
        assert!(tried.evidence.response.len() <= 16 * 1024, "{name}");
    }
}

#[tokio::test]
async fn a_receiver_that_misuses_http_2_fails_its_attempt_and_is_cut_by_the_deadline() {
    let line = header("x", &"y".repeat(100));
    let continued = |bytes: &[u8]| {
        Play::again(frame(HEADERS, 0, STREAM, STATUS_200), frame(CONTINUATION, 0, STREAM, bytes))
    };
    // An entry of the table has 4 KiB, and is named by one byte.
    let entry = [&[0x40, 1, b'x', 127, 0xa1, 0x1e][..], &[b'y'; 4_000]].concat();
    let bomb = answer(END_STREAM, &[&entry[..], &[0xbe; 12_000]].concat());
    let interim = frame(HEADERS, END_HEADERS, STREAM, &[&[0x08, 3][..], b"103"].concat());
    let no_window = Play { settings: [&[0, 4][..], &[0; 4]].concat(), ..Play::default() };
    let late = "no response within 4s";
    let cases = [
        ("nothing", Play::default(), late),
        ("pings", Play::again(Vec::new(), frame(PING, 0, 0, &[7; 8])), late),
        ("settings", Play::again(Vec::new(), frame(SETTINGS, 0, 0, &[])), late),
        ("interim answers", Play::again(Vec::new(), interim), late),
        ("no room for the request", no_window, late),
        ("headers without end", continued(&line.repeat(150)), "too_many_continuations"),
        ("empty continuations", continued(b""), "too_many_continuations"),
        ("a header named 12,000 times", Play::then(bomb), "header_list_way_too_large"),
        (
            "an answer to no request",
            Play::then(frame(HEADERS, END_HEADERS | END_STREAM, 3, STATUS_200)),
            "protocol error",
        ),
        ("no status", Play::then(frame(HEADERS, END_HEADERS, STREAM, &line)), "protocol error"),
        (
            "a push",
            Play::then(frame(PUSH, END_HEADERS, STREAM, &[0, 0, 0, 2, 0x82])),
            "protocol error",
        ),
        ("a reset", Play::then(frame(RESET, 0, STREAM, &[0, 0, 0, 2])), "stream error received"),
        ("an end", Play::then(frame(GO_AWAY, 0, 0, &[0; 8])), "connection error received"),
        ("no frame", Play::then(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), "invalid size"),
    ];
    let tries = cases.map(|(name, play, word)| async move {
        let began = Instant::now();
        let tried = try_with(play).await;
        let failure = if word == late { Failure::TimedOut } else { Failure::ConnectionClosed };
        let detail = tried.evidence.detail.unwrap_or_default();
        assert_eq!(tried.outcome, Outcome::Unanswered(failure), "{name}: {detail}");
        assert!(detail.contains(word), "{name}: {detail}");
        assert!(began.elapsed() < PATIENCE, "{name} took {:?}", began.elapsed());
    });
    futures_util::future::join_all(tries).await;
}
