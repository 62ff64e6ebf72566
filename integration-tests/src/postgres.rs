//! A real PostgreSQL for the tests: one server for each test binary, one database for each test.
//!
//! Where the server comes from, the first that is there:
//!
//! 1. [`DATABASE_VARIABLE`], a server that someone else runs;
//! 2. a container of `postgres:17`, where a Docker engine answers;
//! 3. PostgreSQL's own binaries, version 15 or later, started unprivileged on a private socket.
//!
//! Without any of them a test fails and says which to provide; none is ever skipped.
//! [`SOURCE_VARIABLE`] insists on one of them.
//!
//! Servers that are started here run with `fsync = off`: what is tested is who sees whose commit, and
//! which process dies when, never a loss of power. All else, `synchronous_commit` included, is the
//! default of production.
//!
//! They are removed however the test process ends, SIGKILL included (see `reaper.rs`). Nothing that
//! belongs to a runtime is kept between tests, since each test has a runtime of its own: the shared
//! server is a URL and a pipe.

mod container;
mod database;
mod external;
mod local;
mod mortal;
mod pooler;
mod reaper;
mod source;
mod template;
mod version;

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::OnceCell;
use url::Url;
use uuid::Uuid;

pub use self::database::TestDatabase;
pub use self::mortal::MortalPostgres;
pub use self::pooler::TransactionPooler;
use self::reaper::Reaper;
pub use self::source::Source;
use self::version::Version;
use crate::eventually;

/// The URL of a server whose user may create databases. The database that it names is only connected to.
pub const DATABASE_VARIABLE: &str = "FENCEPOST_TEST_DATABASE_URL";

/// `external`, `container` or `local`: this one or none.
pub const SOURCE_VARIABLE: &str = "FENCEPOST_TEST_POSTGRES";

const VERSION_MIN: u32 = 15;

/// A setting of a server, and its value.
pub type Setting = (&'static str, &'static str);

/// For servers that are started here.
const SETTINGS: [Setting; 3] = [("max_connections", "400"), ("fsync", "off"), ("jit", "off")];

const START_UP: Duration = Duration::from_mins(1);

/// A server that someone else runs is expected to be up.
const REACHED: Duration = Duration::from_secs(10);

/// A running server with a migrated template to clone databases from.
#[derive(Debug)]
pub struct TestPostgres {
    source: Source,
    url: Url,
    template: String,
    /// Holds the server alive.
    _reaper: Option<Reaper>,
}

/// A server as its source gives it: perhaps not yet accepting connections.
struct Server {
    url: Url,
    reaper: Option<Reaper>,
}

impl TestPostgres {
    /// The server of this process, started by the first test that asks. A failure is kept: the other tests
    /// fail at once and with the same words.
    pub async fn shared() -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<anyhow::Result<TestPostgres>> = OnceCell::const_new();
        match SHARED.get_or_init(Self::start).await {
            Ok(postgres) => Ok(postgres),
            Err(error) => anyhow::bail!("no PostgreSQL for the tests: {error:#}"),
        }
    }

    async fn start() -> anyhow::Result<Self> {
        let (source, Server { url, reaper }) = source::find().await?;
        let within = match source {
            Source::External => REACHED,
            Source::Container | Source::Local => START_UP,
        };
        let version = eventually("PostgreSQL accepts a connection", within, async || {
            Ok(Version::read(&mut PgConnection::connect(url.as_str()).await?).await?)
        })
        .await?;
        anyhow::ensure!(
            version.major() >= VERSION_MIN,
            "PostgreSQL {version} is there, {VERSION_MIN} or later is needed"
        );
        announce(&format!("{source} PostgreSQL {version}"));
        if source == Source::External {
            external::drop_old_databases(&url).await?;
        }
        let template = template::create(&url).await.context("the template database")?;
        Ok(Self { source, url, template, _reaper: reaper })
    }

    /// A fresh, migrated database that no other test sees.
    pub async fn database(&self) -> anyhow::Result<TestDatabase> {
        let name = fresh_name();
        let mut connection = PgConnection::connect(self.url.as_str()).await?;
        template::clone(&mut connection, &self.template, &name).await?;
        connection.close().await?;
        Ok(TestDatabase::new(&self.url, name, self.source))
    }

    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }
}

/// Unique, and it begins with the time: an old leftover can be told by its name.
fn fresh_name() -> String {
    format!("{}{}", database::NAME_PREFIX, Uuid::now_v7().simple())
}

/// Around the capture of the test runner: where the database came from belongs into every log.
fn announce(what: &str) {
    let _ = writeln!(io::stderr(), "tests use: {what}");
}
