//! A contestant of `fencepost verify` as the tests start it, and the api where it is started as that.

use std::path::Path;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let called_as = std::env::args_os().next().unwrap_or_default();
    if Path::new(&called_as).file_name().is_some_and(|name| name == proof::bench::API) {
        return Ok(api::main_entry());
    }
    tokio::runtime::Runtime::new()?.block_on(proof::contestant::run())?;
    Ok(ExitCode::SUCCESS)
}
