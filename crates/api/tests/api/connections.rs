//! Connections: how long one may be held for nothing, and what becomes of callers when there are too many.

use std::num::NonZeroUsize;
use std::time::Duration;

use api::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, Api, PATIENCE, settings};

const SHORT: Duration = Duration::from_millis(300);
/// actix-web looks at the clock every half second, so of its own deadlines that much may be missing.
const BRIEF: Duration = Duration::from_secs(2);
const LIVE: &[u8] = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
/// Its answer is the longest that needs no key.
const LONG: &[u8] = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";

/// An api that is short with everybody.
async fn hasty(change: impl FnOnce(&mut Settings)) -> Api {
    let mut settings = Settings {
        client_request_timeout: BRIEF,
        keep_alive: BRIEF,
        body_deadline: SHORT,
        ..settings()
    };
    change(&mut settings);
    Api::start_with(settings).await
}

async fn connect(api: &Api) -> TcpStream {
    TcpStream::connect(api.running.address()).await.unwrap()
}

/// A connection on which a request was answered.
async fn served(api: &Api) -> TcpStream {
    let mut stream = connect(api).await;
    serve(&mut stream).await;
    stream
}

async fn serve(stream: &mut TcpStream) {
    stream.write_all(LIVE).await.unwrap();
    assert_eq!(Answer::read(stream).await.status, 200);
}

/// Waits for the server to end the connection, without writing to it.
async fn ended(mut stream: TcpStream) {
    let reading = async {
        let mut buffer = [0; 1024];
        while let Ok(1..) = stream.read(&mut buffer).await {}
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the server ends the connection");
}

/// Writes every now and then these bytes, one at a time, until the server ends the connection.
async fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    let dripping = async {
        let mut ticks = tokio::time::interval(SHORT / 10);
        for byte in bytes.iter().cycle() {
            ticks.tick().await;
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, dripping).await.expect("the server ends the connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_cut_before_a_first_request_and_after_it() {
    let api = hasty(|_| {}).await;
    ended(connect(&api).await).await;
    ended(served(&api).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_later_request_is_cut_like_that_of_the_first() {
    let api = hasty(|_| {}).await;
    let dripped = b"GET /livez HTTP/1.1\r\nx: aaaaaaaaaaaaaaaaaaaa";
    for start in [&b""[..], b"GET /livez HTTP/1.1\r\n"] {
        drip(&mut served(&api).await, dripped).await;
        // The start of it may come with the request before.
        let mut stream = connect(&api).await;
        stream.write_all(&[LIVE, start].concat()).await.unwrap();
        assert_eq!(Answer::read(&mut stream).await.status, 200);
        ended(stream).await;
    }
    serve(&mut connect(&api).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_takes_ends_its_connection() {
    let api = hasty(|settings| settings.keep_alive = PATIENCE).await;
    let mut stream = connect(&api).await;
    let sending = async { while stream.write_all(LONG).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, sending).await.expect("the server ends the connection");
    serve(&mut connect(&api).await).await;
}

/// Who is slow in taking them is not told less.
#[tokio::test(flavor = "multi_thread")]
async fn answers_to_many_requests_sent_ahead_all_come_in_the_end() {
    let api = Api::start().await;
    let mut stream = connect(&api).await;
    stream.write_all(&[LONG.repeat(30), LIVE.repeat(300)].concat()).await.unwrap();
    let first = Answer::read(&mut stream).await;
    for _ in 1..30 {
        assert_eq!(Answer::read(&mut stream).await.body, first.body);
    }
    for _ in 0..300 {
        assert_eq!(Answer::read(&mut stream).await.status, 200);
    }
    serve(&mut stream).await;
}

/// Sixteen is the least that can be set.
const PLACES: usize = 16;

fn few(settings: &mut Settings) {
    settings.connections_max = PLACES;
    settings.workers = NonZeroUsize::MIN;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_too_many_waits_for_a_place_and_holds_up_nobody() {
    let mut settings = settings();
    few(&mut settings);
    let api = Api::start_with(settings).await;
    let mut callers = Vec::new();
    for _ in 0..PLACES {
        callers.push(served(&api).await);
    }
    let mut waiting = connect(&api).await;
    waiting.write_all(LIVE).await.unwrap();
    for _ in 0..20 {
        for caller in &mut callers {
            serve(caller).await;
        }
        // Operators have places of their own.
        let ready = api.get("/readyz").to(api.running.private_address()).send().await;
        assert_eq!(ready.status, 200);
    }
    let nothing = waiting.try_read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    // Each place comes back, and only once.
    for _ in 0..2 * PLACES {
        drop(callers.remove(0));
        assert_eq!(Answer::read(&mut waiting).await.status, 200);
        callers.push(waiting);
        waiting = connect(&api).await;
        waiting.write_all(LIVE).await.unwrap();
    }
    let nothing = waiting.try_read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_are_held_for_nothing_come_back() {
    let api = hasty(few).await;
    let mut holding = Vec::new();
    for number in 0..2 * PLACES {
        let mut stream = connect(&api).await;
        // The system has it, whether it is accepted or not.
        match number % 3 {
            0 => {}
            1 => stream.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap(),
            _ => stream.write_all(&LONG.repeat(200)).await.unwrap(),
        }
        holding.push(stream);
    }
    serve(&mut connect(&api).await).await;
    drop(holding);
}
