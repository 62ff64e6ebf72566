//! `GET /metrics`, on the private address: what this process has counted, for Prometheus.

use actix_web::HttpResponse;
use process::metrics::{CONTENT_TYPE, render};

use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("metrics", "What this process has counted").refuses([Code::NotFound])
}

pub(super) async fn metrics() -> Result<HttpResponse, Problem> {
    match render() {
        Some(text) => Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(text)),
        None => Err(Problem::new(Code::NotFound).detail("another recorder is in use")),
    }
}
