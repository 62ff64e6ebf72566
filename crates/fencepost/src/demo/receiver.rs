//! A receiver on loopback that verifies every request with the reference implementation.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use domain::signing::{SigningSecret, WEBHOOK_ID};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use standardwebhooks::Webhook;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::DEADLINE;
use super::faults::{Conduct, Faults};

/// The most bytes of a body that it reads: more than the api accepts.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request that was taken: verified, and answered with 204.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) body: Bytes,
    pub(super) at: Instant,
}

#[derive(Debug)]
pub(super) struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

struct State {
    webhook: Webhook,
    faults: Faults,
    requests: AtomicUsize,
    /// The first request that was taken, by `webhook-id`.
    received: Mutex<HashMap<String, Received>>,
    last_fault: Mutex<String>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl Receiver {
    pub(super) async fn start(secret: &SigningSecret, fail_rate: f64) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            webhook: Webhook::new(&secret.reveal())?,
            faults: Faults::new(fail_rate),
            requests: AtomicUsize::new(0),
            received: Mutex::new(HashMap::new()),
            last_fault: Mutex::new("the receiver refused nothing".to_owned()),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&state)));
        Ok(Self { address, state, listening })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// How many requests have come, spoilt ones included.
    pub(super) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// How many different messages were taken.
    pub(super) fn received(&self) -> usize {
        self.state.received().len()
    }

    /// What was taken under this `webhook-id`.
    pub(super) fn of(&self, webhook_id: &str) -> Option<Received> {
        self.state.received().get(webhook_id).cloned()
    }

    /// Why it refused what it refused last.
    pub(super) fn last_fault(&self) -> String {
        self.state.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { answer(&state, request).await }
    });
    // A connection that ends badly is the sender's to notice: it is what this receiver is for.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An error ends the connection before anything is answered.
async fn answer(
    state: &State,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, io::Error> {
    state.requests.fetch_add(1, Ordering::Relaxed);
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(status(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let body = body.to_bytes();
    let webhook_id = head.headers.get(WEBHOOK_ID).and_then(|id| id.to_str().ok());
    let Some(webhook_id) = webhook_id else {
        state.refuse("a request had no webhook-id");
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    match state.faults.conduct(webhook_id) {
        Conduct::Accept => {}
        Conduct::Error => return Ok(status(StatusCode::INTERNAL_SERVER_ERROR)),
        Conduct::Cut => return Err(io::ErrorKind::ConnectionAborted.into()),
        Conduct::Stall => {
            tokio::time::sleep(DEADLINE * 2).await;
            return Ok(status(StatusCode::INTERNAL_SERVER_ERROR));
        }
    }
    if let Err(error) = state.webhook.verify(&body, &head.headers) {
        state.refuse(&format!("the signature of {webhook_id} did not verify: {error}"));
        return Ok(status(StatusCode::UNAUTHORIZED));
    }
    let received = Received { body, at: Instant::now() };
    state.received().entry(webhook_id.to_owned()).or_insert(received);
    Ok(status(StatusCode::NO_CONTENT))
}

fn status(status: StatusCode) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    response
}

impl State {
    fn received(&self) -> std::sync::MutexGuard<'_, HashMap<String, Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse(&self, why: &str) {
        why.clone_into(&mut self.last_fault.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
