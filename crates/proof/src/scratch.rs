//! The database that a proof runs on: never the user's own.

use anyhow::{Context as _, bail};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use store::{Backend, StoreError, postgres, sqlite};

/// `SQLSTATE` of what the role may not do.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// A migrated database that exists for one proof.
#[derive(Debug)]
pub struct Scratch {
    kind: Kind,
}

enum Kind {
    Sqlite(sqlite::ScratchDatabase),
    Postgres(postgres::ScratchDatabase),
    /// Somebody else's empty database. Only our schema in it is ours to drop.
    Lent {
        url: String,
    },
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // An address may carry a password.
        f.write_str(match self {
            Self::Sqlite(_) => "Sqlite",
            Self::Postgres(_) => "Postgres",
            Self::Lent { .. } => "Lent",
        })
    }
}

impl Scratch {
    /// Makes a database beside the one at `url`, or takes the empty one at `lent`, and migrates it.
    ///
    /// # Errors
    /// The database cannot be reached, the role may not create one, or the one lent is not empty.
    pub async fn create(url: &str, lent: Option<&str>) -> anyhow::Result<Self> {
        let kind = match lent {
            Some(lent) => borrow(lent).await?,
            None => match Backend::of_url(url)? {
                Backend::Sqlite => Kind::Sqlite(sqlite::ScratchDatabase::create(url).await?),
                Backend::Postgres => Kind::Postgres(create_beside(url).await?),
            },
        };
        let scratch = Self { kind };
        match store::migrate(scratch.url()).await {
            Ok(()) => Ok(scratch),
            Err(error) => {
                scratch.drop().await?;
                Err(error).context("the scratch database was not migrated")
            }
        }
    }

    /// Its address. It may carry a password.
    #[must_use]
    pub fn url(&self) -> &str {
        match &self.kind {
            Kind::Sqlite(scratch) => &scratch.url,
            Kind::Postgres(scratch) => &scratch.url,
            Kind::Lent { url } => url,
        }
    }

    /// What kind of database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.kind {
            Kind::Sqlite(_) => Backend::Sqlite,
            Kind::Postgres(_) | Kind::Lent { .. } => Backend::Postgres,
        }
    }

    /// Drops it, ending what is still connected.
    ///
    /// # Errors
    /// It cannot be reached any more.
    pub async fn drop(self) -> anyhow::Result<()> {
        match self.kind {
            Kind::Sqlite(scratch) => sqlite::drop_scratch(&scratch).await?,
            Kind::Postgres(scratch) => postgres::drop_scratch(&scratch).await?,
            Kind::Lent { url } => give_back(&url).await.context("the schema fencepost is left")?,
        }
        Ok(())
    }
}

async fn create_beside(url: &str) -> anyhow::Result<postgres::ScratchDatabase> {
    match postgres::ScratchDatabase::create(url).await {
        Ok(scratch) => Ok(scratch),
        Err(error) if sqlstate_of(&error).as_deref() == Some(INSUFFICIENT_PRIVILEGE) => {
            let role = connect_options(url)?.get_username().to_owned();
            bail!(
                "the role may not create a scratch database: run `ALTER ROLE \"{role}\" CREATEDB` \
                 as a superuser, or name an empty database with --scratch-url"
            )
        }
        Err(error) => Err(error).context("no scratch database was made"),
    }
}

fn sqlstate_of(error: &StoreError) -> Option<String> {
    let StoreError::Refused { source, .. } = error else { return None };
    let error = source.downcast_ref::<sqlx::Error>()?.as_database_error()?;
    error.code().map(std::borrow::Cow::into_owned)
}

fn connect_options(url: &str) -> anyhow::Result<PgConnectOptions> {
    // The driver's text may repeat the address, which carries a password.
    url.parse()
        .ok()
        .context("the address is not of the form postgres://user:password@host/database")
}

async fn borrow(url: &str) -> anyhow::Result<Kind> {
    if Backend::of_url(url)? != Backend::Postgres {
        bail!("--scratch-url is for PostgreSQL: beside an SQLite file a scratch file is made");
    }
    let mut connection = connect_options(url)?.connect().await.context("the scratch database")?;
    let schema = sqlx::query(
        "-- proof::scratch::borrow
        SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'fencepost'",
    );
    let used = connection.fetch_optional(schema).await?.is_some();
    connection.close().await?;
    if used {
        bail!("the database of --scratch-url has a schema fencepost: name an empty database");
    }
    Ok(Kind::Lent { url: url.to_owned() })
}

async fn give_back(url: &str) -> anyhow::Result<()> {
    let mut connection = connect_options(url)?.connect().await?;
    connection.execute("DROP SCHEMA IF EXISTS fencepost CASCADE").await?;
    Ok(connection.close().await?)
}
