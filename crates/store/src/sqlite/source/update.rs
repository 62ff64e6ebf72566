//! Changes what is named of a source (G7), and reads it, in one transaction.

use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::label::Label;
use domain::source::Scheme;

use super::find::find_row;
use crate::StoreError;
use crate::source::{Source, SourceChange, location_json};
use crate::sqlite::codec::{UnixMicros, json_of_texts};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn update(
    writer: &Writer,
    application: ApplicationKey,
    id: &PublicId,
    change: &SourceChange,
) -> Result<Option<Source>, StoreError> {
    let (id, change) = (id.clone(), change.clone());
    writer
        .run("source::update", move |tx| {
            Box::pin(async move {
                write_source(tx, application, &id, &change).await?;
                let row = find_row(tx.connection(), application, &id).await?;
                Ok(row.map(super::row::SourceRow::source).transpose()?)
            })
        })
        .await
}

async fn write_source(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    id: &PublicId,
    change: &SourceChange,
) -> Result<(), Fault> {
    let headers: Option<Vec<String>> = change
        .headers
        .as_ref()
        .map(|names| names.iter().map(|name| name.as_str().to_owned()).collect());
    sqlx::query(
        "-- sqlite::source::update::write_source
        UPDATE sources SET
            name = CASE WHEN ?3 THEN ?4 ELSE name END,
            endpoint = ifnull(?5, endpoint),
            scheme = ifnull(?6, scheme),
            event_id = CASE WHEN ?7 THEN ?8 ELSE event_id END,
            headers = ifnull(?9, headers),
            version = version + 1, updated_at = ?10
        WHERE application = ?1 AND id = ?2 AND deleted_at IS NULL",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .bind(change.name.is_some())
    .bind(change.name.as_ref().and_then(|name| name.as_ref().map(Label::as_str)))
    .bind(change.endpoint.map(EndpointKey::as_uuid))
    .bind(change.scheme.as_ref().map(Scheme::to_json))
    .bind(change.event_id.is_some())
    .bind(change.event_id.as_ref().and_then(|location| location.as_ref().map(location_json)))
    .bind(headers.as_deref().map(json_of_texts))
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
