//! The server of the api with one call that does nothing: what is left of an api when everything that
//! it is for is taken away. The bench measures the api beside it.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::Context;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Settings;

#[derive(Serialize)]
struct Answer {
    accepted: bool,
}

/// Answers every POST of JSON with a 202, on a free port of loopback, until the process is killed. Prints
/// `listening http://ADDRESS`.
#[must_use]
pub fn trivial_entry() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.context("no runtime").and_then(|runtime| runtime.block_on(serve())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> anyhow::Result<()> {
    let settings = Settings::default();
    let workers = settings.workers.get();
    let server = HttpServer::new(|| App::new().default_service(web::post().to(answer)))
        .workers(workers)
        .max_connections(settings.connections_max.div_ceil(workers))
        .keep_alive(settings.keep_alive)
        .client_request_timeout(settings.client_request_timeout)
        .client_disconnect_timeout(settings.linger)
        .tcp_nodelay(true)
        .bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = server.addrs().first().copied().context("nothing is bound")?;
    let mut out = std::io::stdout();
    writeln!(out, "listening http://{address}")?;
    out.flush()?;
    Ok(server.run().await?)
}

async fn answer(body: Bytes) -> HttpResponse {
    match serde_json::from_slice::<&RawValue>(&body) {
        Ok(_) => HttpResponse::Accepted().json(Answer { accepted: true }),
        Err(_) => HttpResponse::new(StatusCode::BAD_REQUEST),
    }
}
