//! Removes a server when the test process has ended, however it ended.
//!
//! A destructor does not run for a `static`, and nothing runs after SIGKILL. So a small process waits for
//! the end of a pipe whose only writer is the test process: the kernel closes it in every case. It is in
//! a process group of its own, which the signals of a terminal or of a test runner do not reach.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub(super) struct Reaper {
    /// Its standard input is the pipe. Never waited for: it outlives this process by design.
    _shell: Child,
}

/// A user to run as, for what refuses to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Reaper {
    /// Runs `script` with `arguments` as `$1`, `$2`, … once this value is dropped or this process is gone.
    pub(super) fn start(
        script: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        user: Option<User>,
    ) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("trap '' HUP INT TERM; cat >/dev/null; {script}"))
            .arg("fencepost-test-reaper")
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::piped())
            // Whoever reads the output of the tests must not wait for the reaper to end.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(user) = user {
            command.uid(user.uid).gid(user.gid);
        }
        Ok(Self { _shell: command.spawn()? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::eventually;

    #[tokio::test]
    async fn it_acts_when_it_is_dropped_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, removed) = (folder.path().join("kept"), folder.path().join("removed"));
        for file in [&kept, &removed] {
            std::fs::write(file, "").unwrap();
        }
        let _waiting = Reaper::start(r#"rm "$1""#, [&kept], None).unwrap();
        drop(Reaper::start(r#"rm "$1""#, [&removed], None).unwrap());
        eventually("the file is removed", Duration::from_secs(10), async || {
            anyhow::ensure!(!removed.exists());
            Ok(())
        })
        .await
        .unwrap();
        assert!(kept.exists());
    }
}
