//! What is shipped beside the binary names settings that exist, and gives its processes no more than they
//! need.

use anyhow::Context as _;
use serde_norway::Value;

use super::finding::{Finding, assert_none};
use super::repository;

const UNITS: [&str; 3] = ["fencepost", "fencepost-api", "fencepost-worker@"];

fn text(path: &str) -> anyhow::Result<String> {
    repository::text(path)?.with_context(|| format!("{path} is missing"))
}

fn unit(name: &str) -> anyhow::Result<String> {
    text(&format!("packaging/systemd/{name}.service"))
}

/// Words that look like our variables and are none of them.
fn unknown_variables(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        for word in words.filter(|word| word.starts_with("FENCEPOST_")) {
            if !process::settings::VARIABLES.contains(&word) {
                findings.push(Finding::new(path, number, format!("{word} is no setting")));
            }
        }
    }
    findings
}

#[test]
fn every_variable_that_is_shipped_is_a_setting() -> anyhow::Result<()> {
    let mut paths = repository::files("packaging")?;
    paths.extend(["compose.yaml", "Dockerfile"].map(str::to_owned));
    assert!(paths.len() > 5, "{paths:?}");
    let mut findings = Vec::new();
    for path in paths {
        findings.extend(unknown_variables(&path, &text(&path)?));
    }
    assert_none(&findings, "a variable that is no setting ends the process that it is given to");
    assert_eq!(unknown_variables("a", "Environment=FENCEPOST_LISTENS=x").len(), 1);
    Ok(())
}

#[test]
fn the_services_of_compose_write_nothing_and_have_no_rights() -> anyhow::Result<()> {
    let compose = text("compose.yaml")?;
    let mut compose: Value = serde_norway::from_str(&compose)?;
    compose.apply_merge()?;
    let services = compose["services"].as_mapping().context("services")?;
    let names: Vec<&str> = services.keys().filter_map(Value::as_str).collect();
    assert_eq!(names, ["postgres", "migrate", "api", "worker"]);
    for name in ["migrate", "api", "worker"] {
        let service = &compose["services"][name];
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], Value::from(vec!["ALL"]), "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        assert!(service["environment"]["DATABASE_URL"].is_string(), "{name}");
    }
    assert_eq!(compose["services"]["worker"]["deploy"]["replicas"], 2);
    Ok(())
}

#[test]
fn units_confine_their_processes_alike() -> anyhow::Result<()> {
    let confinement = |name: &str| -> anyhow::Result<String> {
        let unit = unit(name)?;
        let (_, rest) = unit.split_once("\nDynamicUser=yes\n").context("a user of its own")?;
        Ok(rest.split("\n\n").next().unwrap_or_default().to_owned())
    };
    let first = confinement(UNITS[0])?;
    for line in ["ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet="] {
        assert!(first.lines().any(|it| it == line), "{line}");
    }
    for name in UNITS {
        assert_eq!(confinement(name)?, first, "{name}");
        assert!(unit(name)?.contains("\nExecStart=/usr/local/bin/fencepost"), "{name}");
    }
    Ok(())
}

#[test]
fn the_image_is_built_with_our_toolchain_and_runs_as_a_user_of_its_own() -> anyhow::Result<()> {
    let (toolchain, image) = (text("rust-toolchain.toml")?, text("Dockerfile")?);
    let channel = toolchain.split('"').nth(1).context("a channel")?;
    let minor = channel.rsplit_once('.').context("a version")?.0;
    assert!(image.contains(&format!("ARG BUILD_IMAGE=rust:{minor}-")), "{minor}");
    let user = image.lines().filter_map(|line| line.strip_prefix("USER ")).next_back();
    assert!(user.is_some_and(|user| user.starts_with(|c: char| c.is_ascii_digit() && c != '0')));
    Ok(())
}
