//! Where settings come from: flags, then variables, then a file.
//!
//! An argument of a command is all that there is to a setting. Its flag, its variable and its key in the
//! file are read by the same parser with the same limits, so a setting is added by adding an argument.
//! The file is TOML. A key is the flag's name with `_` for `-`: at the top for what both processes know, in
//! `[api]` for the api's, in `[worker]`, without its `worker_`, for the worker's. A process skips the
//! section of the other, so that one file does for both. A variable or a key that is no setting is refused.
#![deny(missing_docs)]

mod file;
mod print;
mod variables;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Parser};

pub use self::variables::VARIABLES;

/// Which file is read, and whether the outcome is shown.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigArgs {
    /// A TOML file with settings; flags and variables win over it.
    #[arg(long, env = FILE_VARIABLE, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the settings as they would be used, without secrets, and exit.
    #[arg(long)]
    pub print_config: bool,
}

const FILE_VARIABLE: &str = "FENCEPOST_CONFIG";
const FILE_FLAG: &str = "--config";

/// Which sections of a file a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sections {
    /// `[api]` alone.
    Api,
    /// `[worker]` alone.
    Worker,
    /// Both.
    Both,
}

/// The whole command line of a process that takes its settings from a file as well.
///
/// A wrong setting, `--help` and `--print-config` end the process.
#[must_use]
pub fn parse<P: Parser>(sections: Sections) -> P {
    refuse_unknown_variables::<P>();
    let line: Vec<OsString> = std::env::args_os().collect();
    let file = file_of(&line);
    let configured = file::configure(P::command(), file.as_deref(), sections);
    let command = configured.unwrap_or_else(|message| refuse(P::command(), message));
    let matches = command.get_matches_from(line);
    print_if_asked(&P::command(), &matches);
    P::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The same where only one subcommand takes a file.
#[must_use]
pub fn parse_subcommand<P: Parser>(name: &'static str, sections: Sections) -> P {
    refuse_unknown_variables::<P>();
    let line: Vec<OsString> = std::env::args_os().collect();
    let mut command = P::command();
    let is_named = line.get(1).is_some_and(|word| word == name);
    if let Some(named) = command.find_subcommand(name).filter(|_| is_named) {
        let file = file_of(&line);
        let configured = file::configure(named.clone(), file.as_deref(), sections);
        let configured = configured.unwrap_or_else(|message| refuse(P::command(), message));
        command = command.mut_subcommand(name, |_| configured);
    }
    let matches = command.get_matches_from(line);
    let plain = P::command();
    if let (Some(named), Some((taken, matches))) =
        (plain.find_subcommand(name), matches.subcommand())
        && taken == name
    {
        print_if_asked(named, matches);
    }
    P::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn refuse_unknown_variables<P: Parser>() {
    let names: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    if let Some(why) = variables::refused(names.iter().map(String::as_str)) {
        refuse(P::command(), why);
    }
}

fn refuse(mut command: Command, message: String) -> ! {
    command.error(ErrorKind::InvalidValue, message).exit()
}

/// The file has to be known before the line can be parsed, since it holds what the line leaves out.
fn file_of(line: &[OsString]) -> Option<PathBuf> {
    let mut words = line.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == FILE_FLAG {
            return words.next().map(PathBuf::from);
        }
        let value = word.to_str().and_then(|word| word.strip_prefix(FILE_FLAG)?.strip_prefix('='));
        if let Some(value) = value {
            return Some(PathBuf::from(value));
        }
    }
    std::env::var_os(FILE_VARIABLE).filter(|path| path != OsStr::new("")).map(PathBuf::from)
}

#[expect(clippy::print_stdout, reason = "what was asked for goes to standard output")]
fn print_if_asked(command: &Command, matches: &ArgMatches) {
    if matches.get_flag("print_config") {
        print!("{}", printed(command, matches));
        std::process::exit(0);
    }
}

/// The settings as `--print-config` shows them: in the form of a file, without secrets.
#[must_use]
pub fn printed(command: &Command, matches: &ArgMatches) -> String {
    print::settings(command, matches)
}

/// A command with what this text of a file says.
///
/// # Errors
/// The text is no TOML, or has a key that is no setting.
pub fn configured(command: Command, text: &str, sections: Sections) -> Result<Command, String> {
    file::configure_text(command, text, sections)
}

/// The keys of a file that a command takes, each with its section.
#[must_use]
pub fn keys(command: &Command) -> Vec<(Option<&'static str>, String)> {
    let of = |setting: &clap::Arg| {
        let (section, name) = print::place(command, setting.get_id().as_str());
        (section, name.to_owned())
    };
    print::settings_of(command).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn command() -> Command {
        let setting = |id: &'static str| Arg::new(id).long(id).action(ArgAction::Set);
        Command::new("test")
            .arg(Arg::new("print_config").long("print_config").action(ArgAction::SetTrue))
            .arg(setting("name"))
            .arg(setting("networks").action(ArgAction::Append).value_delimiter(','))
            .arg(setting("rows").default_value("100").value_parser(clap::value_parser!(u32)))
    }

    /// The values that a file gives, and what `--print-config` would show of them.
    fn used(text: &str) -> Result<(Vec<OsString>, String), String> {
        let configured = configured(command(), text, Sections::Both)?;
        let matches = configured.try_get_matches_from(["test"]).map_err(|it| it.to_string())?;
        let given = ["name", "networks", "rows"].map(|id| matches.get_raw(id).unwrap_or_default());
        let given = given.into_iter().flatten().map(OsStr::to_owned).collect();
        Ok((given, printed(&command(), &matches)))
    }

    #[test]
    fn what_is_printed_says_the_same_as_the_file() {
        for text in [
            "name = \"007\"",
            "name = \"+1\"",
            "name = \"-0\"",
            "name = \"true\"",
            "name = 1.0",
            "name = \"\"",
            "name = \"a\\nb\\u0000\"",
            "name = \"'''\"",
            "networks = [\"a\", \"b\"]",
            "networks = \"a,b\"",
            "networks = []",
            "rows = 7",
        ] {
            let once = used(text).unwrap();
            assert_eq!(used(&once.1).as_ref(), Ok(&once), "{text}");
        }
    }

    #[test]
    fn a_list_is_refused_where_one_value_is_meant() {
        for text in ["rows = []", "name = []", "name = [\"a\", \"b\"]", "rows = [1, 2]"] {
            assert!(used(text).is_err(), "{text}");
        }
    }
}
