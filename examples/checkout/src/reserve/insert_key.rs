//! Takes the operation's key, or finds it taken.

use sqlx::PgConnection;

use super::Operation;

/// Beside an open transaction that has inserted the key it waits for that one's end.
pub(super) async fn insert_key(
    connection: &mut PgConnection,
    operation: &Operation<'_>,
) -> Result<bool, sqlx::Error> {
    let inserted = sqlx::query(
        "-- checkout::reserve::insert_key
        INSERT INTO reservations (op_key, sku, quantity, fingerprint) VALUES ($1, $2, $3, $4)
        ON CONFLICT (op_key) DO NOTHING
        RETURNING op_key",
    )
    .bind(operation.op_key)
    .bind(operation.sku)
    .bind(operation.quantity)
    .bind(operation.fingerprint().as_slice())
    .fetch_optional(connection)
    .await?;
    Ok(inserted.is_some())
}
