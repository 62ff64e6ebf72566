//! Ingest, steady and latency against apis and workers that already run, wherever they do.
//!
//! What they and their machines are made of is not seen: no processor time, no memory, and no limit beside
//! a figure. Of their database is only read what it has written and been asked, where its address is given.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use domain::rate_limit::RATE_UNITS_MAX;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;

use super::client::Connection;
use super::database::Database;
use super::figures::Figures;
use super::load::Load;
use super::meter::{Meter, add_done};
use super::receiver::{Conduct, Receiver};
use super::{Machine, Plan, Report, Scenario, ScenarioReport, ingest, latency, steady};

const ENDPOINTS: usize = 100;
/// How long the first delivery may take.
const FIRST: Duration = Duration::from_secs(20);
const NOTE: &str = "api and workers were running before: their processor time and memory are not seen, \
    and nothing was measured alone beside them";

/// Apis and workers that already run on one database.
#[derive(Debug)]
pub struct Running {
    apis: Vec<SocketAddr>,
    authorization: String,
    receiver: Option<(String, u16)>,
    database: Option<Database>,
}

/// Where they are.
#[expect(missing_debug_implementations, reason = "it has a key and perhaps a password")]
#[derive(Clone)]
pub struct Addresses {
    /// Of the apis, `http://HOST:PORT` each. They are called directly, not through a proxy.
    pub apis: Vec<String>,
    /// A key of the role `admin`: endpoints are made and deleted with it.
    pub key: String,
    /// Where the workers reach this machine, `http://HOST:PORT`. Loopback where it is not given.
    pub receiver: Option<String>,
    /// Of their database, to read from.
    pub database: Option<String>,
}

impl Scenario {
    /// Whether it can be measured with processes that already run: it arranges nothing in a database.
    #[must_use]
    pub fn takes_running(self) -> bool {
        matches!(self, Self::Ingest | Self::Steady | Self::Latency)
    }
}

impl Running {
    /// Finds them, and asks nothing of them yet.
    ///
    /// # Errors
    /// An address is not of its form, a name is not found, or the database cannot be reached.
    pub async fn find(addresses: &Addresses) -> anyhow::Result<Self> {
        let mut apis = Vec::new();
        for url in &addresses.apis {
            let (host, port) = host_and_port(url).context("--api-url")?;
            let mut found = tokio::net::lookup_host((host, port)).await.context("--api-url")?;
            apis.push(found.next().context("--api-url: the name has no address")?);
        }
        let receiver = addresses.receiver.as_ref().map(|url| {
            let (_, port) = host_and_port(url).context("--receiver-url")?;
            anyhow::Ok((url.trim_end_matches('/').to_owned(), port))
        });
        let database = match &addresses.database {
            Some(url) => Some(Database::open(url).await.context("--database-url")?),
            None => None,
        };
        let authorization = format!("Bearer {}", addresses.key);
        Ok(Self { apis, authorization, receiver: receiver.transpose()?, database })
    }

    fn receiver(&self) -> anyhow::Result<Receiver> {
        match &self.receiver {
            Some((url, port)) => Receiver::start_at(url, *port),
            None => Receiver::start(),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: &serde_json::Value,
    ) -> anyhow::Result<Bytes> {
        let address = self.apis.first().context("--api-url names no api")?;
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header(HOST, "bench")
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json");
        let body = if body.is_null() { Bytes::new() } else { serde_json::to_vec(body)?.into() };
        let mut connection = Connection::open(*address).await?;
        let response = connection.send(request.body(Full::new(body))?).await?;
        let (status, body) = (response.status(), response.into_body());
        if !status.is_success() {
            let hint = match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => " (--api-key)",
                _ => "",
            };
            let told = String::from_utf8_lossy(&body);
            bail!("{method} {path} was answered {status}{hint}: {told}");
        }
        Ok(body)
    }

    /// An endpoint that leads there; its path under `/v1/endpoints`.
    async fn create_endpoint(&self, url: &str, paused: bool) -> anyhow::Result<String> {
        #[derive(Deserialize)]
        struct Created {
            id: String,
        }
        let rate = json!({ "limit": RATE_UNITS_MAX, "window": "1s" });
        let endpoint = json!({ "url": url, "name": "bench", "ingest_rate": rate });
        let created = self.call(Method::POST, "/v1/endpoints", &endpoint).await?;
        let created: Created = serde_json::from_slice(&created)?;
        let path = format!("/v1/endpoints/{}", created.id);
        if paused {
            self.call(Method::POST, &format!("{path}/pause"), &json!({})).await?;
        }
        Ok(path)
    }
}

/// Of `http://HOST:PORT`.
fn host_and_port(url: &str) -> anyhow::Result<(String, u16)> {
    let uri: Uri = url.parse().ok().context("not an address")?;
    let is_bare = uri.scheme_str() == Some("http") && uri.path() == "/" && uri.query().is_none();
    let (Some(host), true) = (uri.host(), is_bare) else {
        bail!("it is written http://HOST:PORT");
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), uri.port_u16().unwrap_or(80)))
}

