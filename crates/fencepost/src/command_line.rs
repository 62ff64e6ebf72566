//! What can be asked of the binary.

use clap::{Parser, Subcommand};

use crate::{bench, demo, doctor, hold, keys, migrate, serve, verify};

/// Webhooks out, with every race settled by the database.
#[derive(Debug, Parser)]
#[command(name = "fencepost", version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Api and worker in one process.
    Serve(Box<serve::Args>),
    /// The whole path on sample payloads: submitted, signed, delivered, verified.
    Demo(demo::Args),
    /// Brings a database's schema to this build's version.
    Migrate(migrate::Args),
    /// What is wrong with a database, in plain words, and what to do.
    Doctor(doctor::Args),
    /// Lets nothing be claimed, shows what waits, and lets it go.
    Hold(hold::Args),
    /// Keys of the api.
    Keys(keys::Args),
    /// Races each guarantee on a scratch database beside the one named.
    Verify(verify::Args),
    /// A process that `verify` races against others of its kind.
    #[command(hide = true, name = proof::contestant::ARGUMENT)]
    Contestant,
    /// How fast, beside what this machine can do, on a scratch database beside the one named.
    Bench(Box<bench::Args>),
}

/// Where all state is kept when nothing else is said.
pub(crate) const DEFAULT_DATABASE_URL: &str = "sqlite:./fencepost.db";

/// The database that a command works on.
#[derive(Clone, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// Where all state is kept: postgres://… or sqlite:PATH.
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = DEFAULT_DATABASE_URL
    )]
    pub(crate) database_url: String,
}

impl std::fmt::Debug for DatabaseArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("DatabaseArgs").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, FromArgMatches};
    use process::{Sections, settings};

    use super::*;

    const EXAMPLE: &str = include_str!("../../../fencepost.example.toml");

    fn serve() -> clap::Command {
        CommandLine::command().find_subcommand("serve").unwrap().clone()
    }

    #[test]
    fn the_example_file_says_what_holds_without_it() {
        let used = |command: clap::Command| {
            let matches = command.try_get_matches_from(["serve"]).unwrap();
            format!("{:?}", serve::Args::from_arg_matches(&matches).unwrap())
        };
        let configured = settings::configured(serve(), EXAMPLE, Sections::Both).unwrap();
        assert_eq!(used(configured), used(serve()));
    }

    #[test]
    fn the_example_file_names_every_setting() {
        let (mut section, mut named) = (None, Vec::new());
        for line in EXAMPLE.lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = Some(name.trim_end_matches(']').to_owned());
            }
            let line = line.strip_prefix("# ").unwrap_or(line);
            if let Some((name, _)) = line.split_once(" = ") {
                named.push((section.clone(), name.to_owned()));
            }
        }
        for (section, name) in settings::keys(&serve()) {
            let key = (section.map(str::to_owned), name);
            assert!(named.contains(&key), "{key:?} is missing in fencepost.example.toml");
        }
    }

    #[test]
    fn every_variable_of_some_command_is_known_to_all_and_no_other_is() {
        fn read_by(command: &clap::Command, names: &mut BTreeSet<String>) {
            let of = |argument: &clap::Arg| Some(argument.get_env()?.to_str()?.to_owned());
            let ours = |name: &String| name.starts_with("FENCEPOST_");
            names.extend(command.get_arguments().filter_map(of).filter(ours));
            for command in command.get_subcommands() {
                read_by(command, names);
            }
        }
        let mut names = BTreeSet::new();
        read_by(&CommandLine::command(), &mut names);
        let known: BTreeSet<_> = settings::VARIABLES.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(names, known, "crates/settings/src/variables.rs");
    }

    #[test]
    fn the_operations_document_names_every_setting() {
        let document = include_str!("../../../docs/OPERATIONS.md");
        for setting in serve().get_arguments().filter_map(clap::Arg::get_long) {
            let row = format!("| `--{setting}` |");
            let is_setting = !["config", "print-config", "help", "version"].contains(&setting);
            assert!(!is_setting || document.contains(&row), "docs/OPERATIONS.md lacks {row}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
