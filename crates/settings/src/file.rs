//! A file's values become the defaults of a command's arguments.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{ArgAction, Command};
use toml::{Table, Value};

use super::Sections;

/// What names the worker's arguments, and is left out in its section.
pub(super) const WORKER_PREFIX: &str = "worker_";

/// Arguments that are no settings.
pub(super) const NO_SETTINGS: [&str; 4] = ["config", "print_config", "help", "version"];

pub(super) fn configure(
    command: Command,
    file: Option<&Path>,
    sections: Sections,
) -> Result<Command, String> {
    let Some(path) = file else { return Ok(command) };
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    configure_text(command, &text, sections).map_err(|error| named(&error))
}

pub(super) fn configure_text(
    mut command: Command,
    text: &str,
    sections: Sections,
) -> Result<Command, String> {
    // The parser's message would quote the line, which may hold a secret.
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {} is not TOML: {}", before.matches('\n').count() + 1, error.message())
    })?;
    let mut given = BTreeSet::new();
    for (name, value) in table {
        match (name.as_str(), value) {
            ("api", Value::Table(section)) => {
                if sections != Sections::Worker {
                    for (key, value) in section {
                        let place = format!("api.{key}");
                        command = set(command, &key, &place, &value, &mut given)?;
                    }
                }
            }
            ("worker", Value::Table(section)) => {
                if sections != Sections::Api {
                    for (key, value) in section {
                        let (name, place) =
                            (format!("{WORKER_PREFIX}{key}"), format!("worker.{key}"));
                        command = set(command, &name, &place, &value, &mut given)?;
                    }
                }
            }
            (key, _) if key.starts_with(WORKER_PREFIX) => return Err(unknown(key)),
            (key, value) => command = set(command, key, key, &value, &mut given)?,
        }
    }
    Ok(command)
}

fn unknown(place: &str) -> String {
    format!("`{place}` is no setting; --help and --print-config name them")
}

fn set(
    command: Command,
    name: &str,
    place: &str,
    value: &Value,
    given: &mut BTreeSet<String>,
) -> Result<Command, String> {
    let setting = command.get_arguments().find(|it| {
        it.get_id() == name
            && !NO_SETTINGS.contains(&name)
            && (place.starts_with("worker.") || !name.starts_with(WORKER_PREFIX))
    });
    let takes_many = match setting {
        Some(setting) => matches!(setting.get_action(), ArgAction::Append),
        None => return Err(unknown(place)),
    };
    if !given.insert(name.to_owned()) {
        return Err(format!("`{place}` is given twice"));
    }
    let values = values(place, value)?;
    // The parser of arguments would take the first, and none for a setting that is left out.
    if values.len() != 1 && !takes_many {
        return Err(format!("`{place}` is one value, not a list"));
    }
    Ok(command.mut_arg(name, |argument| {
        // Once a process, and needed until it ends.
        let values = values.into_iter().map(|value| -> &'static str { value.leak() });
        let is_secret = argument.is_hide_env_values_set();
        let argument = argument.required(false).default_values(values.collect::<Vec<_>>());
        if is_secret { argument.hide_default_value(true) } else { argument }
    }))
}

/// As they would stand behind the flag.
fn values(place: &str, value: &Value) -> Result<Vec<String>, String> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        _ => Err(format!("`{place}` is a text, a number, true, false or a list of these")),
    };
    match value {
        Value::Array(values) => values.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}
