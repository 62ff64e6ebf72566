//! Changes what is named of a source, in one statement (G7).
//!
//! Each column keeps what its row holds at that moment unless it is named, so of two changes at once
//! both apply, one after the other. The endpoint's name is read beside the update and not joined into
//! it: a join would be checked again against an old row after a wait.

use domain::id::{ApplicationKey, PublicId};
use domain::label::Label;
use domain::source::Scheme;

use super::row::SourceRow;
use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::source::{Source, SourceChange, location_json};

pub(in crate::postgres) async fn update(
    pool: &Pool,
    application: ApplicationKey,
    id: &PublicId,
    change: &SourceChange,
) -> Result<Option<Source>, StoreError> {
    let headers: Option<Vec<String>> = change
        .headers
        .as_ref()
        .map(|names| names.iter().map(|name| name.as_str().to_owned()).collect());
    let row = after_conflict(|| async {
        sqlx::query_as!(
            SourceRow,
            r#"-- postgres::source::update
            WITH s AS (
                UPDATE fencepost.sources SET
                    name = CASE WHEN $3 THEN $4 ELSE name END,
                    endpoint = coalesce($5, endpoint),
                    scheme = coalesce($6::text::jsonb, scheme),
                    event_id = CASE WHEN $7 THEN $8::text::jsonb ELSE event_id END,
                    headers = coalesce($9::text[], headers),
                    version = version + 1,
                    updated_at = statement_timestamp()
                WHERE application = $1 AND id = $2 AND deleted_at IS NULL
                RETURNING key, application, id, name, endpoint, scheme, event_id, headers, version,
                    created_at, updated_at
            )
            SELECT s.key, s.application, s.id, s.name,
                (SELECT e.id FROM fencepost.endpoints e WHERE e.key = s.endpoint)
                    AS "endpoint_id!",
                s.scheme::text AS "scheme!", s.event_id::text AS event_id, s.headers,
                coalesce(r.refused, 0) AS "refused!", coalesce(r.newest::text, '[]') AS "refusals!",
                s.version, s.created_at, s.updated_at
            FROM s LEFT JOIN fencepost.source_refusals r ON r.source = s.key"#,
            application.as_uuid(),
            id.as_str(),
            change.name.is_some(),
            change.name.as_ref().and_then(|name| name.as_ref().map(Label::as_str)),
            change.endpoint.map(domain::id::EndpointKey::as_uuid),
            change.scheme.as_ref().map(Scheme::to_json),
            change.event_id.is_some(),
            change.event_id.as_ref().and_then(|location| location.as_ref().map(location_json)),
            headers.as_deref(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("source::update", error))?;
    row.map(SourceRow::source).transpose()
}
