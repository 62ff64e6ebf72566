//! The checkout as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    checkout::main_entry()
}
