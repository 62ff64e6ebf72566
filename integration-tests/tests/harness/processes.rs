use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use integration_tests::process::{ChildProcess, Settings};

const SOON: Duration = Duration::from_secs(10);

/// A shell stands in for a process of ours.
fn shell(script: &str) -> anyhow::Result<ChildProcess> {
    let settings = Settings::new("postgres://nowhere").with("EXTRA", "of the test");
    ChildProcess::start("a shell", "/bin/sh", &["-c", script], &settings)
}

fn says(expected: &str) -> impl Fn(&str) -> Option<()> {
    move |line| (line == expected).then_some(())
}

#[tokio::test]
async fn a_process_is_ready_with_its_line_and_can_be_asked_to_end() -> anyhow::Result<()> {
    // It waits by reading what is never written; the shell runs the trap once that is interrupted.
    let mut shell = shell("trap 'echo asked; exit 3' TERM; echo noise >&2; echo ready; read _")?;
    shell.wait_for_line("that it is ready", SOON, says("ready")).await?;
    shell.terminate().await?;
    assert_eq!(shell.wait_exit(SOON).await?.code(), Some(3));
    assert!(shell.lines().contains(&"asked".to_owned()), "{:?}", shell.lines());
    Ok(())
}

#[tokio::test]
async fn a_killed_process_has_no_say() -> anyhow::Result<()> {
    let mut shell = shell("trap 'exit 3' TERM; echo ready; read _")?;
    shell.wait_for_line("that it is ready", SOON, says("ready")).await?;
    assert_eq!(shell.kill().await?.signal(), Some(9));
    Ok(())
}

#[tokio::test]
async fn a_process_that_ends_before_it_is_ready_is_told_with_its_words() -> anyhow::Result<()> {
    let mut shell = shell("echo cannot bind >&2; exit 7")?;
    let error = shell.wait_for_line("that it is ready", SOON, says("ready")).await.unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("exit status: 7") && text.contains("cannot bind"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_process_sees_only_the_environment_that_it_is_given() -> anyhow::Result<()> {
    let mut shell = shell("echo ${CARGO_MANIFEST_DIR-none}, $FENCEPOST_LISTEN, $EXTRA; read _")?;
    let any = |line: &str| Some(line.to_owned());
    let seen = shell.wait_for_line("what it sees", SOON, any).await?;
    assert_eq!(seen, "none, 127.0.0.1:0, of the test");
    Ok(())
}
