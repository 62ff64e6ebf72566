//! The binary `fencepost-worker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    worker::main_entry()
}
