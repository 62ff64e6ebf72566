//! What a taken key stands for: in a statement of its own, whose snapshot sees the winner.

use sqlx::PgConnection;

use super::Operation;

pub(super) enum Known {
    /// This operation.
    Same,
    /// Another one.
    Other,
    /// Nothing any more.
    Gone,
}

pub(super) async fn read_key(
    connection: &mut PgConnection,
    operation: &Operation<'_>,
) -> Result<Known, sqlx::Error> {
    let fingerprint: Option<Vec<u8>> = sqlx::query_scalar(
        "-- checkout::reserve::read_key
        SELECT fingerprint FROM reservations WHERE op_key = $1",
    )
    .bind(operation.op_key)
    .fetch_optional(connection)
    .await?;
    Ok(match fingerprint {
        Some(fingerprint) if fingerprint == operation.fingerprint() => Known::Same,
        Some(_) => Known::Other,
        None => Known::Gone,
    })
}
