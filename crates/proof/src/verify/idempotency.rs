//! G4: of any number of concurrent submissions with one key one is stored, and all get its answer.

use async_trait::async_trait;
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreError};
use uuid::Uuid;

use super::check::{Check, Round};
use crate::barrier::{Rendezvous, race};
use crate::connections::{Connection, Value};
use crate::ground::{Ground, patiently, submission};

const KEY: &str = "order-1";
/// How often a producer comes again that was told to: each time it has waited a quarter of a second.
const COMES_AGAIN: u32 = 60;

#[derive(Debug)]
pub(super) struct Idempotency;

#[async_trait]
impl Check for Idempotency {
    fn name(&self) -> &'static str {
        "idempotency"
    }

    fn guarantee(&self) -> &'static str {
        "G4"
    }

    fn tried(&self, ground: &Ground) -> String {
        format!(
            "{} producers submit the same content under one key at once; then one submits other \
             content under it",
            ground.contestants()
        )
    }

    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = ground.endpoint().await?.key;
        let told = race(ground.stores().await?, move |_, store| async move {
            accept(store.as_ref(), submission(endpoint, Some(KEY), b"{}")?).await
        })
        .await?;
        let other = submission(endpoint, Some(KEY), b"[]")?;
        let refused = accept(ground.store().await?.as_ref(), other).await?;
        let mut connection = ground.connections()?.get().await?;
        let stored = count(&mut connection, endpoint.as_uuid()).await?;

        let mut tally = Tally {
            stored,
            refused: usize::from(refused == Acceptance::Conflicted),
            ..Tally::default()
        };
        let answers = told.iter().filter_map(|told| match told {
            Acceptance::Accepted(answer) | Acceptance::Replayed(answer) => Some(answer),
            _ => None,
        });
        let first = answers.clone().next();
        tally.same = answers.filter(|answer| Some(*answer) == first).count();
        tally.accepted = told.iter().filter(|told| matches!(told, Acceptance::Accepted(_))).count();
        Ok(tally.judge(ground.contestants()))
    }

    fn naive(&self) -> &'static str {
        "look whether a submission with this key is stored, then insert it"
    }

    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round> {
        let endpoint = store::new_id::endpoint_key().as_uuid();
        let connections = ground.connections()?;
        make_table(&mut connections.get().await?).await?;
        let contestants = connections.get_many(ground.contestants()).await?;
        let all_have_read = Rendezvous::of(contestants.len());
        let accepted = race(contestants, move |_, mut connection| {
            let all_have_read = all_have_read.clone();
            async move {
                let is_new = !is_stored(&mut connection, endpoint).await?;
                all_have_read.meet().await?;
                if is_new {
                    insert(&mut connection, endpoint).await?;
                }
                Ok(is_new)
            }
        })
        .await?;
        let stored = count_naive(&mut connections.get().await?, endpoint).await?;
        let accepted = accepted.into_iter().filter(|accepted| *accepted).count();
        let same = ground.contestants() + 1 - accepted;
        Ok(Tally { accepted, same, refused: 1, stored }.judge(ground.contestants()))
    }
}

/// What became of a key.
#[derive(Debug, Default)]
struct Tally {
    /// Producers who were told that theirs was stored.
    accepted: usize,
    /// Producers who got the same answer.
    same: usize,
    /// Those with other content who were refused.
    refused: usize,
    stored: i64,
}

impl Tally {
    fn judge(&self, producers: usize) -> Round {
        let tell = |Self { accepted, same, refused, stored }: &Self| {
            format!(
                "{stored} stored, {accepted} told so, {same} with its answer, {refused} with other \
                 content refused"
            )
        };
        let expected = Self { accepted: 1, same: producers, refused: 1, stored: 1 };
        Round::of(tell(&expected), tell(self))
    }
}

/// Submits, and again as long as it is told that another holds the key.
async fn accept(store: &dyn Store, submission: NewSubmission) -> anyhow::Result<Acceptance> {
    let submissions = [submission];
    for _ in 0..COMES_AGAIN {
        let told = patiently(|| async {
            match store.accept(&submissions).await?.pop() {
                Some(told) => Ok::<_, StoreError>(told),
                None => Ok(Acceptance::EndpointMissing),
            }
        })
        .await?;
        if told != Acceptance::KeyInProgress {
            return Ok(told);
        }
    }
    Ok(Acceptance::KeyInProgress)
}

async fn count(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<i64> {
    let row = connection
        .read_one(
            "-- proof::verify::idempotency::count
            SELECT CAST(count(*) AS bigint) AS stored FROM {}submissions WHERE endpoint = $1",
            &[Value::Uuid(endpoint)],
        )
        .await?;
    Ok(row.integer("stored")?)
}

/// As the submissions, without the unique key that is the guard.
async fn make_table(connection: &mut Connection) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::idempotency::make_table
            CREATE TABLE {}naive_submissions (endpoint {uuid} NOT NULL, key text NOT NULL)",
            &[],
        )
        .await?;
    Ok(())
}

async fn is_stored(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<bool> {
    Ok(count_naive(connection, endpoint).await? > 0)
}

async fn insert(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::verify::idempotency::insert
            INSERT INTO {}naive_submissions VALUES ($1, $2)",
            &[Value::Uuid(endpoint), Value::Text(KEY)],
        )
        .await?;
    Ok(())
}

async fn count_naive(connection: &mut Connection, endpoint: Uuid) -> anyhow::Result<i64> {
    let row = connection
        .read_one(
            "-- proof::verify::idempotency::count_naive
            SELECT CAST(count(*) AS bigint) AS stored FROM {}naive_submissions
            WHERE endpoint = $1 AND key = $2",
            &[Value::Uuid(endpoint), Value::Text(KEY)],
        )
        .await?;
    Ok(row.integer("stored")?)
}