/// Measures what the plan names with apis and workers that already run. The endpoints that are made for it
/// are deleted at its end; what was submitted to them stays in their history.
///
/// # Errors
/// They cannot be reached, refuse the key or a submission, or deliver nothing.
pub async fn bench_running(
    running: &Running,
    plan: &Plan,
    told: &(dyn Fn(&str) + Sync),
) -> anyhow::Result<Report> {
    let machine = Machine::look(running.database.as_ref()).await?;
    let mut scenarios = Vec::new();
    for scenario in &plan.scenarios {
        let began = Instant::now();
        let receiver = running.receiver()?;
        let url = receiver.url(Conduct::AtOnce);
        // What is accepted is not delivered where only that is measured.
        let paused = *scenario == Scenario::Ingest;
        let (mut figures, mut paths) = (Figures::default(), Vec::new());
        let case = Case { running, plan, scenario: *scenario, receiver: &receiver, told };
        let measured = case.make_and_measure(&mut figures, &mut paths, &url, paused).await;
        for path in &paths {
            running.call(Method::DELETE, path, &json!(null)).await?;
        }
        measured?;
        let (figures, targets) = figures.into_report();
        scenarios.push(ScenarioReport {
            scenario: scenario.name(),
            seconds: began.elapsed().as_secs_f64(),
            figures,
            targets,
            courses: Vec::new(),
            notes: vec![NOTE.to_owned()],
        });
    }
    Ok(Report { machine, plan: super::report::PlanReport::of(plan), scenarios })
}

/// One scenario on what runs.
struct Case<'a> {
    running: &'a Running,
    plan: &'a Plan,
    scenario: Scenario,
    receiver: &'a Receiver,
    told: &'a (dyn Fn(&str) + Sync),
}

impl Case<'_> {
    async fn make_and_measure(
        &self,
        figures: &mut Figures,
        paths: &mut Vec<String>,
        url: &str,
        paused: bool,
    ) -> anyhow::Result<()> {
        for _ in 0..ENDPOINTS {
            paths.push(self.running.create_endpoint(url, paused).await?);
        }
        self.see_that_it_is_their_database(paths).await?;
        for round in 0..self.plan.rounds {
            let tell = |what: &str| (self.told)(&self.plan.now(self.scenario, round, what));
            match self.scenario {
                Scenario::Ingest => self.ingest(figures, paths, &tell).await?,
                Scenario::Steady => self.steady(figures, paths, &tell).await?,
                Scenario::Latency => self.latency(figures, paths, &tell).await?,
                other => bail!("{} is not measured with --api-url", other.name()),
            }
        }
        Ok(())
    }

    /// What another database has written would be told as theirs.
    async fn see_that_it_is_their_database(&self, paths: &[String]) -> anyhow::Result<()> {
        let Some(database) = &self.running.database else { return Ok(()) };
        let id = paths.first().and_then(|path| path.rsplit('/').next()).context("no endpoint")?;
        if !database.has_endpoint(id).await.context("--database-url")? {
            bail!("--database-url is not the database of --api-url");
        }
        Ok(())
    }

    fn load(&self, paths: &[String]) -> Load {
        let paths = paths.iter().map(|path| format!("{path}/submissions")).collect();
        let Running { apis, authorization, .. } = self.running;
        Load::of(self.plan, paths, authorization, apis)
    }

    fn meter(&self) -> Meter<'_> {
        Meter { apis: &[], workers: &[], database: self.running.database.as_ref() }
    }

    async fn ingest(
        &self,
        figures: &mut Figures,
        paths: &[String],
        tell: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<()> {
        // How the api commits was said when it was started.
        for case in ingest::CASES.iter().filter(|case| case.commit_rows.is_none()) {
            tell(case.name);
            let load = Load { repeated_percent: case.repeated_percent, ..self.load(paths) };
            let begun = self.done().await?;
            let (_, all) = ingest::drive(self.plan, figures, load, self.meter(), case.name).await?;
            if let (Some(begun), Some(done)) = (begun, self.done().await?) {
                add_done(figures, case.name, begun, done, all);
            }
        }
        Ok(())
    }

    async fn steady(
        &self,
        figures: &mut Figures,
        paths: &[String],
        tell: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<()> {
        tell("ingest and delivery");
        self.see_a_delivery(paths).await?;
        let (begun, started) = (self.done().await?, self.receiver.delivered());
        let (load, meter) = (self.load(paths), self.meter());
        steady::drive(self.plan, figures, self.receiver, load, meter, None).await?;
        if let (Some(begun), Some(done)) = (begun, self.done().await?) {
            let all = self.receiver.delivered() - started;
            add_done(figures, steady::EACH, begun, done, all);
        }
        Ok(())
    }

    async fn latency(
        &self,
        figures: &mut Figures,
        paths: &[String],
        tell: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<()> {
        self.see_a_delivery(paths).await?;
        for (rate, _) in latency::RATES {
            tell(&format!("{rate} submissions/s"));
            let load = self.load(paths);
            let measured = latency::drive(self.plan, self.receiver, load, rate).await?;
            measured.add_to(figures, rate)?;
        }
        Ok(())
    }

    /// Without one nothing can be measured, and who waits is told why.
    async fn see_a_delivery(&self, paths: &[String]) -> anyhow::Result<()> {
        let delivered = self.receiver.delivered_from_now();
        let path = format!("{}/submissions", paths.first().context("no endpoint")?);
        self.running.call(Method::POST, &path, &json!({})).await?;
        let until = Instant::now() + FIRST;
        while delivered.count() == 0 {
            if Instant::now() > until {
                let url = self.receiver.url(Conduct::AtOnce);
                bail!(
                    "nothing was delivered: a worker has to run, to reach {url} (--receiver-url), \
                     and to be allowed to (--allow-networks of api and worker)"
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn done(&self) -> anyhow::Result<Option<super::database::Done>> {
        match &self.running.database {
            Some(database) => Ok(Some(database.done().await?)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_an_api_has_a_host_and_a_port_and_no_more() {
        let read = |url| host_and_port(url).map_err(drop);
        assert_eq!(read("http://api.internal:8080"), Ok(("api.internal".to_owned(), 8080)));
        assert_eq!(read("http://[::1]:8080/"), Ok(("::1".to_owned(), 8080)));
        for refused in ["https://api:8080", "http://api:8080/v1", "api:8080", "http://api/?a=1", ""]
        {
            assert_eq!(read(refused), Err(()), "{refused}");
        }
    }
}
