//! PostgreSQL from binaries of this machine, unprivileged, on a socket in a folder of its own.

mod binaries;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use url::Url;

use self::binaries::Binaries;
use super::reaper::User;
use super::{Reaper, SETTINGS, START_UP, Server, Setting};

/// `$1` is `pg_ctl`, `$2` the folder.
const REMOVE: &str = r#""$1" stop --pgdata="$2/data" --mode=immediate; rm -rf "$2""#;

/// Not the temporary folder of the environment: the path of a socket has at most 107 bytes, and the user
/// that the server runs as must reach it.
const PARENT: &str = "/tmp";

/// A server that was started here.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pg_ctl: PathBuf,
    folder: PathBuf,
    user: Option<User>,
}

pub(super) async fn start() -> anyhow::Result<Server> {
    Ok(start_known(&[]).await?.0)
}

/// With settings beside those of all, and what it was started from, for who wants to kill it.
pub(super) async fn start_known(settings: &[Setting]) -> anyhow::Result<(Server, Local)> {
    let settings = [&SETTINGS[..], settings].concat();
    tokio::task::spawn_blocking(move || start_blocking(&settings)).await?
}

impl Local {
    /// The socket that it listens on.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// SIGKILL to the server; its sessions end by themselves when they notice.
    pub(super) async fn kill(&self) -> anyhow::Result<()> {
        let pid_file = self.folder.join("data/postmaster.pid");
        let script = r#"kill -KILL "$(head -n 1 "$0")""#;
        let killed = tokio::process::Command::new("sh").args(["-c", script]).arg(pid_file).status();
        anyhow::ensure!(killed.await?.success(), "the server could not be killed");
        Ok(())
    }

    /// Starts it again on the same data.
    pub(super) async fn start_again(&self) -> anyhow::Result<()> {
        let local = self.clone();
        tokio::task::spawn_blocking(move || local.pg_ctl_start()).await?
    }

    fn pg_ctl_start(&self) -> anyhow::Result<()> {
        let mut pg_ctl = Command::new(&self.pg_ctl);
        // With a log file, or the server would keep the outputs of the tests open.
        pg_ctl.args(["start", "--wait", "--timeout"]).arg(START_UP.as_secs().to_string());
        pg_ctl.arg("--pgdata").arg(self.folder.join("data"));
        run(pg_ctl.arg("--log").arg(self.folder.join("log")), self.user)
    }
}

fn start_blocking(settings: &[Setting]) -> anyhow::Result<(Server, Local)> {
    let binaries = Binaries::find()?;
    let user = unprivileged_user()?;
    let folder = tempfile::Builder::new().prefix("fencepost-test-").tempdir_in(PARENT)?;
    if let Some(user) = user {
        chown(folder.path(), Some(user.uid), Some(user.gid))?;
    }
    let pg_ctl = binaries.pg_ctl();
    let reaper = Reaper::start(REMOVE, [pg_ctl.as_path(), folder.path()], user)?;
    // From here on the reaper removes it.
    let folder = folder.keep();

    let data = folder.join("data");
    let mut initdb = Command::new(binaries.initdb());
    initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    run(initdb.arg("--no-sync").arg("--pgdata").arg(&data), user)?;
    write_settings(&data, &folder, settings)?;
    let local = Local { pg_ctl, folder, user };
    local.pg_ctl_start()?;

    let mut url = Url::parse("postgres://postgres@localhost/postgres")?;
    url.query_pairs_mut().append_pair("host", path_text(&local.folder)?);
    Ok((Server { url, reaper: Some(reaper) }, local))
}

fn write_settings(data: &Path, socket_folder: &Path, settings: &[Setting]) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
    writeln!(file, "listen_addresses = ''")?;
    writeln!(file, "unix_socket_directories = '{}'", path_text(socket_folder)?)?;
    for (name, value) in settings {
        writeln!(file, "{name} = {value}")?;
    }
    Ok(())
}

/// Who the server runs as: this user, or as root, which PostgreSQL refuses to be, one that is not.
pub(super) fn unprivileged_user() -> anyhow::Result<Option<User>> {
    let id = |arguments: &[&str]| -> anyhow::Result<u32> {
        let output = Command::new("id").args(arguments).output().context("running `id`")?;
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    if id(&["-u"])? != 0 {
        return Ok(None);
    }
    let user = ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| Some(User { uid: id(&["-u", name]).ok()?, gid: id(&["-g", name]).ok()? }));
    let user = user.context("run by root, and there is no user postgres or nobody to run as")?;
    Ok(Some(user))
}

fn run(command: &mut Command, user: Option<User>) -> anyhow::Result<()> {
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    let output = command.current_dir("/").output().with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
