//! The settings as they are used, in the form of a file.

use std::fmt::Write as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::file::{NO_SETTINGS, WORKER_PREFIX};

/// The heading of the api's arguments in the help, and with it their section in a file.
const API_HEADING: &str = "Api";

/// Arguments that stand among the api's and are the worker's too.
const OF_BOTH: [&str; 1] = ["allow_networks"];

/// All arguments that are settings: of both processes first, then the api's, then the worker's.
pub(super) fn settings_of(command: &Command) -> Vec<&Arg> {
    let mut settings: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !NO_SETTINGS.contains(&argument.get_id().as_str()))
        .collect();
    settings.sort_by_key(|setting| place(command, setting.get_id().as_str()).0);
    settings
}

/// The section of an argument, and its key there.
pub(super) fn place<'a>(command: &Command, id: &'a str) -> (Option<&'static str>, &'a str) {
    if let Some(name) = id.strip_prefix(WORKER_PREFIX) {
        return (Some("worker"), name);
    }
    let mut of_api =
        command.get_arguments().filter(|it| it.get_help_heading() == Some(API_HEADING));
    let is_api = !OF_BOTH.contains(&id) && of_api.any(|argument| argument.get_id() == id);
    (is_api.then_some("api"), id)
}

/// What hides its variable is a secret.
fn is_secret(setting: &Arg) -> bool {
    setting.is_hide_env_values_set()
}

pub(super) fn settings(command: &Command, matches: &ArgMatches) -> String {
    let mut text = String::new();
    let mut section = None;
    for setting in settings_of(command) {
        let id = setting.get_id().as_str();
        let (its_section, name) = place(command, id);
        if section != its_section {
            section = its_section;
            text.extend(["\n[", its_section.unwrap_or_default(), "]\n"]);
        }
        let given = matches.get_raw(id).map(|values| {
            values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>()
        });
        // Writing to a text does not fail.
        let _ = match given {
            None => writeln!(text, "# {name} = (not set)"),
            Some(_) if is_secret(setting) => {
                writeln!(text, "# {name} = (set and not shown){}", source(matches, id))
            }
            Some(values) => writeln!(text, "{name} = {}{}", literal(&values), source(matches, id)),
        };
    }
    text
}

fn source(matches: &ArgMatches, id: &str) -> &'static str {
    match matches.value_source(id) {
        Some(ValueSource::CommandLine) => "  # flag",
        Some(ValueSource::EnvVariable) => "  # variable",
        _ => "",
    }
}

fn literal(values: &[String]) -> String {
    let one = |value: &String| match value.parse::<i64>() {
        // A text such as `007` would be another one as a number.
        Ok(number) if number.to_string() == *value => value.clone(),
        _ if value == "true" || value == "false" => value.clone(),
        _ => toml::Value::String(value.clone()).to_string(),
    };
    match values {
        [value] => one(value),
        values => format!("[{}]", values.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
