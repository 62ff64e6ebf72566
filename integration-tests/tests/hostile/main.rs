//! How much memory api and worker take under each kind of hostile peer, beside the bound that
//! docs/SECURITY.md states. It is a measurement of minutes, so it runs where somebody asks: `just hostile-peers`.

mod callers;
mod measured;
mod receivers;

#[tokio::test(flavor = "multi_thread")]
async fn the_api_stays_within_its_bound_under_hostile_callers() -> anyhow::Result<()> {
    if !measured::is_asked_for() {
        return Ok(());
    }
    measured::begin("api");
    measured::judge(&callers::measure().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_stays_within_its_bound_under_hostile_receivers() -> anyhow::Result<()> {
    if !measured::is_asked_for() {
        return Ok(());
    }
    measured::begin("worker");
    measured::judge(&receivers::measure().await?)
}
