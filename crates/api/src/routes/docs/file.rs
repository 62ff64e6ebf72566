//! `GET /docs/{file}`: what the page loads.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Path};
use utoipa_swagger_ui::Config;

use super::POLICY;
use crate::openapi::Doc;
use crate::openapi::schema::anything;
use crate::problem::{Code, Problem};

/// Relative to the page. No address of others, which would be told what the document is.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::from("openapi.json").validator_url("none")));

pub(super) fn doc() -> Doc {
    Doc::of("docs_file", "A file that the page of this document loads").answers_other(
        200,
        "*/*",
        "The file",
        anything().into(),
    )
}

pub(super) async fn file(name: Path<String>) -> Result<HttpResponse, Problem> {
    // Maps of the sources are for those who mend the page; its own start page is not ours.
    let is_served = !name.ends_with(".map") && !name.ends_with(".html");
    let found = utoipa_swagger_ui::serve(&name, Arc::clone(&CONFIG)).map_err(Problem::internal)?;
    let file = found.filter(|_| is_served).ok_or_else(|| Problem::new(Code::NotFound))?;
    let bytes = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    Ok(HttpResponse::Ok().content_type(file.content_type).insert_header(POLICY).body(bytes))
}
