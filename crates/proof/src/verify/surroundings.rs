//! What kind of database it is, and what about it may surprise whoever relies on it.

mod warnings;

use std::time::Duration;

use anyhow::Context as _;
use store::Backend;

use crate::Scratch;
use crate::connections::{Connection, Connections};
use crate::ground::Crowd;

/// Places that are left to whoever arranges and looks.
const SPARE: i64 = 6;
/// The connections of one contestant: for claim and record, and for the rest.
const PER_CONTESTANT: i64 = 2;

/// Where the checks run.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) engine: &'static str,
    pub(super) version: String,
    pub(super) isolation: String,
    pub(super) warnings: Vec<String>,
    pub(super) crowd: Crowd,
}

impl Surroundings {
    pub(super) async fn look(scratch: &Scratch, concurrency: usize) -> anyhow::Result<Self> {
        let connections = Connections::open(scratch.url(), 2, Duration::ZERO)?;
        let mut connection = connections.get().await?;
        let seen = match scratch.backend() {
            Backend::Sqlite => of_sqlite(&mut connection, concurrency).await,
            Backend::Postgres => of_postgres(&mut connection, concurrency).await,
        };
        drop(connection);
        let seen = match (seen, &connections) {
            (Ok(mut seen), Connections::Postgres(pool)) => {
                seen.warnings.extend(warnings::look(pool).await?);
                Ok(seen)
            }
            (seen, _) => seen,
        };
        connections.close().await;
        seen
    }
}

impl Crowd {
    /// As many of those asked for as there are connections for.
    fn fitting(asked: usize, free: i64) -> Self {
        let of = |connections: i64| usize::try_from(connections).unwrap_or(0).min(asked);
        Self { asked, stores: of(free / PER_CONTESTANT), connections: of(free) }
    }
}

async fn of_sqlite(
    connection: &mut Connection,
    concurrency: usize,
) -> anyhow::Result<Surroundings> {
    let version = connection
        .read_one(
            "-- proof::verify::surroundings::of_sqlite
            SELECT sqlite_version() AS version",
            &[],
        )
        .await?;
    Ok(Surroundings {
        engine: Backend::Sqlite.as_str(),
        version: version.text("version")?,
        isolation: "serializable: one writer at a time".to_owned(),
        warnings: Vec::new(),
        crowd: Crowd { asked: concurrency, stores: concurrency, connections: concurrency },
    })
}

async fn of_postgres(
    connection: &mut Connection,
    concurrency: usize,
) -> anyhow::Result<Surroundings> {
    let server = connection
        .read_one(
            "-- proof::verify::surroundings::of_postgres
            SELECT current_setting('server_version') AS version,
                current_setting('transaction_isolation') AS isolation,
                current_setting('max_connections')::bigint
                    - current_setting('superuser_reserved_connections')::bigint
                    - coalesce(current_setting('reserved_connections', true), '0')::bigint
                    - (SELECT count(*) FROM pg_catalog.pg_stat_activity
                        WHERE backend_type = 'client backend') AS free",
            &[],
        )
        .await?;
    let mut warnings = Vec::new();
    let free = server.integer("free")? - SPARE;
    let crowd = Crowd::fitting(concurrency, free);
    anyhow::ensure!(crowd.stores >= 2, "the server has no connections left for a race");
    if crowd.stores < concurrency {
        warnings.push(format!(
            "too few connections for what was asked: of {concurrency} contestants {} race at once, \
             and copies of an event share {}; raise max_connections",
            crowd.stores, crowd.connections
        ));
    }
    Ok(Surroundings {
        engine: Backend::Postgres.as_str(),
        version: server.text("version")?,
        isolation: server.text("isolation").context("its isolation")?,
        warnings,
        crowd,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_race_than_there_are_connections_for() {
        let crowd = |asked, stores, connections| Crowd { asked, stores, connections };
        assert_eq!(Crowd::fitting(20, 40), crowd(20, 20, 20));
        assert_eq!(Crowd::fitting(20, 39), crowd(20, 19, 20));
        assert_eq!(Crowd::fitting(100, 90), crowd(100, 45, 90));
        assert_eq!(Crowd::fitting(20, -1), crowd(20, 0, 0));
    }
}
