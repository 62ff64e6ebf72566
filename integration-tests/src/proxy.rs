//! An address that stays while the server behind it dies and comes back elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
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
        let mut silence = self.shared.silence.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *silence).cancel();
    }

    /// Closes every open connection: what is in flight is lost in both directions.
    pub fn cut(&self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *open).cancel();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let upstream = shared.upstream.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open = shared.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let silence = shared.silence.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tokio::spawn(
            async move { open.run_until_cancelled(pass_on(stream, upstream, silence)).await },
        );
    }
}

/// An error on either side ends both, as it would end one connection.
async fn pass_on(
    mut near: TcpStream,
    upstream: Upstream,
    silence: CancellationToken,
) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    match upstream {
        Upstream::Tcp(address) => {
            let mut far = TcpStream::connect(address).await?;
            far.set_nodelay(true)?;
            let passing = tokio::io::copy_bidirectional(&mut near, &mut far);
            if silence.run_until_cancelled(passing).await.is_none() {
                // Both are kept open.
                std::future::pending::<()>().await;
            }
        }
        Upstream::Unix(path) => {
            let mut far = UnixStream::connect(path).await?;
            let passing = tokio::io::copy_bidirectional(&mut near, &mut far);
            if silence.run_until_cancelled(passing).await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }
    Ok(())
}
