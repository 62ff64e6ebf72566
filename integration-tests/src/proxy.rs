//! An address that stays while the server behind it dies and comes back elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Where the connections go.
#[derive(Clone, Debug)]
pub enum Upstream {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Passes connections on until it is dropped. A connection whose server is not there is closed.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<Upstream>,
    /// Cancelled, and replaced, to cut what is open.
    open: Mutex<CancellationToken>,
    /// The same, to silence it.
    silence: Mutex<CancellationToken>,
    /// How many messages of clients are passed on until it falls silent by itself.
    messages_left: Mutex<Option<u32>>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1.
    pub async fn start(upstream: Upstream) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a port for the proxy")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            open: Mutex::new(CancellationToken::new()),
            silence: Mutex::new(CancellationToken::new()),
            messages_left: Mutex::new(None),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _accepting: AbortOnDropHandle::new(accepting) })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections go there.
    pub fn lead_to(&self, upstream: Upstream) {
        *self.shared.upstream.lock().unwrap_or_else(PoisonError::into_inner) = upstream;
    }

    /// Passes nothing on any more over the connections that are open, and closes none: for both sides it
    /// looks as if the other thought for ever. New connections are passed on.
    pub fn fall_silent(&self) {
        self.shared.fall_silent();
    }

    /// Falls silent when clients have sent so many more messages: the one after them is not passed on.
    pub fn fall_silent_after(&self, messages: u32) {
        *self.shared.messages_left.lock().unwrap_or_else(PoisonError::into_inner) = Some(messages);
    }

    /// Closes every open connection: what is in flight is lost in both directions.
    pub fn cut(&self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *open).cancel();
    }
}

impl Shared {
    fn fall_silent(&self) {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *silence).cancel();
    }

    /// Whether one more message of a client may be passed on.
    fn count_message(&self) -> bool {
        let mut left = self.messages_left.lock().unwrap_or_else(PoisonError::into_inner);
        match *left {
            None => true,
            Some(0) => {
                *left = None;
                self.fall_silent();
                false
            }
            Some(more) => {
                *left = Some(more - 1);
                true
            }
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let open = shared.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { open.run_until_cancelled(pass_on(stream, shared)).await });
    }
}

/// An error on either side ends both, as it would end one connection.
async fn pass_on(near: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    let upstream = shared.upstream.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match upstream {
        Upstream::Tcp(address) => {
            let far = TcpStream::connect(address).await?;
            far.set_nodelay(true)?;
            pass_between(near, far, &shared).await
        }
        Upstream::Unix(path) => pass_between(near, UnixStream::connect(path).await?, &shared).await,
    }
}

async fn pass_between(
    near: TcpStream,
    far: impl AsyncRead + AsyncWrite,
    shared: &Shared,
) -> std::io::Result<()> {
    let silence = shared.silence.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (mut from_client, mut to_client) = tokio::io::split(near);
    let (mut from_server, mut to_server) = tokio::io::split(far);
    let there = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let length = from_client.read(&mut buffer).await?;
            if length == 0 {
                return to_server.shutdown().await;
            }
            if !shared.count_message() {
                std::future::pending::<()>().await;
            }
            to_server.write_all(buffer.get(..length).unwrap_or_default()).await?;
        }
    };
    let back = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    let passing = async { tokio::try_join!(there, back).map(drop) };
    match silence.run_until_cancelled(passing).await {
        Some(ended) => ended,
        // Both are kept open.
        None => std::future::pending().await,
    }
}
