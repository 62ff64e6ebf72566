//! Failures of TLS: before the receiver has proved who it is, it is told nothing.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use domain::delivery::{Failure, Outcome};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::receiver::{AT, Receiver, Step, hasty_target, payload, sender, target, try_once};

/// Made with `openssl req -x509`, for `localhost` and 127.0.0.1, signed by itself.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");

/// Case C076.
#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_a_tls_failure_and_nothing_is_sent() {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = thread::spawn(move || {
        let mut received = Vec::new();
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // Ends with the error that the client closed the handshake with.
            let _ = StreamOwned::new(connection, stream).read_to_end(&mut received);
        }
        received
    });
    let sender = sender();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}/");
        let tried = sender.send(&target(&url), &payload(), AT).await;
        let detail = tried.evidence.detail.unwrap();
        assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed), "{detail}");
        assert!(detail.contains("UnknownIssuer"), "{detail}");
    }
    let received = tokio::task::spawn_blocking(|| receiver.join().unwrap()).await.unwrap();
    assert!(received.is_empty());
}

#[tokio::test]
async fn a_receiver_without_tls_on_its_port_is_a_tls_failure() {
    // It waits for our plain request, so it never answers the handshake; the other answers at once.
    let silent = Receiver::playing([Step::Hang]).await;
    let url = format!("https://127.0.0.1:{}/", silent.port);
    let tried = sender().send(&hasty_target(&url), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ConnectTimedOut));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let plain = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 512];
        let count = stream.read(&mut hello).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        count
    });
    let tried = sender().send(&target(&url), &payload(), AT).await;
    let detail = tried.evidence.detail.unwrap();
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed), "{detail}");
    assert!(plain.join().unwrap() > 0);
}

#[tokio::test]
async fn a_connection_that_ends_in_the_handshake_is_a_tls_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let closing = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 4_096];
        stream.read(&mut hello).unwrap()
    });
    let tried = sender().send(&target(&url), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::TlsFailed));
    assert!(closing.join().unwrap() > 0);
}

/// TLS on a port that is sent plain HTTP answers with an alert, which is no HTTP.
#[tokio::test]
async fn a_tls_alert_to_a_plain_request_is_an_invalid_response() {
    let alert = [21, 3, 1, 0, 2, 2, 70];
    let tried = try_once([Step::write(alert), Step::Hang]).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::ResponseInvalid));
}
