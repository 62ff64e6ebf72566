//! `GET /livez`, `/readyz` and `/metrics` of a worker, on an address of its own that no caller reaches.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use process::metrics;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::health::Health;

/// Whoever comes beyond that waits in the backlog of the system.
const CONNECTIONS_MAX: usize = 16;
/// How long a request's head may take to arrive, and an idle connection stays open.
const HEAD_DEADLINE: Duration = Duration::from_secs(10);
/// How long a connection may live: whoever probes comes again.
const CONNECTION_DEADLINE: Duration = Duration::from_mins(5);
/// After an accept that failed, for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Binds the address and serves until the stop. Answers where it listens.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve_private(
    address: SocketAddr,
    health: Health,
    stop: CancellationToken,
) -> anyhow::Result<SocketAddr> {
    metrics::install();
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("the worker cannot listen on {address} (--worker-private-listen)")
    })?;
    let bound = listener.local_addr().context("nothing is bound")?;
    tokio::spawn(async move {
        stop.run_until_cancelled(accept(listener, health)).await;
    });
    Ok(bound)
}

async fn accept(listener: TcpListener, health: Health) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let health = health.clone();
                tokio::spawn(async move {
                    // A probe that goes away is nobody's matter.
                    let _ = tokio::time::timeout(CONNECTION_DEADLINE, serve(stream, health)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the private address cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, health: Health) -> Result<(), hyper::Error> {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &health);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

fn answer(method: &Method, path: &str, health: &Health) -> Response<Full<Bytes>> {
    const JSON: &str = "application/json";
    let status = |status, word: &str| (status, JSON, format!("{{\"status\":\"{word}\"}}"));
    let (status, media_type, body) = match (method, path) {
        (&Method::GET, "/livez") => status(StatusCode::OK, "live"),
        (&Method::GET, "/readyz") => match health.readiness() {
            Ok(()) => status(StatusCode::OK, "ready"),
            Err(why) => status(StatusCode::SERVICE_UNAVAILABLE, why.as_str()),
        },
        (&Method::GET, "/metrics") => match metrics::render() {
            Some(text) => (StatusCode::OK, metrics::CONTENT_TYPE, text),
            None => status(StatusCode::NOT_FOUND, "another recorder is in use"),
        },
        (_, "/livez" | "/readyz" | "/metrics") => status(StatusCode::METHOD_NOT_ALLOWED, "GET"),
        _ => status(StatusCode::NOT_FOUND, "not found"),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
