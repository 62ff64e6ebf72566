//! Receivers that take their time: one deadline over everything.

use std::net::TcpListener;
use std::time::Duration;

use domain::delivery::{Failure, Outcome};
use store::submission::Payload;
use tokio::time::Instant;

use super::receiver::{
    AT, DEADLINE, FullQueue, PATIENCE, Receiver, Step, hasty_target, payload, sender, target,
    target_with, try_briefly,
};

/// Case C032.
#[tokio::test]
async fn a_head_that_drips_or_never_comes_is_cut_at_the_deadline() {
    for (name, steps) in [
        ("no answer", vec![Step::Hang]),
        ("dripping head", vec![Step::Drip(b"HTTP/1.1 200 OK\r\nx: aaaaaaaaaaaaaaaaaaaaaaaaaaa")]),
        ("dripping headers", vec![Step::write("HTTP/1.1 200 OK\r\n"), Step::Drip(b"x: y\r\n")]),
        ("interim answers without end", vec![Step::Drip(b"HTTP/1.1 100 Continue\r\n\r\n")]),
    ] {
        let began = Instant::now();
        let tried = try_briefly(steps).await;
        let took = began.elapsed();
        assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TimedOut), "{name}");
        assert_eq!(tried.evidence.detail.as_deref(), Some("no response within 1s"), "{name}");
        assert!((DEADLINE..PATIENCE).contains(&took), "{name} took {took:?}");
    }
}

/// Case C032: the request does not fit between the two, so sending it ends nowhere.
#[tokio::test]
async fn a_receiver_that_never_reads_is_cut_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let endless = Payload { payload: vec![b'x'; 64 << 20].into(), ..payload() };
    let began = Instant::now();
    let tried = sender().send(&hasty_target(&url), &endless, AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TimedOut));
    assert!((DEADLINE..PATIENCE).contains(&began.elapsed()), "{:?}", began.elapsed());
}

/// An answer is one as soon as its head is there, and a 2xx is delivered.
#[tokio::test]
async fn a_body_that_never_ends_does_not_turn_an_answer_into_a_time_out() {
    for (status, then) in [(200, Step::Hang), (200, Step::Drip(b"x")), (500, Step::Hang)] {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 999\r\n\r\nabc");
        let began = Instant::now();
        let tried = try_briefly([Step::write(head), then]).await;
        assert_eq!(tried.outcome, Outcome::Answered { status, retry_after: None });
        assert!(tried.evidence.response.starts_with(b"abc"));
        assert!(tried.evidence.response_truncated);
        assert!(tried.evidence.detail.unwrap().contains("deadline"));
        assert!((DEADLINE..PATIENCE).contains(&began.elapsed()));
    }
}

/// Case C033.
#[tokio::test]
async fn connecting_ends_at_its_own_deadline() {
    let full = FullQueue::on("127.0.0.1:0").await.unwrap();
    let target = target_with(&full.url(), |draft| {
        draft.deadline = Duration::from_secs(30);
        draft.connect_deadline = Duration::from_millis(150);
    });
    let began = Instant::now();
    let tried = sender().send(&target, &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectTimedOut));
    assert_eq!(tried.evidence.detail.as_deref(), Some("no connection within 150ms"));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Only a time-out after the connection stood means that the receiver is overloaded.
#[tokio::test]
async fn a_connect_deadline_as_long_as_the_whole_is_still_told_apart() {
    let full = FullQueue::on("127.0.0.1:0").await.unwrap();
    let tried = sender().send(&hasty_target(&full.url()), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectTimedOut));
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses_the_connection() {
    let port = Receiver::playing([]).await.port;
    let unused = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    assert_ne!(port, unused);
    let tried =
        sender().send(&target(&format!("http://127.0.0.1:{unused}/")), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectFailed));
    assert!(tried.evidence.detail.unwrap().contains("refused"));
}
