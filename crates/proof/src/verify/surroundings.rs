//! What kind of database it is, and what about it may surprise whoever relies on it.

use anyhow::Context as _;
use store::Backend;

use crate::Scratch;
use crate::connections::{Connection, Connections};

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
    /// How many contestants there are connections for: as many as asked for, or fewer.
    pub(super) contestants: usize,
}

impl Surroundings {
    pub(super) async fn look(scratch: &Scratch, concurrency: usize) -> anyhow::Result<Self> {
        let connections = Connections::open(scratch.url(), 2)?;
        let mut connection = connections.get().await?;
        let seen = match scratch.backend() {
            Backend::Sqlite => of_sqlite(&mut connection, concurrency).await,
            Backend::Postgres => of_postgres(&mut connection, concurrency).await,
        };
        drop(connection);
        connections.close().await;
        seen
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
        contestants: concurrency,
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
    let fit = usize::try_from((server.integer("free")? - SPARE) / PER_CONTESTANT).unwrap_or(0);
    let contestants = concurrency.min(fit);
    anyhow::ensure!(contestants >= 2, "the server has no connections left for a race");
    if contestants < concurrency {
        warnings.push(format!(
            "too few connections: {contestants} of the {concurrency} contestants asked for race \
             at once; raise max_connections"
        ));
    }
    Ok(Surroundings {
        engine: Backend::Postgres.as_str(),
        version: server.text("version")?,
        isolation: server.text("isolation").context("its isolation")?,
        warnings,
        contestants,
    })
}
