//! One server a file: held by a lock beside it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The right to serve one database file. It ends when this is dropped, or with its process, however
/// that ends.
///
/// The lock file stays where it is: whoever deleted it could delete the one that the next server
/// has just locked.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct ServerLock {
    _locked: File,
}

impl ServerLock {
    pub(super) fn take(database: &Path) -> Result<Self, StoreError> {
        let path = beside(database, "lock");
        let file = open(&path).map_err(unavailable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _locked: file }),
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::InUse { path: database.display().to_string() })
            }
            Err(TryLockError::Error(error)) => Err(unavailable(error)),
        }
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable { operation: "server_lock", source: Box::new(error) }
}

/// Opens a file to be locked, and makes it if it is missing.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

/// The path of a file that stands beside the database: `PATH.suffix`.
///
/// Links are followed, as SQLite does for the files that it keeps there: one database has one lock,
/// whatever it is called.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let mut path = database.into_os_string();
    path.push(".");
    path.push(suffix);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_server_is_refused_until_the_first_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("fencepost.db");
        let first = ServerLock::take(&database).unwrap();
        let second = ServerLock::take(&database);
        assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
        drop(first);
        assert!(ServerLock::take(&database).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_database_has_the_same_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (database, link) = (folder.path().join("a.db"), folder.path().join("b.db"));
        File::create(&database).unwrap();
        std::os::unix::fs::symlink(&database, &link).unwrap();
        let _first = ServerLock::take(&database).unwrap();
        assert!(matches!(ServerLock::take(&link), Err(StoreError::InUse { .. })));
    }
}
