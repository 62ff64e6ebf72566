use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::Context as _;

use crate::postgres::VERSION_MIN;

/// Where Debian and its children keep the binaries of each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder of one version's binaries.
#[derive(Debug)]
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The first that are complete and new enough: those of `pg_config`, of Debian's folder (newest first),
    /// of `PATH`.
    pub(super) fn find() -> anyhow::Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut seen = Vec::new();
        for folder in
            from_pg_config().into_iter().chain(from_debian()).chain(env::split_paths(&path))
        {
            let binaries = Self { folder };
            match binaries.major_version() {
                Some(version) if version >= VERSION_MIN => return Ok(binaries),
                Some(version) => seen.push(format!("{version} in {}", binaries.folder.display())),
                None => {}
            }
        }
        let seen = if seen.is_empty() { "none".to_owned() } else { seen.join(", ") };
        anyhow::bail!(
            "no initdb, pg_ctl and postgres of version {VERSION_MIN} or later (found: {seen})"
        )
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    pub(super) fn pg_ctl(&self) -> PathBuf {
        self.folder.join("pg_ctl")
    }

    /// `None` where they are not complete or do not run.
    fn major_version(&self) -> Option<u32> {
        if !self.initdb().exists() || !self.pg_ctl().exists() {
            return None;
        }
        parse_version(&output_of(&self.folder.join("postgres"), "--version").ok()?)
    }
}

fn from_pg_config() -> Option<PathBuf> {
    let folder = output_of(Path::new("pg_config"), "--bindir").ok()?;
    Some(PathBuf::from(folder.trim()))
}

fn from_debian() -> impl Iterator<Item = PathBuf> {
    let mut versions: Vec<u32> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_by_key(|version| Reverse(*version));
    versions.into_iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin"))
}

fn output_of(command: &Path, argument: &str) -> anyhow::Result<String> {
    let output = Command::new(command).arg(argument).output()?;
    anyhow::ensure!(output.status.success(), "{} {argument}", command.display());
    String::from_utf8(output.stdout).context("not UTF-8")
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, or `… 18beta2`.
fn parse_version(text: &str) -> Option<u32> {
    let number = text.split_once("(PostgreSQL) ")?.1;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_version(debian), Some(15));
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta2"), Some(18));
        assert_eq!(parse_version("postgres: not found"), None);
    }
}
