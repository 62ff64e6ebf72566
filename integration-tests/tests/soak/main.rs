//! The kill test: api, workers and PostgreSQL itself are killed at random under load, and afterwards the
//! whole history is checked.
//!
//! It runs for a minute, or for `FENCEPOST_SOAK_SECONDS`. The seed of what is killed when is printed, and
//! can be given by `FENCEPOST_SOAK_SEED`; where the load is at that moment cannot.

mod chaos;
mod checker;
mod history;
mod load;
mod stall;

use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use crate::chaos::Chaos;

const MINUTE: u64 = 60;

fn from_environment(name: &str, otherwise: u64) -> anyhow::Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is a whole number")),
        Err(_) => Ok(otherwise),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_is_killed_every_accepted_submission_is_delivered_or_has_its_reason()
-> anyhow::Result<()> {
    let seed = from_environment("FENCEPOST_SOAK_SEED", 20_261_130)?;
    let seconds = from_environment("FENCEPOST_SOAK_SECONDS", MINUTE)?;
    eprintln!("seed {seed}, {seconds} s");
    let mut chaos = Chaos::start(seed).await?;
    let stop = CancellationToken::new();
    let load = load::run(chaos.addresses(), chaos.key().to_owned(), stop.clone());
    let killing = async {
        let killed = chaos.kill_for(Duration::from_secs(seconds)).await;
        stop.cancel();
        killed
    };
    let (killed, accepted) = tokio::join!(killing, load);
    killed?;
    let accepted = accepted?;
    chaos.wait_until_nothing_is_owed().await?;
    let history = history::read(&chaos, accepted).await?;
    let report = history.report();
    eprintln!("{report}");
    let violations = checker::violations(&history);
    anyhow::ensure!(violations.is_empty(), "seed {seed}: {violations:#?}\n{report}");
    chaos.stop().await
}
