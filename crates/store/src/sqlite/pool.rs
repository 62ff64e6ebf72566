//! Connections: one that writes, a few that read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::{StoreError, StoreOptions};

/// Readers wait for nobody, so a few are enough for the cores of one machine.
const READERS: u32 = 4;

/// To what length the write-ahead log is cut back after a burst has made it longer: 64 MiB.
const LOG_BYTES_KEPT: &str = "67108864";

/// The file that a database address names: `sqlite:PATH` or `sqlite://PATH`.
///
/// The path is taken as it stands: nothing in it is decoded, and there are no parameters.
pub fn path_of_url(url: &str) -> Result<PathBuf, StoreError> {
    let refuse = |message: &str| Err(StoreError::Address { message: message.to_owned() });
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return refuse("the address of an SQLite database is sqlite:PATH");
    };
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return refuse("the address of an SQLite database names a file: sqlite:PATH");
    }
    if path == ":memory:" {
        return refuse("a database in memory loses what it accepted: name a file, sqlite:PATH");
    }
    if path.starts_with("file:") || path.contains(['?', '\0']) {
        return refuse("the address of an SQLite database is a plain path without parameters");
    }
    Ok(PathBuf::from(path))
}

/// How every connection is set up. What is written is on the disk when its commit returns.
pub(super) fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(false)
        .pragma("journal_size_limit", LOG_BYTES_KEPT)
}

/// The pool of the one writer. It does not wait for a lock by itself: waiting, with its bound, is
/// in one place, the writer.
pub(super) fn writer(path: &Path, options: &StoreOptions) -> SqlitePool {
    pool(1, options).connect_lazy_with(connect_options(path).busy_timeout(Duration::ZERO))
}

/// The pool of the readers, none of which can write.
pub(super) fn readers(path: &Path, options: &StoreOptions) -> SqlitePool {
    pool(READERS, options).connect_lazy_with(connect_options(path).pragma("query_only", "ON"))
}

fn pool(connections: u32, options: &StoreOptions) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(options.acquire_timeout)
        // A file does not hang up: connections live on, with their prepared statements.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_relative_and_absolute_files() {
        for (url, path) in [
            ("sqlite:fencepost.db", "fencepost.db"),
            ("sqlite:./fencepost.db", "./fencepost.db"),
            ("sqlite://fencepost.db", "fencepost.db"),
            ("sqlite:/var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:///var/lib/x.db", "/var/lib/x.db"),
            ("sqlite:a%20b.db", "a%20b.db"),
        ] {
            assert_eq!(path_of_url(url).unwrap(), Path::new(path), "{url}");
        }
    }

    #[test]
    fn what_names_no_plain_file_is_refused() {
        for url in [
            "",
            "fencepost.db",
            "postgres://localhost/x",
            "sqlite:",
            "sqlite://",
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite:x.db?mode=ro",
            "sqlite:file:x.db",
            "sqlite:x\0.db",
        ] {
            let refused = path_of_url(url);
            assert!(matches!(refused, Err(StoreError::Address { .. })), "{url}: {refused:?}");
        }
    }
}
