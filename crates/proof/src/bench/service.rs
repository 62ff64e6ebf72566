//! The api and worker processes of one case.

use std::net::SocketAddr;

use super::Context;
use super::arithmetic::of_count;
use super::processes::Process;

/// How many of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) apis: usize,
    pub(super) workers: usize,
}

/// Apis and workers on the stage, apart or in one process.
#[derive(Debug)]
pub(super) struct Service {
    /// Where the apis are served.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) apis: Vec<Process>,
    /// None on SQLite, which has one server: it is among the apis.
    pub(super) workers: Vec<Process>,
}

impl Service {
    pub(super) async fn start(context: &Context<'_>, size: Size) -> anyhow::Result<Self> {
        let environment = context.stage.environment();
        let mut service = Self { addresses: Vec::new(), apis: Vec::new(), workers: Vec::new() };
        if context.database.is_none() {
            let (server, address) = Process::serve(&environment).await?;
            service.addresses.push(address);
            service.apis.push(server);
            return Ok(service);
        }
        for _ in 0..size.workers {
            service.workers.push(Process::worker(&environment).await?);
        }
        for _ in 0..size.apis {
            let (api, address) = Process::api(&environment).await?;
            service.addresses.push(address);
            service.apis.push(api);
        }
        Ok(service)
    }

    pub(super) async fn kill(self) -> anyhow::Result<()> {
        for process in self.apis.into_iter().chain(self.workers) {
            process.kill().await?;
        }
        Ok(())
    }
}

/// The most memory that one of them has had, in MiB.
pub(super) fn peak_mebibytes(processes: &[Process]) -> Option<f64> {
    let most = processes.iter().filter_map(Process::peak_memory).max()?;
    Some(of_count(most) / 1_048_576.0)
}
