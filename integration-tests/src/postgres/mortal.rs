//! A server of one test, which is killed and started again behind an address that stays.

use anyhow::Context as _;
use sqlx::{Connection as _, PgConnection};
use url::Url;

use super::local::Local;
use super::{Reaper, SOURCE_VARIABLE, START_UP, Server, Setting, Source, container, local};
use crate::eventually;
use crate::proxy::{Proxy, Upstream};

/// Only a server that is started here can be killed: a container, or local binaries.
#[derive(Debug)]
pub struct MortalPostgres {
    url: Url,
    proxy: Proxy,
    body: Body,
    _reaper: Option<Reaper>,
}

#[derive(Debug)]
enum Body {
    Container { name: String },
    Local(Local),
}

impl MortalPostgres {
    /// Starts a server with an empty database.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// The same, with settings beside those of all: some can only be set when a server starts.
    pub async fn start_with(settings: &[Setting]) -> anyhow::Result<Self> {
        let wanted = std::env::var(SOURCE_VARIABLE).ok();
        let container = match wanted.as_deref() {
            Some("local") => Err(anyhow::anyhow!("{SOURCE_VARIABLE} asks for local binaries")),
            _ => container::start_named(settings).await,
        };
        let (Server { url, reaper }, body, upstream) = match container {
            Ok((server, name)) => {
                let port = server.url.port().context("the container's port")?;
                let upstream = Upstream::Tcp(([127, 0, 0, 1], port).into());
                (server, Body::Container { name }, upstream)
            }
            Err(no_container) => {
                let (server, local) = local::start_known(settings).await.with_context(|| {
                    format!(
                        "this test needs a PostgreSQL of its own; no container: {no_container:#}"
                    )
                })?;
                let upstream = Upstream::Unix(local.socket());
                (server, Body::Local(local), upstream)
            }
        };
        let proxy = Proxy::start(upstream).await?;
        let mut through = url.clone();
        through.set_query(None);
        through.set_host(Some("127.0.0.1"))?;
        let port = Some(proxy.address().port());
        through.set_port(port).map_err(|()| anyhow::anyhow!("a URL without a port"))?;
        let server = Self { url: through, proxy, body, _reaper: reaper };
        server.until_it_is_there().await?;
        Ok(server)
    }

    /// The address that stays.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    #[must_use]
    pub fn source(&self) -> Source {
        match self.body {
            Body::Container { .. } => Source::Container,
            Body::Local(_) => Source::Local,
        }
    }

    /// A connection of the test's own.
    pub async fn connect(&self) -> anyhow::Result<PgConnection> {
        PgConnection::connect(self.url()).await.context("connecting to the server")
    }

    /// SIGKILL: nothing is flushed, no client is told.
    pub async fn kill(&self) -> anyhow::Result<()> {
        match &self.body {
            Body::Container { name } => container::kill(name).await?,
            Body::Local(local) => local.kill().await?,
        }
        self.proxy.cut();
        Ok(())
    }

    /// Its open connections pass nothing on any more, and are not closed: fenced, or unplugged.
    pub fn fall_silent(&self) {
        self.proxy.fall_silent();
    }

    /// The same, when clients have sent so many more messages.
    pub fn fall_silent_after(&self, messages: u32) {
        self.proxy.fall_silent_after(messages);
    }

    /// Starts it again on its data and returns when it takes connections.
    pub async fn start_again(&self) -> anyhow::Result<()> {
        match &self.body {
            Body::Container { name } => {
                let port = container::start_again(name).await?;
                self.proxy.lead_to(Upstream::Tcp(([127, 0, 0, 1], port).into()));
            }
            // Sessions of the killed server may still hold its memory.
            Body::Local(local) => {
                eventually("the server starts", START_UP, async || local.start_again().await)
                    .await?;
            }
        }
        self.until_it_is_there().await
    }

    async fn until_it_is_there(&self) -> anyhow::Result<()> {
        eventually("the server takes connections", START_UP, async || {
            let mut connection = self.connect().await?;
            sqlx::query("select 1").execute(&mut connection).await?;
            Ok(())
        })
        .await
    }
}
