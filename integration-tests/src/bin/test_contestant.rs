//! A contestant of `fencepost verify` as the tests start it, and api and worker where it is started as one of
//! those.

use std::path::Path;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    let called_as = std::env::args_os().next().unwrap_or_default();
    match Path::new(&called_as).file_name().and_then(|name| name.to_str()) {
        Some(proof::bench::API) => return Ok(api::main_entry()),
        Some(proof::bench::WORKER) => return Ok(worker::main_entry()),
        Some(proof::bench::TRIVIAL) => return Ok(api::trivial_entry()),
        _ => {}
    }
    tokio::runtime::Runtime::new()?.block_on(proof::contestant::run())?;
    Ok(ExitCode::SUCCESS)
}
