//! `checkout show`: the stock, and the first thousand reservations by key.

use crate::answer::{Answer, Reservation, Stock};

pub(crate) async fn run(url: &str) -> anyhow::Result<Answer> {
    let pool = crate::connect(url).await?;
    let stock: Vec<(String, i64)> = sqlx::query_as(
        "-- checkout::show::stock
        SELECT sku, available FROM stock ORDER BY sku LIMIT 1000",
    )
    .fetch_all(&pool)
    .await?;
    let reservations: Vec<(String, String, i64)> = sqlx::query_as(
        "-- checkout::show::reservations
        SELECT op_key, sku, quantity FROM reservations ORDER BY op_key LIMIT 1000",
    )
    .fetch_all(&pool)
    .await?;
    Ok(Answer::Shown {
        stock: stock.into_iter().map(|(sku, available)| Stock { sku, available }).collect(),
        reservations: reservations
            .into_iter()
            .map(|(op_key, sku, quantity)| Reservation { op_key, sku, quantity })
            .collect(),
    })
}
