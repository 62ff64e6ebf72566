//! Gives back claims that were not sent.

use domain::id::DeliveryId;

use super::{move_in_flight, read_row, write_row};
use crate::StoreError;
use crate::delivery::HeldClaim;
use crate::sqlite::errors::Fault;
use crate::sqlite::life::change_circuit;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn give_back(
    writer: &Writer,
    claims: &[HeldClaim],
) -> Result<Vec<DeliveryId>, StoreError> {
    let claims = claims.to_vec();
    writer
        .run("delivery::give_back", move |tx| {
            Box::pin(async move {
                let mut given_back = Vec::with_capacity(claims.len());
                for claim in &claims {
                    if give_back_one(tx, claim).await? {
                        given_back.push(claim.delivery);
                    }
                }
                Ok(given_back)
            })
        })
        .await
}

/// Answers whether the claim was still held.
async fn give_back_one(tx: &mut WriteTransaction, claim: &HeldClaim) -> Result<bool, Fault> {
    let Some(row) = read_row(tx, claim.endpoint, claim.delivery).await? else { return Ok(false) };
    let mut delivery = row.delivery()?;
    let held_slot = delivery.state.holds_slot();
    if delivery.give_back(claim.token, row.due_at.0).is_err() {
        return Ok(false);
    }
    write_row(tx, &row, &delivery).await?;
    if held_slot {
        move_in_flight(tx, claim.endpoint, -1).await?;
    }
    let (token, now) = (claim.token, tx.now());
    change_circuit(tx, claim.endpoint, |circuit| circuit.give_back(token, now)).await?;
    Ok(true)
}
