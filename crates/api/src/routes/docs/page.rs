//! `GET /docs`: the page itself.

use actix_web::HttpResponse;

use super::POLICY;
use crate::openapi::Doc;
use crate::openapi::schema::text;

/// What it loads is named relative to it, so that it works below any path of a proxy.
const PAGE: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Fencepost API</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/swagger-ui-standalone-preset.js"></script>
<script src="docs/swagger-initializer.js"></script>
</body>
</html>
"#;

pub(super) fn doc() -> Doc {
    Doc::of("docs", "Shows this document to people").answers_other(
        200,
        "text/html; charset=utf-8",
        "A page",
        text().into(),
    )
}

pub(super) async fn page() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").insert_header(POLICY).body(PAGE)
}
