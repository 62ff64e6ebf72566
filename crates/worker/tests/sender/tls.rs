//! TLS: before the receiver has proved who it is, it is told nothing.

mod h2;
mod receiver;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use domain::delivery::{Failure, Outcome};
use domain::destination::AddressPolicy;
use domain::endpoint::CaCertificates;
use rcgen::{CertificateParams, DnType, date_time_ymd};
use store::endpoint::Target;
use tokio::io::AsyncWriteExt as _;
use worker::send::Sender;

use self::receiver::{Authority, Identity, TlsReceiver};
use super::receiver::{
    AT, DEADLINE, Receiver, Step, hasty_target, payload, sender, target, target_with, try_once,
};

const OK: Outcome = Outcome::Answered { status: 200, retry_after: None };
const NAME: &str = "hooks.example";

/// A sender to which every name is this machine.
fn sender_at_home() -> Sender {
    let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse().unwrap()] };
    let home = |_| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    };
    Sender::resolving(policy, Duration::from_secs(3), Box::new(home)).unwrap()
}

fn trusting(url: &str, certificates: Option<CaCertificates>) -> Target {
    target_with(url, |draft| draft.ca_certificates = certificates)
}

/// Case C076.
#[tokio::test]
async fn a_receiver_that_proves_nothing_is_refused_with_the_reason_and_told_nothing() {
    let ours = Authority::new("ours");
    let theirs = Authority::new("theirs");
    let between = ours.below("between");
    let cn = |params: &mut CertificateParams| {
        params.distinguished_name.push(DnType::CommonName, NAME);
    };
    let identities = [
        ("signed by another", theirs.issue(&[NAME]), "UnknownIssuer"),
        (
            "signed by another, who is shown",
            theirs.issue(&[NAME]).showing(&theirs),
            "UnknownIssuer",
        ),
        ("signed by itself", Identity::self_signed(&[NAME]), "UnknownIssuer"),
        ("a link is missing", between.issue(&[NAME]), "UnknownIssuer"),
        ("another name", ours.issue(&["other.example"]), "not valid for name"),
        ("a name in its subject alone", ours.issue_with(&[], cn), "not valid for"),
        (
            "expired",
            ours.issue_with(&[NAME], |it| it.not_after = date_time_ymd(2020, 1, 1)),
            "expired",
        ),
        (
            "not yet valid",
            ours.issue_with(&[NAME], |it| it.not_before = date_time_ymd(2120, 1, 1)),
            "not valid yet",
        ),
    ];
    for (name, identity, reason) in identities {
        let mut receiver = TlsReceiver::showing(identity).await;
        let url = format!("https://{NAME}:{}/", receiver.port);
        let target = trusting(&url, Some(ours.certificates()));
        let tried = sender_at_home().send(&target, &payload(), AT).await;
        let detail = tried.evidence.detail.unwrap();
        assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed), "{name}: {detail}");
        assert!(detail.contains(reason), "{name}: {detail}");
        assert!(receiver.seen().is_empty(), "{name}");
        // Once, over TLS: not again, and not in plain text.
        assert_eq!(receiver.connections.load(Ordering::SeqCst), 1, "{name}");
    }
}

/// Case C076: the setting that people need in place of a switch that turns verification off.
#[tokio::test]
async fn a_receiver_that_the_endpoints_own_authority_vouches_for_is_delivered_to() {
    let ours = Authority::new("ours");
    let between = ours.below("between");
    for identity in [ours.issue(&[NAME]), between.issue(&[NAME]).showing(&between)] {
        let mut receiver = TlsReceiver::showing(identity).await;
        let url = format!("https://{NAME}:{}/", receiver.port);
        let target = trusting(&url, Some(ours.certificates()));
        let tried = sender_at_home().send(&target, &payload(), AT).await;
        assert_eq!(tried.outcome, OK, "{:?}", tried.evidence.detail);
        let seen = receiver.seen().remove(0);
        assert_eq!(seen.server_name.as_deref(), Some(NAME));
        assert!(seen.request.starts_with(b"POST / HTTP/1.1\r\n"));
    }
}

/// Not by its roots, its open connections or its sessions.
#[tokio::test]
async fn the_authority_of_one_endpoint_vouches_for_no_other() {
    let ours = Authority::new("ours");
    let mut receiver = TlsReceiver::showing(ours.issue(&[NAME])).await;
    let url = format!("https://{NAME}:{}/", receiver.port);
    let sender = sender_at_home();
    let with = trusting(&url, Some(ours.certificates()));
    let without = trusting(&url, None);
    let with_another = trusting(&url, Some(Authority::new("theirs").certificates()));
    for (target, expected) in [
        (&with, OK),
        (&without, Outcome::Unanswered(Failure::TlsFailed)),
        (&with_another, Outcome::Unanswered(Failure::TlsFailed)),
        (&with, OK),
        (&without, Outcome::Unanswered(Failure::TlsFailed)),
    ] {
        let tried = sender.send(target, &payload(), AT).await;
        assert_eq!(tried.outcome, expected, "{:?}", tried.evidence.detail);
    }
    assert_eq!(receiver.seen().len(), 2);
}

