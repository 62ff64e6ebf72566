//! Creates a source together with its sealed secret and its count of refusals, in one statement.
//!
//! The unique id is the authority: of any number who create it at once, one does.

use domain::label::Label;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealer;
use crate::source::{NewSource, Source, SourceCreation, location_json, seal_secret};

pub(in crate::postgres) async fn create(
    pool: &Pool,
    sealer: &Sealer,
    new: &NewSource,
) -> Result<SourceCreation, StoreError> {
    let (secret_id, sealed) = seal_secret(sealer, new.key, &new.secret)?;
    let headers: Vec<String> = new.headers.iter().map(|name| name.as_str().to_owned()).collect();
    let (endpoint, endpoint_id) = &new.endpoint;
    let row = sqlx::query!(
        r#"-- postgres::source::create
        WITH e AS (
            SELECT key FROM fencepost.endpoints
            WHERE key = $5 AND application = $2 AND deleted_at IS NULL
        ), s AS (
            INSERT INTO fencepost.sources
                (key, application, id, name, endpoint, scheme, event_id, headers)
            SELECT $1, $2, $3, $4, e.key, $6::text::jsonb, $7::text::jsonb, $8::text[]
            FROM e
            ON CONFLICT (application, id) DO NOTHING
            RETURNING key, version, created_at
        ), x AS (
            INSERT INTO fencepost.source_secrets (id, source, sealed, sealing_key)
            SELECT $9, key, $10, $11 FROM s
        ), r AS (
            INSERT INTO fencepost.source_refusals (source) SELECT key FROM s
        )
        SELECT EXISTS (SELECT FROM e) AS "known!", s.version AS "version?",
            s.created_at AS "created_at?"
        FROM (SELECT 1) one LEFT JOIN s ON true"#,
        new.key.as_uuid(),
        new.application.as_uuid(),
        new.id.as_str(),
        new.name.as_ref().map(Label::as_str),
        endpoint.as_uuid(),
        new.scheme.to_json(),
        new.event_id.as_ref().map(location_json),
        &headers,
        secret_id,
        sealed.bytes,
        sealed.key_id,
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("source::create", error))?;
    let (Some(version), Some(created_at)) = (row.version, row.created_at) else {
        let creation =
            if row.known { SourceCreation::IdTaken } else { SourceCreation::EndpointMissing };
        return Ok(creation);
    };
    Ok(SourceCreation::Created(Source {
        key: new.key,
        application: new.application,
        id: new.id.clone(),
        name: new.name.as_ref().map(|name| name.as_str().to_owned()),
        endpoint_id: endpoint_id.as_str().to_owned(),
        scheme: new.scheme.clone(),
        event_id: new.event_id.clone(),
        headers: new.headers.clone(),
        refused: 0,
        refusals: Vec::new(),
        version,
        created_at,
        updated_at: created_at,
    }))
}
