//! PostgreSQL in a container.

use std::time::Duration;

use anyhow::Context as _;
use testcontainers::core::IntoContainerPort as _;
use testcontainers::core::client::docker_client_instance;
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{GenericImage, ImageExt as _};
use tokio::process::Command;
use url::Url;
use uuid::Uuid;

use super::{Reaper, SETTINGS, START_UP, Server, Setting};

/// Every container of the tests carries it, so that whatever is left can be found.
const LABEL: (&str, &str) = ("org.fencepost.test", "1");

const PING: Duration = Duration::from_secs(5);

/// More than once: the engine may complete a creation that was under way when the test process was killed.
const REMOVE: &str =
    r#"for pause in 1 2 4; do docker rm --force --volumes "$1"; sleep $pause; done"#;

pub(super) async fn start() -> anyhow::Result<Server> {
    Ok(start_named(&[]).await?.0)
}

/// With settings beside those of all, and the container's name, for who wants to kill it.
pub(super) async fn start_named(settings: &[Setting]) -> anyhow::Result<(Server, String)> {
    find_engine().await?;
    let name = format!("fencepost-test-{}", Uuid::now_v7().simple());
    let password = Uuid::now_v7().simple().to_string();
    // Before the container, so that there is no instant at which nobody would remove it.
    let reaper = Reaper::start(REMOVE, [&name], None)?;

    let settings = SETTINGS
        .iter()
        .chain(settings)
        .flat_map(|(name, value)| ["-c".into(), format!("{name}={value}")]);
    // No ready condition: the official image prints its ready line twice, for a server that is initialised
    // and for the one that stays, other images once. That it is ready is asked with a connection.
    let container = GenericImage::new("postgres", "17")
        .with_exposed_port(5432.tcp())
        .with_container_name(&name)
        .with_label(LABEL.0, LABEL.1)
        .with_env_var("POSTGRES_PASSWORD", &password)
        .with_cmd(["postgres".to_owned()].into_iter().chain(settings))
        .with_startup_timeout(START_UP)
        .start()
        .await?;

    let port = container.get_host_port_ipv4(5432).await?;
    // `localhost` may be an IPv6 address, which has another port.
    let host = container.get_host().await?.to_string().replace("localhost", "127.0.0.1");
    let url = Url::parse(&format!("postgres://postgres:{password}@{host}:{port}/postgres"))?;
    // Dropping it would remove it, on a runtime that ends with the test that was the first to ask.
    std::mem::forget(container);
    Ok((Server { url, reaper: Some(reaper) }, name))
}

/// SIGKILL to the server and all its processes.
pub(super) async fn kill(name: &str) -> anyhow::Result<()> {
    docker(&["kill", "--signal=KILL", name]).await.map(drop)
}

/// Starts it again on the same data; answers its port, which may be another.
pub(super) async fn start_again(name: &str) -> anyhow::Result<u16> {
    docker(&["start", name]).await?;
    let ports = docker(&["port", name, "5432/tcp"]).await?;
    let port = ports.lines().find_map(|line| line.rsplit(':').next()?.parse().ok());
    port.with_context(|| format!("{name} has no port: {ports}"))
}

async fn docker(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("docker").args(arguments).output().await?;
    anyhow::ensure!(
        output.status.success(),
        "docker {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// An engine to start the container with, and the command to remove it with.
async fn find_engine() -> anyhow::Result<()> {
    let engine = docker_client_instance().await?;
    tokio::time::timeout(PING, engine.ping())
        .await
        .context("the Docker engine does not answer")?
        .context("no Docker engine answers")?;
    let client = Command::new("docker").arg("--version").output().await;
    anyhow::ensure!(
        client.is_ok_and(|output| output.status.success()),
        "the `docker` command, which removes the container in the end, is not there"
    );
    Ok(())
}