/// Case C075.
#[tokio::test]
async fn an_address_is_verified_as_an_address_and_not_named_in_the_handshake() {
    let ours = Authority::new("ours");
    let cn = |address: &'static str| {
        move |params: &mut CertificateParams| {
            params.distinguished_name.push(DnType::CommonName, address);
        }
    };
    for (listen, host, address) in
        [("127.0.0.1:0", "127.0.0.1", "127.0.0.1"), ("[::1]:0", "[::1]", "::1")]
    {
        if TcpListener::bind(listen).is_err() {
            assert_ne!(address, "127.0.0.1", "a machine may have no IPv6");
            continue;
        }
        for (name, identity, may) in [
            ("its address", ours.issue(&[address]), true),
            ("a name", ours.issue(&[NAME]), false),
            ("the address as a subject", ours.issue_with(&[NAME], cn(address)), false),
        ] {
            let mut receiver = TlsReceiver::start(identity, None, listen).await;
            let url = format!("https://{host}:{}/", receiver.port);
            let target = trusting(&url, Some(ours.certificates()));
            let tried = sender().send(&target, &payload(), AT).await;
            let detail = tried.evidence.detail.unwrap_or_default();
            let seen = receiver.seen();
            if may {
                assert_eq!(tried.outcome, OK, "{host}, {name}: {detail}");
                // RFC 6066, section 3: no literal addresses.
                assert_eq!(seen[0].server_name, None);
            } else {
                let refused = Outcome::Unanswered(Failure::TlsFailed);
                assert_eq!(tried.outcome, refused, "{host}, {name}: {detail}");
                assert!(detail.contains("not valid for") && seen.is_empty(), "{name}: {detail}");
            }
        }
    }
}

/// Case C076.
#[tokio::test]
async fn a_receiver_that_wants_to_know_its_caller_is_a_tls_failure() {
    let ours = Authority::new("ours");
    let receiver = TlsReceiver::wanting_clients_of(&ours, ours.issue(&[NAME])).await;
    let url = format!("https://{NAME}:{}/", receiver.port);
    let target = trusting(&url, Some(ours.certificates()));
    let tried = sender_at_home().send(&target, &payload(), AT).await;
    let detail = tried.evidence.detail.unwrap();
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed), "{detail}");
    assert!(detail.contains("CertificateRequired"), "{detail}");
}

/// Case C076: a receiver with TLS 1.0 alone answers like this to a greeting of 1.2 and 1.3.
#[tokio::test]
async fn a_receiver_with_too_old_a_tls_is_a_tls_failure_that_says_so() {
    let detail = failed_after_hello(&[21, 3, 1, 0, 2, 2, 70]).await;
    assert!(detail.contains("ProtocolVersion"), "{detail}");
}

#[tokio::test]
async fn a_connection_that_ends_in_the_handshake_is_a_tls_failure() {
    failed_after_hello(&[]).await;
}

/// Cases C032 and C076. It waits for our plain request, so it never answers the handshake.
#[tokio::test]
async fn a_receiver_that_never_answers_the_handshake_is_cut_at_the_connect_deadline() {
    let silent = Receiver::playing([Step::Hang]).await;
    let url = format!("https://127.0.0.1:{}/", silent.port);
    let tried = sender().send(&hasty_target(&url), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectTimedOut));
}

/// Case C032: a byte now and then does not move the deadline.
#[tokio::test]
async fn a_handshake_that_drips_is_cut_at_the_connect_deadline() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut ticks = tokio::time::interval(DEADLINE / 10);
        // A record of a handshake, longer than what will come of it.
        for byte in [22, 3, 3, 64, 0].into_iter().chain(std::iter::repeat(2)) {
            ticks.tick().await;
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    });
    let tried = sender().send(&hasty_target(&url), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectTimedOut));
}

/// Case C076: nothing is sent again in plain text.
#[tokio::test]
async fn a_receiver_without_tls_on_its_port_is_a_tls_failure() {
    failed_after_hello(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
}

/// What became of a handshake whose first message is answered with these bytes and the end.
async fn failed_after_hello(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let receiver = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 4_096];
        let read = stream.read(&mut hello).unwrap();
        stream.write_all(answer).unwrap();
        drop(stream);
        listener.set_nonblocking(true).unwrap();
        (read, listener.accept().is_ok())
    });
    let tried = sender().send(&target(&url), &payload(), AT).await;
    let detail = tried.evidence.detail.unwrap();
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed), "{detail}");
    let (hello, again) = receiver.join().unwrap();
    assert!(hello > 0 && !again);
    detail
}

/// Case C076: TLS on a port that is sent plain HTTP answers with an alert, which is no HTTP.
#[tokio::test]
async fn a_tls_alert_to_a_plain_request_is_an_invalid_response() {
    let alert = [21, 3, 1, 0, 2, 2, 70];
    let tried = try_once([Step::write(alert), Step::Hang]).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ResponseInvalid));
}

/// The environment belongs to a process, so this test runs itself again in others.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "what the child tells its parent")]
async fn the_platform_says_who_is_trusted_and_what_it_says_is_not_replaced() {
    const CHILD: &str = "FENCEPOST_TEST_TLS_PORT";
    if let Ok(port) = std::env::var(CHILD) {
        let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse().unwrap()] };
        let text = match Sender::new(policy, Duration::from_secs(3)) {
            Err(error) => format!("{error:#}"),
            Ok(sender) => {
                let target = target(&format!("https://127.0.0.1:{port}/"));
                format!("{:?}", sender.send(&target, &payload(), AT).await)
            }
        };
        println!("{text}");
        return;
    }
    let ours = Authority::new("ours");
    let receiver = TlsReceiver::showing(ours.issue(&["127.0.0.1"])).await;
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("roots.pem");
    std::fs::write(&bundle, ours.pem()).unwrap();
    for (roots, expected) in [
        (bundle, "Answered { status: 200"),
        (folder.path().join("missing.pem"), "the root certificates of this machine cannot be read"),
    ] {
        let test = "sender::tls::the_platform_says_who_is_trusted_and_what_it_says_is_not_replaced";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, receiver.port.to_string())
            .env("SSL_CERT_FILE", roots)
            .env_remove("SSL_CERT_DIR");
        let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(expected), "{text}");
    }
}
