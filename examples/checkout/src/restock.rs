//! `checkout restock`: puts a quantity into the stock.

use crate::answer::Answer;
use crate::command_line::DEFAULT_SKU;
use crate::input;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How much.
    #[arg(allow_negative_numbers = true)]
    quantity: String,
    /// Of what. A sku that is new is made.
    #[arg(long, default_value = DEFAULT_SKU)]
    sku: String,
}

pub(crate) async fn run(url: &str, args: &Args) -> anyhow::Result<Answer> {
    let (quantity, sku) = match (input::quantity(&args.quantity), input::sku(&args.sku)) {
        (Ok(quantity), Ok(sku)) => (quantity, sku),
        (Err(invalid), _) | (_, Err(invalid)) => return Ok(invalid),
    };
    let pool = crate::connect(url).await?;
    let available: Option<i64> = sqlx::query_scalar(
        "-- checkout::restock
        INSERT INTO stock (sku, available) VALUES ($1, $2)
        ON CONFLICT (sku) DO UPDATE SET available = stock.available + excluded.available
            WHERE stock.available + excluded.available <= $3
        RETURNING available",
    )
    .bind(sku)
    .bind(quantity)
    .bind(input::QUANTITY_MAX)
    .fetch_optional(&pool)
    .await?;
    Ok(match available {
        Some(available) => Answer::Restocked { sku: sku.to_owned(), available },
        None => Answer::Invalid {
            field: "quantity",
            message: format!("a stock holds at most {}", input::QUANTITY_MAX),
        },
    })
}
