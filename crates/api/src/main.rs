//! The api as a process of its own. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    api::main_entry()
}
