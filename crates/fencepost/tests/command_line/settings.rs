//! Where settings come from, and what `--print-config` shows of them.

use std::path::Path;
use std::process::{Command, Output};

use super::fencepost;

fn print_config(
    folder: &Path,
    file: &str,
    change: impl FnOnce(&mut Command),
) -> anyhow::Result<Output> {
    std::fs::write(folder.join("fencepost.toml"), file)?;
    let mut command = fencepost(folder);
    command.env_remove("FENCEPOST_LISTEN").env_remove("FENCEPOST_PRIVATE_LISTEN");
    command.args(["serve", "--config", "fencepost.toml", "--print-config"]);
    change(&mut command);
    Ok(command.output()?)
}

#[test]
fn a_flag_wins_over_its_variable_and_both_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[api]\nlisten = \"127.0.0.1:1\"\nprivate_listen = \"127.0.0.1:1\"\n\
                body_limit = 1\n[worker]\npoll_interval = \"1s\"\n";
    let printed = print_config(folder.path(), file, |command| {
        command.env("FENCEPOST_LISTEN", "127.0.0.1:2").arg("--listen=127.0.0.1:3");
        command.env("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:2");
    })
    .unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.status.success(), "{text}");
    for line in [
        "listen = \"127.0.0.1:3\"  # flag",
        "private_listen = \"127.0.0.1:2\"  # variable",
        "body_limit = 1",
        "poll_interval = \"1s\"",
        "sweep_interval = \"15s\"",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    assert!(!folder.path().join("fencepost.db").exists(), "nothing was served");
}

#[test]
fn a_file_with_an_unknown_key_or_a_value_outside_its_limits_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (file, word) in [
        ("databse_url = \"x\"", "`databse_url`"),
        ("[worker]\npoll = \"1s\"", "`worker.poll`"),
        ("worker_poll_interval = \"1s\"", "`worker_poll_interval`"),
        ("[api]\nprint_config = true", "`api.print_config`"),
        ("listen = \"127.0.0.1:1\"\n[api]\nlisten = \"127.0.0.1:1\"", "twice"),
        ("[worker]\npoll_interval = \"1d\"", "between 1ms and 1h"),
        ("[api]\nbody_limit = \"65MiB\"", "between"),
        ("[queue]\nsize = 1", "`queue`"),
        ("sealing_key = \"hunter2\nx = 1", "line 1"),
    ] {
        let refused = print_config(folder.path(), file, |_| {}).unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains(word), "{file}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let mut gone = fencepost(folder.path());
    gone.args(["serve", "--print-config"]).env("FENCEPOST_CONFIG", "gone.toml");
    let text = String::from_utf8(gone.output().unwrap().stderr).unwrap();
    assert!(text.contains("gone.toml"), "{text}");
}

#[test]
fn no_secret_is_printed_wherever_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = "sealing_key = \"hunter2\"\ndatabase_url = \"postgres://u:hunter2@h/d\"\n";
    let from_file = print_config(folder.path(), file, |_| {}).unwrap();
    let from_variables = print_config(folder.path(), "", |command| {
        command.env("FENCEPOST_SEALING_KEY", "hunter2").env("DATABASE_URL", "sqlite:hunter2");
    })
    .unwrap();
    let help = print_config(folder.path(), file, |command| {
        command.arg("--help");
    })
    .unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("hunter2"));
    for printed in [from_file, from_variables] {
        assert!(printed.status.success());
        let text = String::from_utf8(printed.stdout).unwrap();
        assert!(text.contains("# sealing_key = (set and not shown)"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
