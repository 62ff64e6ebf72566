//! The receiver of the bench: it answers at once, after a while, with an error or never, as the path
//! of the request says.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use domain::signing::WEBHOOK_ID;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{threads, usage};

/// What its threads are called.
const THREADS: &str = "bench-receive";

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// 204 at once.
    AtOnce,
    /// 204 at once, and counted apart as well.
    Apart,
    /// 204 after that many milliseconds.
    After(u16),
    /// 500 at once.
    Fails,
    /// Never.
    Hangs,
}

impl Conduct {
    fn path(self) -> String {
        match self {
            Self::AtOnce => "/after/0".to_owned(),
            Self::Apart => "/apart".to_owned(),
            Self::After(millis) => format!("/after/{millis}"),
            Self::Fails => "/fails".to_owned(),
            Self::Hangs => "/hangs".to_owned(),
        }
    }

    fn of_path(path: &str) -> Self {
        match path {
            "/fails" => Self::Fails,
            "/hangs" => Self::Hangs,
            "/apart" => Self::Apart,
            path => match path.strip_prefix("/after/").and_then(|millis| millis.parse().ok()) {
                None | Some(0) => Self::AtOnce,
                Some(millis) => Self::After(millis),
            },
        }
    }
}

/// A request that was answered with a 204, and when its head had come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) webhook_id: Uuid,
    pub(super) at: Instant,
}

/// A receiver on loopback, on threads of its own.
#[derive(Debug)]
pub(super) struct Receiver {
    /// What the paths of its addresses stand behind.
    base: String,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

#[derive(Debug, Default)]
struct State {
    delivered: AtomicU64,
    apart: AtomicU64,
    /// Kept while somebody wants them.
    arrivals: Mutex<Option<Vec<Arrival>>>,
}

impl Receiver {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let base = format!("http://{}", listener.local_addr()?);
        Self::listening(listener, base)
    }

    /// For workers elsewhere, which reach it there: `http://HOST:PORT`, that port of this machine.
    pub(super) fn start_at(base: &str, port: u16) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
        let listener = listener.with_context(|| format!("port {port} for the receiver"))?;
        Self::listening(listener, base.to_owned())
    }

    fn listening(listener: std::net::TcpListener, base: String) -> anyhow::Result<Self> {
        let runtime = threads::runtime(THREADS)?;
        listener.set_nonblocking(true)?;
        let state = Arc::new(State::default());
        let listening = Arc::clone(&state);
        runtime.spawn(async move {
            if let Ok(listener) = TcpListener::from_std(listener) {
                listen(listener, listening).await;
            }
        });
        Ok(Self { base, state, runtime: Some(runtime) })
    }

    pub(super) fn url(&self, conduct: Conduct) -> String {
        format!("{}{}", self.base, conduct.path())
    }

    /// How many requests were answered with a 204.
    pub(super) fn delivered(&self) -> u64 {
        self.state.delivered.load(Ordering::Relaxed)
    }

    /// How many of them are counted apart.
    pub(super) fn apart(&self) -> u64 {
        self.state.apart.load(Ordering::Relaxed)
    }

    /// How many are from now on, to be asked from elsewhere.
    pub(super) fn delivered_from_now(&self) -> Delivered {
        Delivered { state: Arc::clone(&self.state), before: self.delivered() }
    }

    /// From now on arrivals are kept.
    pub(super) fn keep_arrivals(&self) {
        *self.state.arrivals() = Some(Vec::new());
    }

    /// What has arrived since; no more is kept.
    pub(super) fn take_arrivals(&self) -> Vec<Arrival> {
        self.state.arrivals().take().unwrap_or_default()
    }

    /// Processor time of its threads.
    pub(super) fn used() -> Option<Duration> {
        usage::of_own_threads(THREADS)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Requests that it never answers are open: nobody waits for them.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Requests that were answered with a 204 since some instant.
#[derive(Debug, Clone)]
pub(super) struct Delivered {
    state: Arc<State>,
    before: u64,
}

impl Delivered {
    pub(super) fn count(&self) -> u64 {
        self.state.delivered.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}

impl State {
    fn arrivals(&self) -> std::sync::MutexGuard<'_, Option<Vec<Arrival>>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, arrival: Option<Arrival>) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if let (Some(arrival), Some(kept)) = (arrival, self.arrivals().as_mut()) {
            kept.push(arrival);
        }
    }
}

async fn listen(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    // The answer is one small write: without this it would wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(answer(&state, request).await) }
    });
    // A connection that ends badly is the sender's to notice.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<Empty<Bytes>> {
    let at = Instant::now();
    let (head, mut body) = request.into_parts();
    while let Some(Ok(_)) = body.frame().await {}
    let conduct = Conduct::of_path(head.uri.path());
    let status = match conduct {
        Conduct::AtOnce => StatusCode::NO_CONTENT,
        Conduct::Apart => {
            state.apart.fetch_add(1, Ordering::Relaxed);
            StatusCode::NO_CONTENT
        }
        Conduct::After(millis) => {
            tokio::time::sleep(Duration::from_millis(millis.into())).await;
            StatusCode::NO_CONTENT
        }
        Conduct::Fails => StatusCode::INTERNAL_SERVER_ERROR,
        Conduct::Hangs => std::future::pending().await,
    };
    if status == StatusCode::NO_CONTENT {
        let id = head.headers.get(WEBHOOK_ID).and_then(|id| id.to_str().ok());
        let webhook_id = id.and_then(|id| Uuid::parse_str(id).ok());
        state.note(webhook_id.map(|webhook_id| Arrival { webhook_id, at }));
    }
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    response
}

/// Sends such requests with the library that the worker sends with, as fast as they are answered, and
/// tells how many a second. What a receiver and a client can do without a database between them.
pub(super) async fn alone(
    receiver: &Receiver,
    payload: Bytes,
    connections: usize,
    duration: Duration,
) -> anyhow::Result<f64> {
    let url = receiver.url(Conduct::AtOnce);
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(no_trust()?)
        .no_proxy()
        .pool_max_idle_per_host(connections)
        .build()
        .context("a bare client")?;
    let until = Instant::now() + duration;
    let mut sending = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (client, url, payload) = (client.clone(), url.clone(), payload.clone());
        sending.spawn(async move {
            let mut sent = 0_u64;
            while Instant::now() < until {
                let request = client
                    .post(&url)
                    .header("content-type", "application/json")
                    .header(WEBHOOK_ID, Uuid::nil().to_string())
                    .header("webhook-timestamp", "1764504000")
                    .header("webhook-signature", SIGNATURE)
                    .body(payload.clone());
                let response = request.send().await?;
                anyhow::ensure!(response.status() == StatusCode::NO_CONTENT, "not answered");
                sent += 1;
            }
            Ok(sent)
        });
    }
    let began = Instant::now();
    let mut sent = 0;
    while let Some(ended) = sending.join_next().await {
        sent += ended??;
    }
    Ok(super::arithmetic::per_second(sent, began.elapsed()))
}

/// The client wants a TLS configuration also where nothing is encrypted.
fn no_trust() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Ok(tls)
}

/// As long as that of one secret.
const SIGNATURE: &str = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_how_it_answers() {
        for conduct in
            [Conduct::AtOnce, Conduct::Apart, Conduct::After(10), Conduct::Fails, Conduct::Hangs]
        {
            assert_eq!(Conduct::of_path(&conduct.path()), conduct);
        }
    }
}
