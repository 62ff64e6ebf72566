//! The upkeep that disables what has been failing for too long, and what is committed under its eyes.

use std::sync::Arc;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::Verdict;
use domain::endpoint::DisabledCause;
use store::StoreOptions;
use store::endpoint::{Endpoint, EndpointChange};
use store::sealing::{Sealer, SealingKey};
use url::Url;

use super::session::{run, until_it_waits};
use crate::fixture::{Fixture, report};

/// An endpoint that failed on each of five days, with a delivery that is due.
async fn failing(db: &Fixture) -> anyhow::Result<Endpoint> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    db.run(
        "update {}endpoint_schedule set failing_since = now() - interval '121 hours',
            failed_at = now() - interval '1 hour' where endpoint = $1",
        endpoint.key.as_uuid(),
    )
    .await?;
    Ok(endpoint)
}

/// What is committed after the candidates were read and before their rows are locked.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    Succeeds,
    IsEnabled,
    IsDisabled,
    IsDeleted,
}

impl Meanwhile {
    async fn happens(self, db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<()> {
        let (application, id) = (DEFAULT_APPLICATION_KEY, &endpoint.id);
        match self {
            Self::Succeeds => {
                let claim = db.claim_one(endpoint).await?;
                db.record(report(claim, Verdict::Delivered)).await?;
            }
            Self::IsEnabled => {
                db.store.enable_endpoint(application, id).await?;
            }
            Self::IsDisabled => {
                let change = EndpointChange { enabled: Some(false), ..EndpointChange::default() };
                db.store.update_endpoint(application, id, &change).await?;
            }
            Self::IsDeleted => {
                db.store.delete_endpoint(application, id).await?;
            }
        }
        Ok(())
    }
}

/// The clock that the statement asks stands still while the test holds a lock: the first candidate is read by
/// then, and nothing is locked. Only on the locked rows is the change there to be seen.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_a_run_before_its_row_is_locked_saves_the_endpoint() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let mut session = db.session().await?;
    run(
        &mut session,
        "create schema gate;
        create function gate.statement_timestamp() returns timestamptz language plpgsql as $$
            begin
                perform pg_advisory_xact_lock_shared(1);
                return pg_catalog.statement_timestamp();
            end
        $$",
    )
    .await?;
    let mut url = Url::parse(db.url())?;
    url.query_pairs_mut().append_pair("options[search_path]", "gate, pg_catalog");
    let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
    let gated = store::open(url.as_str(), StoreOptions::new(sealer)).await?;
    for meanwhile in
        [Meanwhile::Succeeds, Meanwhile::IsEnabled, Meanwhile::IsDisabled, Meanwhile::IsDeleted]
    {
        let endpoint = failing(&db).await?;
        run(&mut session, "select pg_advisory_lock(1)").await?;
        let store = Arc::clone(&gated);
        let disabling = tokio::spawn(async move { store.disable_failing(10).await });
        until_it_waits(&mut db.session().await?, "postgres::maintenance::disable_failing").await?;
        meanwhile.happens(&db, &endpoint).await?;
        run(&mut session, "select pg_advisory_unlock(1)").await?;
        assert!(disabling.await??.is_empty(), "{meanwhile:?}");
        let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
        let cause = found.map(|endpoint| endpoint.disabled);
        let expected = match meanwhile {
            Meanwhile::Succeeds | Meanwhile::IsEnabled => Some(None),
            Meanwhile::IsDisabled => Some(Some(DisabledCause::Operator)),
            Meanwhile::IsDeleted => None,
        };
        assert_eq!(cause, expected, "{meanwhile:?}");
    }

    // Where nothing happens meanwhile, the same statement disables.
    let endpoint = failing(&db).await?;
    assert_eq!(gated.disable_failing(10).await?, [endpoint.key]);
    Ok(())
}

/// The store's sessions give up a wait after two seconds with an error: that there is none proves that
/// nothing was waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_session_holds_is_left_to_the_next_time() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = failing(&db).await?;
    let mut session = db.session().await?;
    for held in [
        "begin; select from fencepost.endpoint_schedule for no key update",
        "begin; select from fencepost.endpoints for no key update",
    ] {
        run(&mut session, held).await?;
        assert!(db.store.disable_failing(10).await?.is_empty(), "{held}");
        run(&mut session, "rollback").await?;
    }
    assert_eq!(db.store.disable_failing(10).await?, [endpoint.key]);
    Ok(())
}
