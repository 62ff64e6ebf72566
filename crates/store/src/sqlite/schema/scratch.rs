//! A database beside the one named, for a demonstration or a proof.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::StoreError;
use crate::sqlite::pool::path_of_url;
use crate::sqlite::server_lock::beside;

/// What SQLite and Fencepost keep beside a database.
const COMPANIONS: [&str; 2] = ["lock", "migrate-lock"];
const COMPANIONS_OF_SQLITE: [&str; 2] = ["-wal", "-shm"];

/// A scratch database that exists until it is dropped with [`drop_scratch`].
#[derive(Debug, Clone)]
pub struct ScratchDatabase {
    /// Its address.
    pub url: String,
    path: PathBuf,
}

impl ScratchDatabase {
    /// Makes an empty database in the folder of the one at `url`.
    pub async fn create(url: &str) -> Result<Self, StoreError> {
        path_of_url(url)?;
        let url = format!("{url}.scratch-{}", crate::new_id::uuid_now().simple());
        let path = path_of_url(&url)?;
        tokio::fs::File::create_new(&path).await.map_err(unavailable)?;
        Ok(Self { url, path })
    }

    /// The database's file.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Deletes a scratch database. Connections to it must be closed.
pub async fn drop_scratch(scratch: &ScratchDatabase) -> Result<(), StoreError> {
    let of_sqlite = COMPANIONS_OF_SQLITE.map(|suffix| {
        let mut path = scratch.path.clone().into_os_string();
        path.push(suffix);
        PathBuf::from(path)
    });
    let ours = COMPANIONS.map(|suffix| beside(&scratch.path, suffix));
    // The database itself goes last: while it is there, the same call finds everything again.
    for path in of_sqlite.into_iter().chain(ours).chain([scratch.path.clone()]) {
        match tokio::fs::remove_file(&path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unavailable(error)),
            _ => {}
        }
    }
    Ok(())
}

fn unavailable(error: std::io::Error) -> StoreError {
    StoreError::Unavailable { operation: "schema::scratch", source: Box::new(error) }
}
