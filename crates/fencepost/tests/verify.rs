//! `fencepost verify` as a person starts it, on SQLite. PostgreSQL's is among the integration tests.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

#[test]
fn on_sqlite_every_check_holds_every_control_is_violated_and_nothing_is_left() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["verify", "--json", "--rounds", "2", "--concurrency", "4"])
        .current_dir(folder.path())
        .env_remove("DATABASE_URL")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!((&report["engine"], &report["holds"]), (&"sqlite".into(), &true.into()));
    let checks = report["checks"].as_array().context("checks")?;
    ensure!(!checks.is_empty());
    for check in checks {
        assert_eq!(check["verdict"], "holds", "{check}");
        assert_eq!(check["rounds"], 2, "{check}");
        assert_eq!(check["control"]["violated"], true, "{check}");
    }
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "the scratch file is deleted");
    Ok(())
}
