//! `GET /docs`: a page that shows the description of the API and makes calls with a key that is typed
//! in there.
//!
//! All of it is inside the binary, and the page may load nothing from anywhere else. The key stays in
//! the page: it is kept nowhere.

mod file;
mod page;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName};

use super::{Access, Call};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/docs", Access::Anyone, page::doc(), page::page),
        Call::get("/docs/{file}", Access::Anyone, file::doc(), file::file),
    ]
}

/// The page draws with styles and pictures of its own, and has no script but the files beside it.
const POLICY: (HeaderName, &str) = (
    CONTENT_SECURITY_POLICY,
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
