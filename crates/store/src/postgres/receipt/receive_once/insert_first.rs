//! Writes the receipt, unless one is there.
//!
//! The time-out is set inside the statement and set back before it ends: the transaction is the caller's,
//! and session settings do not survive a pooler.

use std::time::Duration;

use domain::label::Label;
use sqlx::PgConnection;

use crate::receipt::NewReceipt;

/// Whether it was written.
pub(super) async fn insert_first(
    connection: &mut PgConnection,
    receipt: &NewReceipt,
    patience: Duration,
) -> Result<bool, sqlx::Error> {
    // Zero would mean no limit.
    let patience = format!("{}ms", patience.as_millis().clamp(1, 60_000));
    let row = sqlx::query!(
        r#"-- postgres::receipt::receive_once::insert_first
        WITH t AS MATERIALIZED (
            SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', $1, true)
        ), i AS (
            INSERT INTO fencepost.receipts (source, event_id, fingerprint, resource_id, action,
                sent_at, received_at, processed_at)
            SELECT $2, $3, $4, $5, $6, $7, transaction_timestamp(), statement_timestamp()
            FROM t
            ON CONFLICT DO NOTHING
            RETURNING source
        ), n AS MATERIALIZED (
            SELECT count(*) AS written FROM i
        )
        SELECT n.written > 0 AS "first!", set_config('lock_timeout', t.before, true) AS after
        FROM n CROSS JOIN t"#,
        patience,
        receipt.key.source(),
        receipt.key.event_id(),
        receipt.fingerprint.as_bytes().as_slice(),
        receipt.resource_id.as_ref().map(Label::as_str),
        receipt.action.as_ref().map(Label::as_str),
        receipt.sent_at,
    )
    .fetch_one(connection)
    .await?;
    Ok(row.first)
}
