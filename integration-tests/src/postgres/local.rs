//! PostgreSQL from binaries of this machine, unprivileged, on a socket in a folder of its own.

mod binaries;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use url::Url;

use self::binaries::Binaries;
use super::reaper::User;
use super::{Reaper, SETTINGS, START_UP, Server};

/// `$1` is `pg_ctl`, `$2` the folder.
const REMOVE: &str = r#""$1" stop --pgdata="$2/data" --mode=immediate; rm -rf "$2""#;

/// Not the temporary folder of the environment: the path of a socket has at most 107 bytes, and the user
/// that the server runs as must reach it.
const PARENT: &str = "/tmp";

pub(super) async fn start() -> anyhow::Result<Server> {
    tokio::task::spawn_blocking(start_blocking).await?
}

fn start_blocking() -> anyhow::Result<Server> {
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
    write_settings(&data, &folder)?;
    let mut pg_ctl = Command::new(pg_ctl);
    // With a log file, or the server would keep the outputs of the tests open.
    pg_ctl.args(["start", "--wait", "--timeout"]).arg(START_UP.as_secs().to_string());
    run(pg_ctl.arg("--pgdata").arg(&data).arg("--log").arg(folder.join("log")), user)?;

    let mut url = Url::parse("postgres://postgres@localhost/postgres")?;
    url.query_pairs_mut().append_pair("host", path_text(&folder)?);
    Ok(Server { url, reaper: Some(reaper) })
}

fn write_settings(data: &Path, socket_folder: &Path) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
    writeln!(file, "listen_addresses = ''")?;
    writeln!(file, "unix_socket_directories = '{}'", path_text(socket_folder)?)?;
    for (name, value) in SETTINGS {
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
