//! Reading targets and payloads while the database comes and goes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domain::id::{EndpointKey, SubmissionId};
use futures_util::future::BoxFuture;
use store::StoreError;
use store::endpoint::Target;
use store::submission::Payload;

use super::{Loader, Loading};
use crate::backoff::Backoff;
use crate::claim::{Claim, Claimed};

/// The worker stops, or nothing of the claim could be started any more.
#[derive(Debug)]
pub(super) struct TooLate;

/// What was read, or why it cannot be read. What is missing does not exist.
type Found<K, T> = HashMap<K, Result<T, String>>;

impl Loader {
    /// The targets of a claim.
    pub(super) async fn read_targets(
        &self,
        claim: Claim,
        claimed: &[Claimed],
    ) -> Result<Found<EndpointKey, Arc<Target>>, TooLate> {
        let endpoints: BTreeSet<EndpointKey> = claimed.iter().map(|it| it.endpoint).collect();
        let endpoints: Vec<EndpointKey> = endpoints.into_iter().collect();
        let is_fresh = || claimed.iter().any(|delivery| claim.is_fresh(delivery));
        let store = self.database.store();
        let (found, refused) =
            self.read_each(&endpoints, is_fresh, |endpoints| store.read_targets(endpoints)).await?;
        let found = found.into_iter().map(|target| (target.endpoint, Ok(Arc::new(target))));
        Ok(found.chain(refused.into_iter().map(|(key, why)| (key, Err(why)))).collect())
    }

    /// The payloads of a chunk that did not come with the claim.
    pub(super) async fn read_payloads(
        &self,
        claim: Claim,
        chunk: &[Loading],
    ) -> Result<Found<SubmissionId, Payload>, TooLate> {
        let unread = chunk.iter().filter(|it| it.delivery.payload.is_none());
        let submissions: Vec<(EndpointKey, SubmissionId)> =
            unread.map(|it| (it.delivery.endpoint, it.delivery.submission)).collect();
        if submissions.is_empty() {
            return Ok(Found::new());
        }
        let is_fresh = || chunk.iter().any(|it| claim.is_fresh(&it.delivery));
        let store = self.database.store();
        let (found, refused) =
            self.read_each(&submissions, is_fresh, |keys| store.read_payloads(keys)).await?;
        let found = found.into_iter().map(|payload| (payload.submission, Ok(payload)));
        Ok(found.chain(refused.into_iter().map(|((_, key), why)| (key, Err(why)))).collect())
    }

    /// Reads all of `keys` in one statement. Where the database refuses that, one by one, so that a
    /// row that cannot be read does not hold up the others; those it refuses are answered apart.
    async fn read_each<'k, K: Copy, T>(
        &self,
        keys: &'k [K],
        is_fresh: impl Fn() -> bool,
        read: impl Fn(&'k [K]) -> BoxFuture<'k, Result<Vec<T>, StoreError>>,
    ) -> Result<(Vec<T>, Vec<(K, String)>), TooLate> {
        if let Ok(found) = self.patiently(&is_fresh, || read(keys)).await? {
            return Ok((found, Vec::new()));
        }
        let (mut found, mut refused) = (Vec::with_capacity(keys.len()), Vec::new());
        for key in keys.chunks(1) {
            match self.patiently(&is_fresh, || read(key)).await? {
                Ok(one) => found.extend(one),
                Err(error) => refused.extend(key.iter().map(|key| (*key, error.chain()))),
            }
        }
        Ok((found, refused))
    }

    /// Reads again for as long as the database is away and the claim is fresh. The inner error is
    /// one that would come again.
    async fn patiently<'k, T>(
        &self,
        is_fresh: &impl Fn() -> bool,
        read: impl Fn() -> BoxFuture<'k, Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, TooLate> {
        let mut backoff = Backoff::of_a_loop();
        while is_fresh() {
            match self.database.noted(self.deliverer.until_stop(read()).await.ok_or(TooLate)?) {
                Err(error) if error.is_transient() => {
                    self.deliverer.until_stop(backoff.wait()).await.ok_or(TooLate)?;
                }
                answer => return Ok(answer),
            }
        }
        Err(TooLate)
    }
}
