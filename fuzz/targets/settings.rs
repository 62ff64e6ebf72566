//! Any text as the file of settings: refused or used, what is printed says the same again, and a secret is not told.
#![no_main]

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command, value_parser};
use libfuzzer_sys::fuzz_target;
use settings::{Sections, configured, printed};

/// Each value that is taken stays for the life of the process.
const BYTES_MAX: usize = 1024;

const SECRET: &str = "hunter22";
const SECRET_LINE: &str = "key = \"hunter22\"\n";
const SHOWN: &[&str] = &["name", "hold", "allow_networks", "rows", "worker_poll"];

fuzz_target!(|text: &str| {
    if text.len() > BYTES_MAX {
        return;
    }
    // It stands nowhere but in the setting that is a secret.
    let has_secret = text.strip_prefix(SECRET_LINE).is_some_and(|rest| !rest.contains(SECRET));
    for sections in [Sections::Api, Sections::Worker, Sections::Both] {
        match used(text, sections) {
            Ok((given, shown)) => {
                assert!(!has_secret || !shown.contains(SECRET), "{text}");
                let again = used(&shown, sections).map(|(given, _)| given);
                assert_eq!(again.as_ref(), Ok(&given), "{shown}");
            }
            Err(why) => assert!(!has_secret || !why.contains(SECRET), "{text}: {why}"),
        }
    }
});

/// The values of what may be shown, and what is shown.
fn used(text: &str, sections: Sections) -> Result<(Vec<OsString>, String), String> {
    let configured = configured(command(sections), text, sections)?;
    let matches = configured.try_get_matches_from(["test"]).map_err(|error| error.to_string())?;
    let values = |id: &&str| matches.try_get_raw(id).ok().flatten();
    let given = SHOWN.iter().filter_map(values).flatten().map(OsStr::to_owned).collect();
    Ok((given, printed(&command(sections), &matches)))
}

/// A setting of every kind that a process has that takes those sections.
fn command(sections: Sections) -> Command {
    let setting = |id: &'static str| Arg::new(id).long(id).action(ArgAction::Set);
    let networks = setting("allow_networks").action(ArgAction::Append).value_delimiter(',');
    let rows = setting("rows").default_value("100").value_parser(value_parser!(u32).range(1..));
    let hold = setting("hold").default_value("false").value_parser(value_parser!(bool));
    let of_both = Command::new("test")
        .arg(setting("config"))
        .arg(Arg::new("print_config").long("print_config").action(ArgAction::SetTrue))
        .arg(setting("name"))
        .arg(setting("key").hide_env_values(true))
        .arg(hold.num_args(0..=1))
        .arg(networks.help_heading("Api"));
    let of_api = [rows.help_heading("Api")];
    let of_worker = [setting("worker_poll").default_value("1s")];
    match sections {
        Sections::Api => of_both.args(of_api),
        Sections::Worker => of_both.args(of_worker),
        Sections::Both => of_both.args(of_api).args(of_worker),
    }
}
