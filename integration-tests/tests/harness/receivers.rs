use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use integration_tests::race::race;
use integration_tests::receiver::{Answer, Hold, Receiver, always, sequence};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(10);

/// How an answer without a body ends.
const EMPTY: &str = "content-length: 0\r\n\r\n";

/// A connection on which a test says exactly what it means to.
async fn connect(receiver: &Receiver) -> anyhow::Result<TcpStream> {
    Ok(TcpStream::connect(receiver.address()).await?)
}

async fn post(stream: &mut TcpStream, webhook_id: &str) -> anyhow::Result<()> {
    let request =
        format!("POST /hook HTTP/1.1\r\nWebhook-Id: {webhook_id}\r\ncontent-length: 2\r\n\r\n{{}}");
    Ok(stream.write_all(request.as_bytes()).await?)
}

async fn read_until(stream: &mut TcpStream, end: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    while !text.ends_with(end) {
        let byte = tokio::time::timeout(SOON, stream.read_u8()).await;
        text.push(char::from(byte.with_context(|| format!("nothing after {text:?}"))??));
    }
    Ok(text)
}

async fn ask(stream: &mut TcpStream, webhook_id: &str, end: &str) -> anyhow::Result<String> {
    post(stream, webhook_id).await?;
    read_until(stream, end).await
}

fn nothing_came(stream: &TcpStream) -> bool {
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn a_connection_is_kept_and_every_request_recorded() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(204))?;
    let mut stream = connect(&receiver).await?;
    for id in ["a", "b", "a"] {
        let answer = ask(&mut stream, id, "\r\n\r\n").await?;
        assert_eq!(answer, "HTTP/1.1 204 No Content\r\n\r\n");
    }
    let requests = receiver.wait_for_requests(3, SOON).await?;
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.connection == 1 && request.body == "{}"));
    assert!(requests.is_sorted_by_key(|request| request.arrived_at));
    assert_eq!(requests[0].headers[0].0, "Webhook-Id");
    assert_eq!(receiver.webhook_ids(), ["a", "b"]);
    assert_eq!(receiver.requests_of("a").len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_sequence_counts_for_each_webhook_id() -> anyhow::Result<()> {
    let receiver = Receiver::start(sequence([500, 200]))?;
    let mut stream = connect(&receiver).await?;
    let mut answers = Vec::new();
    for id in ["a", "b", "a", "a", "b"] {
        answers.push(ask(&mut stream, id, EMPTY).await?);
    }
    let succeeded: Vec<bool> = answers.iter().map(|answer| answer.contains("200 OK")).collect();
    assert_eq!(succeeded, [false, false, true, true, true]);
    Ok(())
}

#[tokio::test]
async fn a_held_answer_goes_when_it_is_released_and_not_before() -> anyhow::Result<()> {
    let hold = Hold::new();
    let receiver = Receiver::start(always(Answer::status(200).hold(&hold)))?;
    let (mut first, mut second) = (connect(&receiver).await?, connect(&receiver).await?);
    post(&mut first, "first").await?;
    receiver.wait_for_requests(1, SOON).await?;
    post(&mut second, "second").await?;
    receiver.wait_for_requests(2, SOON).await?;

    assert!(nothing_came(&first));
    hold.release(1);
    read_until(&mut first, EMPTY).await?;
    assert!(nothing_came(&second));
    hold.release_all();
    read_until(&mut second, EMPTY).await?;
    Ok(())
}

#[tokio::test]
async fn a_reset_and_a_close_are_told_apart() -> anyhow::Result<()> {
    let receiver = Receiver::start(sequence([Answer::reset(), Answer::close()]))?;
    let mut reset = connect(&receiver).await?;
    post(&mut reset, "a").await?;
    let error = reset.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let mut closed = connect(&receiver).await?;
    post(&mut closed, "a").await?;
    assert_eq!(closed.read(&mut [0]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_drip_takes_its_time_and_is_complete() -> anyhow::Result<()> {
    let pause = Duration::from_millis(1);
    let answer = Answer::status(200).body("drop").drip_head(pause).drip_body(pause);
    let receiver = Receiver::start(always(answer))?;
    let mut stream = connect(&receiver).await?;
    let started_at = Instant::now();
    let text = ask(&mut stream, "a", "drop").await?;
    assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndrop");
    // The pause after the last byte may still be going on.
    let pauses = u32::try_from(text.len())? - 1;
    assert!(started_at.elapsed() >= pause * pauses);
    Ok(())
}

#[tokio::test]
async fn an_endless_body_is_longer_than_anyone_reads() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(Answer::status(200).endless_body()))?;
    let mut stream = connect(&receiver).await?;
    post(&mut stream, "a").await?;
    stream.read_exact(&mut vec![0; 8 * 1024 * 1024]).await?;
    Ok(())
}

#[tokio::test]
async fn a_stall_says_nothing_and_raw_bytes_are_all_that_is_said() -> anyhow::Result<()> {
    let half_a_head = "HTTP/1.1 200 OK\r\n";
    let receiver = Receiver::start(sequence([Answer::stall(), Answer::raw(half_a_head)]))?;
    let mut stalled = connect(&receiver).await?;
    post(&mut stalled, "a").await?;
    receiver.wait_for_requests(1, SOON).await?;

    let mut raw = connect(&receiver).await?;
    post(&mut raw, "a").await?;
    let mut text = String::new();
    raw.read_to_string(&mut text).await?;
    assert_eq!(text, half_a_head);
    assert!(nothing_came(&stalled));
    Ok(())
}

#[tokio::test]
async fn a_wait_in_vain_says_what_there_was() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(200))?;
    ask(&mut connect(&receiver).await?, "a", EMPTY).await?;
    let error = receiver.wait_for_requests(2, Duration::from_millis(1)).await.unwrap_err();
    assert!(format!("{error:#}").contains("1 of 2 requests"), "{error:#}");
    Ok(())
}

#[tokio::test]
async fn a_dropped_receiver_refuses_and_cuts() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(Answer::stall()))?;
    let address = receiver.address();
    let mut stalled = connect(&receiver).await?;
    post(&mut stalled, "a").await?;
    receiver.wait_for_requests(1, SOON).await?;
    drop(receiver);
    assert!(matches!(stalled.read(&mut [0]).await, Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_connections_are_served_at_once() -> anyhow::Result<()> {
    const REQUESTS: usize = 200;
    let receiver = Receiver::start(always(200))?;
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(connect(&receiver).await?);
    }
    race(streams, |place, mut stream| async move {
        for number in 0..REQUESTS {
            ask(&mut stream, &format!("{place}-{number}"), EMPTY).await?;
        }
        Ok(())
    })
    .await?;
    assert_eq!(receiver.webhook_ids().len(), 32 * REQUESTS);
    Ok(())
}
