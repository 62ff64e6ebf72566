use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::id::{EndpointKey, PublicId};
use domain::signing::SigningSecret;
use domain::submission::{ContentType, IdempotencyKey};
use futures_util::FutureExt;
use futures_util::future::join_all;
use store::StoreOptions;
use store::endpoint::NewEndpoint;
use store::sealing::{Sealer, SealingKey};
use store::submission::SubmissionFilter;
use tempfile::TempDir;

use super::*;

/// A committer on an SQLite file of its own.
struct Bench {
    committer: Committer,
    store: Arc<dyn Store>,
    endpoint: EndpointKey,
    _folder: TempDir,
}

impl Bench {
    async fn new(limits: CommitLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
        store::migrate(&url).await.unwrap();
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let store = store::open(&url, StoreOptions::new(sealer)).await.unwrap();
        let new = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application: DEFAULT_APPLICATION_KEY,
            id: PublicId::parse("e").unwrap(),
            url: DestinationUrl::parse("https://example.com/", &AddressPolicy::default()).unwrap(),
            name: None,
            event_types: None,
            headers: domain::endpoint::CustomHeaders::default(),
            enabled: true,
            settings: domain::endpoint::EndpointSettings::default(),
            secret: SigningSecret::from_slice(&[7; 32]).unwrap(),
            ed25519: store::secret::generate_ed25519().unwrap(),
        };
        let _ = store.create_endpoint(&new).await.unwrap();
        let committer = Committer::new(Arc::clone(&store), Waker::new(Arc::clone(&store)), limits);
        Self { committer, store, endpoint: new.key, _folder: folder }
    }

    fn submission(&self, key: Option<&str>, payload: &str) -> NewSubmission {
        NewSubmission::new(
            self.endpoint,
            key.map(|key| IdempotencyKey::parse(key.as_bytes()).unwrap()),
            None,
            ContentType::default(),
            Bytes::copy_from_slice(payload.as_bytes()),
        )
    }

    async fn stored(&self) -> usize {
        let filter = SubmissionFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: None,
            created: store::CreatedWindow::default(),
            page: store::Page { limit: u16::MAX, before: None },
        };
        self.store.list_submissions(filter).await.unwrap().len()
    }
}

#[tokio::test]
async fn a_thousand_at_once_take_far_fewer_commits_and_each_gets_its_verdict() {
    let bench = Bench::new(CommitLimits::default()).await;
    let all: Vec<_> = (0..1_000).map(|n| bench.submission(None, &n.to_string())).collect();
    let answers = join_all(all.iter().map(|one| bench.committer.accept(one.clone()))).await;
    for (submission, answer) in all.iter().zip(answers) {
        let Ok(Acceptance::Accepted(accepted)) = answer else { panic!("{answer:?}") };
        assert_eq!(accepted.submission, submission.id);
    }
    assert_eq!(bench.stored().await, 1_000);
    // The first is stored alone; the others in hundreds, or fewer where the runtime looked in between.
    assert!((11..=40).contains(&bench.committer.flushes()), "{}", bench.committer.flushes());
}

#[tokio::test]
async fn equal_keys_in_one_flush_each_get_their_own_verdict() {
    let bench = Bench::new(CommitLimits::default()).await;
    // The first flush holds `first`; what comes meanwhile shares the second.
    let first = bench.submission(None, "first");
    let [won, same, other] =
        [("k", "a"), ("k", "a"), ("k", "b")].map(|(k, p)| bench.submission(Some(k), p));
    let alone = bench.submission(Some("another"), "a");
    let answers =
        join_all([first, won.clone(), same, other, alone].map(|one| bench.committer.accept(one)))
            .await;
    assert_eq!(bench.committer.flushes(), 2);
    let mut answers = answers.into_iter().map(Result::unwrap);
    assert!(matches!(answers.next(), Some(Acceptance::Accepted(_))));
    assert!(matches!(answers.next(), Some(Acceptance::Accepted(a)) if a.submission == won.id));
    assert!(matches!(answers.next(), Some(Acceptance::Replayed(a)) if a.submission == won.id));
    assert_eq!(answers.next(), Some(Acceptance::Conflicted));
    assert!(matches!(answers.next(), Some(Acceptance::Accepted(_))));
    assert_eq!(bench.stored().await, 3);
}

#[tokio::test]
async fn a_full_queue_refuses_and_what_it_took_is_stored() {
    let limits = CommitLimits { queue_rows_max: 2, ..CommitLimits::default() };
    let bench = Bench::new(limits).await;
    let all = (0..5).map(|number| bench.submission(None, &number.to_string()));
    let answers = join_all(all.map(|one| bench.committer.accept(one))).await;
    let taken: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [true, true, true, false, false]);
    assert!(matches!(answers.last(), Some(Err(NotAccepted::QueueFull))));
    assert_eq!(bench.stored().await, 3);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cancel_the_flush_that_it_shares() {
    let bench = Bench::new(CommitLimits::default()).await;
    let [first, leaving, staying] = ["a", "b", "c"].map(|p| bench.submission(None, p));
    // Each is polled once, and dropped.
    assert!(bench.committer.accept(first).now_or_never().is_none());
    assert!(bench.committer.accept(leaving).now_or_never().is_none());
    assert!(bench.committer.accept(staying).await.is_ok());
    assert_eq!(bench.stored().await, 3);
}
