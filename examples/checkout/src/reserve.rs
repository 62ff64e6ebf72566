//! `checkout reserve`: takes a quantity from the stock, once for each operation key.
//!
//! One transaction, in this order:
//!
//! 1. The key is inserted first. Of two processes with one key the second waits here, and nowhere else:
//!    if the first commits, the key is taken; if it rolls back, the second goes on and decides for itself.
//! 2. One conditional update takes the quantity. It locks the row, looks and takes at once: there is no
//!    moment between looking and taking.
//! 3. The webhook is submitted.
//!
//! If the update finds too little, all is rolled back, the key too: an insufficient result is not
//! remembered, and the same operation may succeed after a restock.

mod insert_key;
mod read_key;
mod take_stock;

use anyhow::Context;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use store::outbox::{Draft, Limits};

use self::read_key::Known;
use self::take_stock::Taken;
use crate::answer::{Answer, CRASHED};
use crate::command_line::DEFAULT_SKU;
use crate::{ENDPOINT_ID, input};

/// How often a key may vanish between two statements: only who deletes reservations by hand does that.
const ROUNDS: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of the operation: 1 to 255 visible ASCII characters. Ask again with the same.
    op_key: String,
    /// How much.
    #[arg(allow_negative_numbers = true)]
    quantity: String,
    /// Of what.
    #[arg(long, default_value = DEFAULT_SKU)]
    sku: String,
    /// End this process when the transaction has committed, before anybody is told.
    #[arg(long)]
    crash_after_commit: bool,
    /// End this process with the transaction open.
    #[arg(long)]
    crash_before_commit: bool,
}

/// An operation whose input is acceptable.
struct Operation<'a> {
    op_key: &'a str,
    sku: &'a str,
    quantity: i64,
}

impl Operation<'_> {
    /// What the key stands for.
    fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"checkout.reserve.1");
        hash.update(self.quantity.to_be_bytes());
        hash.update(self.sku.as_bytes());
        hash.finalize().into()
    }
}

pub(crate) async fn run(url: &str, args: &Args) -> anyhow::Result<Answer> {
    let operation = match parse(args) {
        Ok(operation) => operation,
        Err(invalid) => return Ok(invalid),
    };
    let pool = crate::connect(url).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    let answer = reserve_in_tx(&mut tx, &operation).await?;
    if !matches!(answer, Answer::Accepted { .. }) {
        tx.rollback().await?;
        return Ok(answer);
    }
    if args.crash_before_commit {
        std::process::exit(CRASHED);
    }
    tx.commit().await.context("it is not known whether it was committed")?;
    if args.crash_after_commit {
        std::process::exit(CRASHED);
    }
    Ok(answer)
}

fn parse(args: &Args) -> Result<Operation<'_>, Answer> {
    Ok(Operation {
        op_key: input::op_key(&args.op_key)?,
        sku: input::sku(&args.sku)?,
        quantity: input::quantity(&args.quantity)?,
    })
}

async fn reserve_in_tx(
    connection: &mut PgConnection,
    operation: &Operation<'_>,
) -> anyhow::Result<Answer> {
    let (op_key, sku) = (operation.op_key.to_owned(), operation.sku.to_owned());
    let quantity = operation.quantity;
    let mut inserted = false;
    for _ in 0..ROUNDS {
        inserted = insert_key::insert_key(connection, operation).await?;
        if inserted {
            break;
        }
        match read_key::read_key(connection, operation).await? {
            Known::Same => return Ok(Answer::Replayed { op_key, sku, quantity }),
            Known::Other => return Ok(Answer::Conflict { op_key }),
            Known::Gone => {}
        }
    }
    anyhow::ensure!(inserted, "the operation key comes and goes");
    match take_stock::take_stock(connection, operation).await? {
        Taken::Left(available) => {
            let submission_id = submit(connection, operation).await?;
            Ok(Answer::Accepted { op_key, sku, quantity, available, submission_id })
        }
        Taken::TooLittle => Ok(Answer::Insufficient { op_key, sku, quantity }),
        Taken::Unknown => Ok(input::unknown_sku(&sku)),
    }
}

#[derive(Serialize)]
struct Reserved<'a> {
    op_key: &'a str,
    sku: &'a str,
    quantity: i64,
}

/// It needs no idempotency key: the reservation has one, and both are one transaction.
async fn submit(
    connection: &mut PgConnection,
    operation: &Operation<'_>,
) -> anyhow::Result<String> {
    let Operation { op_key, sku, quantity } = *operation;
    let payload = serde_json::to_vec(&Reserved { op_key, sku, quantity })?;
    let draft = Draft {
        event_type: Some("stock.reserved"),
        content_type: Some("application/json"),
        ..Draft::new(ENDPOINT_ID, payload)
    };
    let submitted = store::postgres::accept_in_tx(connection, &draft, &Limits::default()).await?;
    Ok(submitted.accepted.submission.to_string())
}
