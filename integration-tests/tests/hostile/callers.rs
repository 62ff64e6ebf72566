//! Callers of the api who send as much as is taken, and read nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::StatusCode;
use integration_tests::api_binary;
use integration_tests::process::{Api, Settings};
use store::StoreOptions;
use store::api_key::{NewApiKey, Role};
use store::sealing::{Sealer, SealingKey};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::measured::{Measured, PEERS, peak_of, rests};

/// What takes no byte for that long takes none.
const BLOCKED: Duration = Duration::from_secs(3);
/// Who is never blocked has sent enough by then.
const ENOUGH: Duration = Duration::from_secs(40);

struct Kind {
    name: &'static str,
    start: Vec<u8>,
    /// Sent again and again, so many bytes of it.
    then: Vec<u8>,
    bytes: usize,
}

/// What a caller can do without a key, and with one.
fn kinds(key: &str) -> Vec<Kind> {
    let submit = |framing: &str| {
        format!(
            "POST /v1/endpoints/orders/submissions HTTP/1.1\r\nHost: a\r\n\
             Authorization: Bearer {key}\r\n{framing}\r\n\r\n"
        )
        .into_bytes()
    };
    let head = || b"GET /livez HTTP/1.1\r\nHost: a\r\nx: ".to_vec();
    let long = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let shortest = b"GET / HTTP/1.1\r\nHost:\r\n\r\n".repeat(300);
    let endless = usize::MAX;
    let kind = |name, start, then, bytes| Kind { name, start, then, bytes };
    vec![
        kind("who say nothing", Vec::new(), Vec::new(), 0),
        kind("heads of 127 KiB without an end", head(), vec![b'y'; 8_192], 127 * 1_024),
        kind("headers without end", head(), b"y\r\nx: ".repeat(1_000), endless),
        kind(
            "payloads of 256 KiB less a byte",
            submit("Content-Length: 262144"),
            vec![b'1'; 8_191],
            262_143,
        ),
        kind(
            "chunks without end",
            submit("Transfer-Encoding: chunked"),
            [b"400\r\n".as_slice(), &[b'1'; 1_024], b"\r\n"].concat(),
            endless,
        ),
        kind(
            "chunks of 256 KiB less a byte, one byte each",
            submit("Transfer-Encoding: chunked"),
            b"1\r\na\r\n".repeat(1_000),
            262_143 * 6,
        ),
        kind(
            "chunk extensions without end",
            submit("Transfer-Encoding: chunked"),
            [b"1;".as_slice(), &[b'x'; 8_190]].concat(),
            endless,
        ),
        kind("long answers that nobody reads", Vec::new(), long.repeat(20), endless),
        kind("shortest requests, no answer read", Vec::new(), shortest.clone(), endless),
        kind("shortest requests after long ones", long.repeat(20), shortest.clone(), endless),
        kind(
            "shortest requests after half a payload",
            submit("Content-Length: 100000"),
            [vec![b'1'; 100_000], shortest].concat(),
            endless,
        ),
    ]
}

pub(crate) async fn measure() -> anyhow::Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
    store::migrate(&url).await?;
    let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
    let store = store::open(&url, StoreOptions::new(sealer)).await?;
    let key = NewApiKey::generate("test", Role::Admin, None)?;
    store.create_api_key(&key).await?;
    // Nobody's turn comes by the clock: the peak is that of all at once.
    let settings = Settings::new(&url)
        .with("RUST_LOG", "off")
        .with("FENCEPOST_SOURCE_RATE", "off")
        .with("FENCEPOST_HEAD_DEADLINE", "2m")
        .with("FENCEPOST_BODY_DEADLINE", "2m");
    let mut all = Vec::new();
    for kind in kinds(key.reveal()) {
        let api = Api::start(api_binary!(), &settings).await?;
        let client = api.client(key.reveal())?;
        let endpoint = serde_json::json!({
            "id": "orders",
            "url": "http://127.0.0.1:4711/",
            "ingest_rate": {"limit": 100_000, "window": "1m"},
        });
        // Of all but the first it is there.
        client.post_json("/v1/endpoints", &endpoint).await?;
        client.get("/v1/endpoints/orders").await?.expect_status(StatusCode::OK)?;
        let before = peak_of(&api.process)?;
        let address = api.url.strip_prefix("http://").context("an address")?.to_owned();
        let kind = Arc::new(kind);
        let together = Arc::new(Barrier::new(PEERS + 1));
        let holding = Arc::new(Barrier::new(PEERS + 1));
        for _ in 0..PEERS {
            let (kind, address) = (Arc::clone(&kind), address.clone());
            let (together, holding) = (Arc::clone(&together), Arc::clone(&holding));
            tokio::spawn(async move {
                let stream = tokio::time::timeout(ENOUGH, call(&kind, &address)).await;
                together.wait().await;
                holding.wait().await;
                drop(stream);
            });
        }
        together.wait().await;
        rests(&api.process).await?;
        let peak = peak_of(&api.process)?;
        holding.wait().await;
        all.push(Measured { kind: kind.name, peers: PEERS, before, peak }.told());
    }
    Ok(all)
}

/// Sends until all is sent, nothing is taken any more, or the connection has ended.
async fn call(kind: &Kind, address: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&kind.start).await?;
    let mut left = kind.bytes;
    while left > 0 {
        let part = kind.then.len().min(left);
        match tokio::time::timeout(BLOCKED, stream.write_all(&kind.then[..part])).await {
            Ok(Ok(())) if kind.bytes == usize::MAX => {}
            Ok(Ok(())) => left -= part,
            Ok(Err(_)) | Err(_) => break,
        }
    }
    Ok(stream)
}
