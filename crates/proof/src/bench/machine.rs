//! What the figures were measured on.

use std::fs;

use serde::Serialize;

use super::database::Database;

/// The machine and the database, as far as they can be seen.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// How many processors this process may use.
    pub processors: usize,
    /// What they are.
    pub processor: Option<String>,
    /// How many wanted one in the minute before: with nothing else running, nearly none.
    pub load_before: Option<f64>,
    /// What the figures of PostgreSQL depend on.
    pub postgres: Vec<(String, String)>,
    /// Whether the processor time of PostgreSQL can be seen: it runs on this machine.
    pub sees_postgres: bool,
}

impl Machine {
    pub(super) async fn look(database: Option<&Database>) -> anyhow::Result<Self> {
        let postgres = match database {
            Some(database) => database.settings().await?,
            None => Vec::new(),
        };
        Ok(Self {
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            processor: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            load_before: load(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
            postgres,
            sees_postgres: database.is_some_and(|database| database.used().is_some()),
        })
    }
}

fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(": ")?.1.to_owned())
}

fn load(loadavg: &str) -> Option<f64> {
    loadavg.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_what_it_runs_on() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some Processor 9\nmodel name\t: Other\n";
        assert_eq!(processor(cpuinfo).as_deref(), Some("Some Processor 9"));
        assert_eq!(load("0.52 1.0 2.0 1/200 4711\n"), Some(0.52));
        assert_eq!((processor(""), load("")), (None, None));
    }
}
