//! G7: operators who change one endpoint at once are each told what was stored, and the last one stays.

use async_trait::async_trait;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::EndpointName;
use domain::id::EndpointKey;
use domain::signing::SigningSecret;
use store::endpoint::{Endpoint, EndpointChange, EndpointUpdate, NewUrl};

use super::check::{Check, Round};
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Value};
use crate::ground::{Ground, patiently};

#[derive(Debug)]
pub(super) struct EndpointUpdates;

#[async_trait]
impl Check for EndpointUpdates {
    fn name(&self) -> &'static str {
        "endpoint-update"
    }

    fn guarantee(&self) -> &'static str {
        "G7"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "{} operators each give one endpoint another URL with a secret of its own, one of them a \
             name instead, at once",
            ground.contestants()
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?;
        let id = endpoint.id.clone();
        let told = race(ground.stores().await?, move |place, store| {
            let id = id.clone();
            async move {
                let change = change_of(place)?;
                let update = || store.update_endpoint(DEFAULT_APPLICATION_KEY, &id, &change);
                match patiently(update).await? {
                    EndpointUpdate::Updated { endpoint, .. } => {
                        Ok(Told { version: endpoint.version, url: endpoint.url })
                    }
                    other => anyhow::bail!("not updated: {other:?}"),
                }
            }
        })
        .await?;
        let store = ground.store().await?;
        let stored = store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
        let Some(stored) = stored else { anyhow::bail!("the endpoint is gone") };
        let secrets = live_secrets(store.as_ref(), endpoint.key).await?;
        Ok(judge(&told, &Stored::of(&stored), secrets))
    }

    fn naive(&self) -> &'static str {
        "read the endpoint, change a field in the program, then write all fields back"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?.key;
        let connections = ground.connections()?;
        let contestants = connections.get_many(ground.contestants()).await?;
        let all_have_read = Rendezvous::of(contestants.len());
        let told = race(contestants, move |place, mut connection| {
            let all_have_read = all_have_read.clone();
            async move {
                let mut row = Stored::read(&mut connection, endpoint).await?;
                all_have_read.meet().await?;
                row.version += 1;
                match place {
                    0 => NAME.clone_into(&mut row.name),
                    _ => row.url = url_of(place),
                }
                row.write(&mut connection, endpoint).await?;
                Ok(Told { version: row.version, url: row.url })
            }
        })
        .await?;
        let stored = Stored::read(&mut connections.get().await?, endpoint).await?;
        Ok(judge(&told, &stored, 1))
    }
}

const NAME: &str = "Orders";

/// What an operator was told.
#[derive(Debug, Clone)]
struct Told {
    version: i64,
    url: String,
}

/// What there is in the end.
#[derive(Debug, Clone)]
struct Stored {
    version: i64,
    url: String,
    name: String,
}

fn url_of(place: usize) -> String {
    format!("https://receiver-{place}.example.com/hook")
}

/// The first operator gives it a name, each other one a URL.
fn change_of(place: usize) -> anyhow::Result<EndpointChange> {
    if place == 0 {
        let name = Some(Some(EndpointName::parse(NAME)?));
        return Ok(EndpointChange { name, ..EndpointChange::default() });
    }
    let fill = u8::try_from(place % 251)?;
    let url = NewUrl {
        url: DestinationUrl::parse(&url_of(place), &AddressPolicy::default())?,
        secret: SigningSecret::from_slice(&[fill; 24])?,
    };
    Ok(EndpointChange { url: Some(url), ..EndpointChange::default() })
}

async fn live_secrets(store: &dyn store::Store, endpoint: EndpointKey) -> anyhow::Result<usize> {
    let targets = store.read_targets(&[endpoint]).await?;
    let secrets = targets.first().map(|target| target.secrets.clone());
    match secrets {
        Some(Ok(secrets)) => Ok(secrets.len()),
        other => anyhow::bail!("its secrets cannot be read: {other:?}"),
    }
}

/// Every change made a version of its own; the URL is that of the last one, with one live secret; the
/// name is kept, whoever came last.
fn judge(told: &[Told], stored: &Stored, secrets: usize) -> Round {
    let tell = |versions: usize, last: bool, name: bool, secrets: usize| {
        let last = if last { "the last URL stays" } else { "another URL than the last stays" };
        let name = if name { "the name is kept" } else { "the name is lost" };
        format!("{versions} versions, {last} with {secrets} secret, {name}")
    };
    let mut versions: Vec<i64> = told.iter().map(|told| told.version).collect();
    versions.sort_unstable();
    versions.dedup();
    let last = told.iter().max_by_key(|told| told.version);
    let stays = last.is_some_and(|last| last.version == stored.version && last.url == stored.url);
    let observed = tell(versions.len(), stays, stored.name == NAME, secrets);
    Round::of(tell(told.len(), true, true, 1), observed)
}

impl Stored {
    fn of(endpoint: &Endpoint) -> Self {
        Self {
            version: endpoint.version,
            url: endpoint.url.clone(),
            name: endpoint.name.clone().unwrap_or_default(),
        }
    }

    async fn read(connection: &mut Connection, endpoint: EndpointKey) -> anyhow::Result<Self> {
        let row = connection
            .read_one(
                "-- proof::verify::endpoint_update::read
                SELECT CAST(version AS bigint) AS version, url, coalesce(name, '') AS name
                FROM {}endpoints WHERE key = $1",
                &[Value::Uuid(endpoint.as_uuid())],
            )
            .await?;
        Ok(Self {
            version: row.integer("version")?,
            url: row.text("url")?,
            name: row.text("name")?,
        })
    }

    async fn write(
        &self,
        connection: &mut Connection,
        endpoint: EndpointKey,
    ) -> anyhow::Result<()> {
        connection
            .run(
                "-- proof::verify::endpoint_update::write
                UPDATE {}endpoints SET version = $2, url = $3, name = $4 WHERE key = $1",
                &[
                    Value::Uuid(endpoint.as_uuid()),
                    Value::Integer(self.version),
                    Value::Text(&self.url),
                    Value::Text(&self.name),
                ],
            )
            .await?;
        Ok(())
    }
}
