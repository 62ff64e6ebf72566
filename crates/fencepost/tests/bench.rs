//! `fencepost bench` as a person starts it, on SQLite and for a moment: what it answers, never how fast.
//! PostgreSQL's is among the integration tests.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

#[test]
fn on_sqlite_a_steady_run_tells_its_figures_and_leaves_nothing() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["bench", "steady", "--json", "--rounds", "1", "--duration", "200ms"])
        .args(["--connections", "4", "--payload-bytes", "64"])
        .current_dir(folder.path())
        .env_remove("DATABASE_URL")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["plan"]["payload_bytes"], 64);
    let scenarios = report["scenarios"].as_array().context("scenarios")?;
    let [steady] = scenarios.as_slice() else { anyhow::bail!("one scenario: {report}") };
    assert_eq!(steady["scenario"], "steady");
    let figures = steady["figures"].as_array().context("figures")?;
    for name in ["api alone", "bare client to receiver", "accepted", "delivered"] {
        let figure = figures.iter().find(|figure| figure["name"] == name);
        let figure = figure.with_context(|| format!("{name} in {steady}"))?;
        ensure!(figure["rounds"].as_array().is_some_and(|rounds| rounds.len() == 1), "{figure}");
        ensure!(figure["median"].is_f64() && figure["lowest"].is_f64(), "{figure}");
    }
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "the scratch file is deleted");
    Ok(())
}

#[test]
fn a_scenario_that_needs_postgresql_says_so_on_sqlite() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(["bench", "deliver", "--rounds", "1", "--duration", "100ms"])
        .current_dir(folder.path())
        .env_remove("DATABASE_URL")
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    ensure!(text.contains("is measured on PostgreSQL only"), "{text}");
    Ok(())
}

#[test]
fn apis_that_already_run_are_measured_in_few_scenarios_and_the_flag_that_is_wrong_is_named()
-> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let running = ["--api-url", "http://127.0.0.1:1", "--api-key", "fp_key"];
    for (arguments, told) in [
        (["deliver"].as_slice(), "--api-url is for ingest, steady and latency"),
        (&["all"], "--api-url is for ingest, steady and latency"),
        (&["steady", "--scratch-url", "postgres://h/d"], "--scratch-url"),
        (&["steady", "--database-url", "sqlite:a.db"], "--database-url beside --api-url"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .arg("bench")
            .args(arguments)
            .args(running)
            .current_dir(folder.path())
            .env_remove("DATABASE_URL")
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && errors.contains(told), "{arguments:?}: {errors}");
        ensure!(!errors.contains("fp_key"), "{errors}");
    }
    for (arguments, told) in [
        (["--api-url", "http://127.0.0.1:1"], "--api-key"),
        (["--receiver-url", "http://127.0.0.1:1"], "--api-url"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .args(["bench", "steady"])
            .args(arguments)
            .current_dir(folder.path())
            .env_remove("FENCEPOST_API_KEY")
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && errors.contains(told), "{arguments:?}: {errors}");
    }
    Ok(())
}
