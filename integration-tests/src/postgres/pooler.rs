use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;

use anyhow::Context as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use url::Url;

use super::local::unprivileged_user;
use super::{Reaper, START_UP};
use crate::eventually;

/// Names a PgBouncer to use instead of the first that is found.
const BINARY_VARIABLE: &str = "FENCEPOST_TEST_PGBOUNCER";

/// Where `.ci/pgbouncer` and packages put it.
const BINARIES: [&str; 4] = [
    "/opt/fencepost-pgbouncer/pgbouncer",
    "/usr/sbin/pgbouncer",
    "/usr/bin/pgbouncer",
    "/usr/local/bin/pgbouncer",
];

/// PgBouncer in transaction mode before a database: two statements of one client may run on two
/// connections, and none of them may count on what a session remembers.
#[derive(Debug)]
pub struct TransactionPooler {
    url: Url,
    child: Child,
    /// Ends it when this process is killed.
    _reaper: Reaper,
    _folder: TempDir,
}

impl TransactionPooler {
    /// Before the database of that address. That there is no PgBouncer is an error, never a reason to
    /// leave a test out.
    pub async fn start(database_url: &str) -> anyhow::Result<Self> {
        let binary = find_binary()?;
        let user = unprivileged_user()?;
        let folder = tempfile::Builder::new().prefix("fencepost-test-").tempdir_in("/tmp")?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let settings = folder.path().join("pgbouncer.ini");
        std::fs::write(&settings, settings_text(database_url, port)?)?;
        if let Some(user) = user {
            for path in [folder.path(), &settings] {
                chown(path, Some(user.uid), Some(user.gid))?;
            }
        }
        let mut command = Command::new(&binary);
        command.arg("--quiet").arg(&settings).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = user {
            command.uid(user.uid).gid(user.gid);
        }
        let child = command.spawn().with_context(|| format!("starting {}", binary.display()))?;
        let reaper = Reaper::start(r#"kill -INT "$1""#, [child.id().to_string()], user)?;
        let mut url = Url::parse(database_url)?;
        url.set_query(None);
        url.set_host(Some("127.0.0.1"))?;
        url.set_port(Some(port)).ok().context("the address takes no port")?;
        eventually("the pooler answers", START_UP, async || {
            Ok(PgConnection::connect(url.as_str()).await?.close().await?)
        })
        .await?;
        Ok(Self { url, child, _reaper: reaper, _folder: folder })
    }

    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl Drop for TransactionPooler {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find_binary() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(BINARY_VARIABLE) {
        return Ok(named.into());
    }
    let found = BINARIES.iter().map(Path::new).find(|path| path.exists());
    found.map(Path::to_owned).with_context(|| {
        format!(
            "no PgBouncer: run .ci/pgbouncer as root, or name one of version 1.21 or later in \
             {BINARY_VARIABLE}"
        )
    })
}

fn settings_text(database_url: &str, port: u16) -> anyhow::Result<String> {
    let server = PgConnectOptions::from_str(database_url)?;
    let host = match server.get_socket() {
        Some(folder) => folder.to_str().context("the socket's path is not UTF-8")?,
        None => server.get_host(),
    };
    let password = Url::parse(database_url)?.password().unwrap_or_default().to_owned();
    Ok(format!(
        "[databases]\n\
         * = host={host} port={server_port} user={user} password='{password}'\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = 8\n\
         max_client_conn = 200\n\
         max_prepared_statements = 200\n\
         ignore_startup_parameters = extra_float_digits\n",
        server_port = server.get_port(),
        user = server.get_username(),
    ))
}
