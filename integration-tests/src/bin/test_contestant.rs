//! A contestant of `fencepost verify` as the tests start it.

fn main() -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(proof::contestant::run())
}
