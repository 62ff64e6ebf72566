//! A receiver that answers byte by byte what a test says, and the sender that meets it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use domain::destination::AddressPolicy;
use domain::endpoint::{CustomHeaders, EndpointSettings, SettingsDraft};
use domain::id::{EndpointKey, PublicId, SubmissionId};
use domain::signing::{EndpointSecret, SigningSecret};
use store::endpoint::Target;
use store::submission::Payload;
use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use uuid::Uuid;
use worker::send::{Sender, Tried};

pub(crate) const BODY: &[u8] = b"{\"b\":1, \"a\":\xc3\xa9}";
pub(crate) const AT: OffsetDateTime = time::macros::datetime!(2026-07-31 12:00:00 UTC);
/// The product's deadline where it is to be met: it is waited for, so it is short.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1_000);
/// The product's deadline where an answer comes before it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a connection does after it has read the request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes one at a time, each after a tenth of the deadline, for ever.
    Drip(&'static [u8]),
    /// Writes these bytes again and again, as fast as they are taken.
    Flood(Vec<u8>),
    /// Ends the connection with a reset.
    Reset,
    /// Keeps the connection open and says nothing.
    Hang,
}

impl Step {
    pub(crate) fn write(text: impl AsRef<[u8]>) -> Self {
        Self::Write(text.as_ref().to_vec())
    }
}

/// A listening receiver. Each request that it reads is handed to the test.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    requests: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Receiver {
    /// Plays the steps on every connection, then closes it.
    pub(crate) async fn playing(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, requests) = mpsc::unbounded_channel();
        let steps: Vec<Step> = steps.into_iter().collect();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (steps, seen) = (steps.clone(), seen.clone());
                tokio::spawn(async move {
                    let Ok(request) = read_request(&mut stream).await else { return };
                    let _ = seen.send(request);
                    // The sender may be gone, which is what some of these are about.
                    let _ = play(stream, steps).await;
                });
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?x=1", self.port)
    }

    /// The requests that were read so far.
    pub(crate) fn requests(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while !request.ends_with(BODY) {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request)
}

async fn play(mut stream: TcpStream, steps: Vec<Step>) -> io::Result<()> {
    for step in steps {
        match step {
            Step::Write(bytes) => stream.write_all(&bytes).await?,
            Step::Drip(bytes) => {
                let mut ticks = tokio::time::interval(DEADLINE / 10);
                for byte in bytes.iter().cycle() {
                    ticks.tick().await;
                    stream.write_all(&[*byte]).await?;
                }
            }
            Step::Flood(bytes) => loop {
                stream.write_all(&bytes).await?;
            },
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
            Step::Hang => std::future::pending().await,
        }
    }
    stream.shutdown().await
}

/// A listener whose queue is full: the kernel drops what comes on top, so that it looks like a
/// receiver behind a firewall that says nothing.
pub(crate) struct FullQueue {
    listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullQueue {
    pub(crate) async fn on(address: &str) -> io::Result<Self> {
        let address: SocketAddr = address.parse().unwrap();
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind(address)?;
        let listener = socket.listen(0)?;
        let address = listener.local_addr()?;
        let mut queued = Vec::new();
        // A queue of 0 holds one or two connections, depending on the kernel.
        let patience = Duration::from_millis(300);
        while let Ok(Ok(stream)) = tokio::time::timeout(patience, TcpStream::connect(address)).await
        {
            queued.push(stream);
            assert!(queued.len() < 100, "the queue does not fill");
        }
        Ok(Self { listener, _queued: queued })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.listener.local_addr().unwrap())
    }
}

pub(crate) fn secret() -> SigningSecret {
    SigningSecret::from_bytes(vec![7; 24]).unwrap()
}

pub(crate) fn target(url: &str) -> Target {
    target_with(url, |_| {})
}

pub(crate) fn hasty_target(url: &str) -> Target {
    target_with(url, |draft| {
        draft.deadline = DEADLINE;
        draft.connect_deadline = DEADLINE;
    })
}

pub(crate) fn target_with(url: &str, change: impl FnOnce(&mut SettingsDraft)) -> Target {
    let mut draft = SettingsDraft {
        deadline: PATIENCE,
        connect_deadline: PATIENCE,
        ..SettingsDraft::default()
    };
    change(&mut draft);
    Target {
        endpoint: EndpointKey::from_uuid(Uuid::from_u128(1)),
        id: PublicId::parse("orders").unwrap(),
        url: url.to_owned(),
        settings: EndpointSettings::new(draft).unwrap(),
        version: 1,
        headers: Ok(CustomHeaders::default()),
        secrets: Ok(vec![EndpointSecret::V1(secret())]),
    }
}

pub(crate) fn payload() -> Payload {
    Payload {
        submission: SubmissionId::from_uuid(Uuid::from_u128(2)),
        webhook_id: Uuid::from_u128(3),
        content_type: "application/json".to_owned(),
        payload: Bytes::from_static(BODY),
    }
}

/// A sender that may go to loopback.
pub(crate) fn sender() -> Sender {
    sender_allowing(&["127.0.0.0/8", "::1/128"])
}

pub(crate) fn sender_allowing(networks: &[&str]) -> Sender {
    let allow_networks = networks.iter().map(|text| text.parse().unwrap()).collect();
    Sender::new(AddressPolicy { allow_networks }, Duration::from_secs(3)).unwrap()
}

/// Sends one request to a receiver that plays these steps.
pub(crate) async fn try_once(steps: impl IntoIterator<Item = Step>) -> Tried {
    let receiver = Receiver::playing(steps).await;
    sender().send(&target(&receiver.url()), &payload(), AT).await
}

/// The same, with a short deadline.
pub(crate) async fn try_briefly(steps: impl IntoIterator<Item = Step>) -> Tried {
    let receiver = Receiver::playing(steps).await;
    sender().send(&hasty_target(&receiver.url()), &payload(), AT).await
}
