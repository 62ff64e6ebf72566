//! The worker as the tests start it.

use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    integration_tests::process::end_with_the_test()?;
    Ok(worker::main_entry())
}
