//! Takes the quantity from the stock if there is as much.

use sqlx::PgConnection;

use super::Operation;

pub(super) enum Taken {
    /// So much is left.
    Left(i64),
    /// There is less than that.
    TooLittle,
    /// There is no such sku.
    Unknown,
}

pub(super) async fn take_stock(
    connection: &mut PgConnection,
    operation: &Operation<'_>,
) -> Result<Taken, sqlx::Error> {
    let left: Option<i64> = sqlx::query_scalar(
        "-- checkout::reserve::take_stock
        UPDATE stock SET available = available - $2
        WHERE sku = $1 AND available >= $2
        RETURNING available",
    )
    .bind(operation.sku)
    .bind(operation.quantity)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(left) = left {
        return Ok(Taken::Left(left));
    }
    let known: bool = sqlx::query_scalar(
        "-- checkout::reserve::take_stock::known
        SELECT EXISTS (SELECT FROM stock WHERE sku = $1)",
    )
    .bind(operation.sku)
    .fetch_one(connection)
    .await?;
    Ok(if known { Taken::TooLittle } else { Taken::Unknown })
}
