//! The limiter on a real store.

use std::time::Duration;

use store::StoreOptions;
use store::sealing::{Sealer, SealingKey};
use tempfile::TempDir;

use super::*;

async fn store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
    store::migrate(&url).await.unwrap();
    let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
    (store::open(&url, StoreOptions::new(sealer)).await.unwrap(), folder)
}

fn limit(units: u32) -> RateLimit {
    RateLimit::new(units, Duration::from_hours(24)).unwrap()
}

async fn used(store: &Arc<dyn Store>, subject: &str) -> u32 {
    let subject = subject.to_owned();
    let asked = Reservation { limiter: Limiter::Source, subject, limit: limit(1), units: 1 };
    store.reserve(&[asked]).await.unwrap()[0].used - 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_exactly_the_limit_is_granted() {
    let (store, _folder) = store().await;
    let limiter = RateLimiter::new(Arc::clone(&store), 1_000);
    let spend = || {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.spend(Limiter::Source, "a".to_owned(), limit(60)).await })
    };
    let spending: Vec<_> = (0..200).map(|_| spend()).collect();
    let mut granted = 0;
    for one in spending {
        match one.await.unwrap().unwrap() {
            Spent::Granted => granted += 1,
            Spent::Denied { until } => assert!(until > Instant::now()),
        }
    }
    assert_eq!(granted, 60);
    assert!((60..=200).contains(&used(&store, "a").await), "a unit for each that was granted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_spent_limit_denies_without_asking() {
    let (store, _folder) = store().await;
    let limiter = RateLimiter::new(Arc::clone(&store), 1_000);
    let spend = || limiter.spend(Limiter::Source, "a".to_owned(), limit(2));
    for _ in 0..2 {
        assert_eq!(spend().await.unwrap(), Spent::Granted);
    }
    for _ in 0..10 {
        assert!(matches!(spend().await.unwrap(), Spent::Denied { .. }));
    }
    assert_eq!(used(&store, "a").await, 2, "the database has answered already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_caller_that_goes_away_leaves_the_others_their_answer() {
    let (store, _folder) = store().await;
    let limiter = RateLimiter::new(store, 1_000);
    for _ in 0..20 {
        let first = limiter.clone();
        let first = tokio::spawn(async move {
            first.spend(Limiter::Source, "a".to_owned(), limit(1_000)).await.map(drop)
        });
        tokio::task::yield_now().await;
        first.abort();
        let second = limiter.spend(Limiter::Source, "a".to_owned(), limit(1_000)).await;
        assert_eq!(second.unwrap(), Spent::Granted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_nobody_is_let_through() {
    let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
    let options =
        StoreOptions { acquire_timeout: Duration::from_millis(100), ..StoreOptions::new(sealer) };
    let store = store::open("postgres://nobody@127.0.0.1:1/none", options).await.unwrap();
    let limiter = RateLimiter::new(store, 1_000);
    let spent = limiter.spend(Limiter::Source, "a".to_owned(), limit(1)).await;
    assert!(matches!(spent, Err(NotReserved::Failed(error)) if error.is_transient()));
}
