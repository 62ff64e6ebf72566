//! One process that commits for all who wait: while a transaction runs the next group comes together.

use anyhow::{Context as _, anyhow};
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use tokio::sync::{mpsc, oneshot};

use super::buyers::Buyer;
use super::shop::{Shop, Spent};

/// How many share a transaction at most.
const GROUP_MAX: usize = 64;

/// What a buyer waits for.
pub(super) struct Wish {
    told: oneshot::Sender<Result<(), String>>,
}

/// So many who share transactions.
pub(super) async fn buyers(shop: &Shop, count: usize) -> anyhow::Result<Vec<Buyer>> {
    let (buyer, wishes) = mpsc::channel(count);
    tokio::spawn(commit(shop.clone(), shop.session().await?, wishes));
    Ok((0..count).map(|_| Buyer::InGroup(buyer.clone())).collect())
}

pub(super) async fn buy(wishes: &mpsc::Sender<Wish>) -> anyhow::Result<Spent> {
    let (told, answer) = oneshot::channel();
    wishes.send(Wish { told }).await.ok().context("nobody sells")?;
    answer.await.context("nobody sells")?.map_err(|why| anyhow!(why))?;
    Ok(Spent::default())
}

/// Goes on until all buyers are gone.
async fn commit(
    shop: Shop,
    mut session: PoolConnection<Postgres>,
    mut wishes: mpsc::Receiver<Wish>,
) {
    let mut group = Vec::new();
    while wishes.recv_many(&mut group, GROUP_MAX).await > 0 {
        let done = shop.buy_together(&mut session, group.len()).await;
        let answer = done.map_err(|error| format!("{error:#}"));
        for wish in group.drain(..) {
            // Who is gone needs no answer.
            let _ = wish.told.send(answer.clone());
        }
    }
}
