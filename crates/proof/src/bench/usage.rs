//! Processor time and memory of processes, as Linux tells them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Linux tells processor time to programs in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// What a line of `/proc/PID/stat` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stat {
    name: String,
    parent: u32,
    own: Duration,
    /// Of its children that have ended and were waited for.
    of_ended_children: Duration,
}

fn parse(line: &str) -> Option<Stat> {
    // The name is in parentheses and may hold spaces and parentheses itself.
    let (before, after) = line.rsplit_once(") ")?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split(' ').collect();
    let number = |place: usize| fields.get(place)?.parse::<u32>().ok();
    let ticks = |place: usize| Some(TICK * number(place)?);
    Some(Stat {
        name,
        parent: number(1)?,
        own: ticks(11)? + ticks(12)?,
        of_ended_children: ticks(13)? + ticks(14)?,
    })
}

fn stat(path: &str) -> Option<Stat> {
    parse(&fs::read_to_string(path).ok()?)
}

/// Processor time that a process has taken, all its threads together. None where it cannot be seen.
pub(crate) fn of_process(id: u32) -> Option<Duration> {
    Some(stat(&format!("/proc/{id}/stat"))?.own)
}

/// Processor time of the threads of this process whose names begin so.
pub(super) fn of_own_threads(prefix: &str) -> Option<Duration> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let of_each = threads.filter_map(|thread| {
        let thread = thread.ok()?;
        let stat = stat(&thread.path().join("stat").to_string_lossy())?;
        stat.name.starts_with(prefix).then_some(stat.own)
    });
    Some(of_each.sum())
}

/// The most memory that a process has had resident, in bytes.
pub(crate) fn peak_memory(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// The process of one session of a server, if it runs on this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session(u32);

impl Session {
    /// The number that the server knows it by is that of its own container, and the database's name
    /// stands in its title.
    pub(super) fn find(number: i32, database: &str) -> Option<Self> {
        let number = number.to_string();
        let session = processes().into_iter().find(|id| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let title = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let title = String::from_utf8_lossy(&title);
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            numbers.and_then(|numbers| numbers.split_whitespace().last()) == Some(&number)
                && title.starts_with("postgres:")
                && title.contains(database)
        })?;
        Some(Self(session))
    }

    /// Processor time that it has taken, to the nanosecond.
    pub(super) fn used(self) -> Option<Duration> {
        let told = fs::read_to_string(format!("/proc/{}/schedstat", self.0)).ok()?;
        Some(Duration::from_nanos(told.split_whitespace().next()?.parse().ok()?))
    }
}

/// The process that all sessions of a server descend from, if it runs on this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postmaster(u32);

impl Postmaster {
    /// Finds it by one of its sessions.
    pub(super) fn of_session(number: i32, database: &str) -> Option<Self> {
        let Session(session) = Session::find(number, database)?;
        Some(Self(stat(&format!("/proc/{session}/stat"))?.parent))
    }

    /// Processor time of the server and all its sessions, those that ended included.
    pub(super) fn used(self) -> Option<Duration> {
        let own = stat(&format!("/proc/{}/stat", self.0))?;
        let children: BTreeMap<u32, Duration> = processes()
            .into_iter()
            .filter_map(|id| {
                let stat = stat(&format!("/proc/{id}/stat"))?;
                (stat.parent == self.0).then_some((id, stat.own))
            })
            .collect();
        Some(own.own + own.of_ended_children + children.values().sum::<Duration>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_move_the_fields() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 20 5 20 0 9 0 100 1 1";
        let stat = parse(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent), ("a (b) c", 7));
        assert_eq!(stat.own, Duration::from_secs(2));
        assert_eq!(stat.of_ended_children, Duration::from_millis(250));
        assert_eq!(parse("42 (a) S"), None);
    }

    #[test]
    fn this_process_uses_memory_and_knows_its_threads() {
        let id = std::process::id();
        assert!(of_process(id).is_some() && peak_memory(id).unwrap() > 0);
        assert_eq!(of_own_threads("no thread has this name"), Some(Duration::ZERO));
    }
}
