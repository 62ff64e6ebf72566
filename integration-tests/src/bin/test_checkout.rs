//! The checkout example as the tests start it.

use std::process::ExitCode;

fn main() -> ExitCode {
    checkout::main_entry()
}
