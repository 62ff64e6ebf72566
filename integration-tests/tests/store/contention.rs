//! Many that write one SQLite file, each with a connection of its own, as operator commands do beside a
//! server.

use integration_tests::race::race;
use store::StoreError;
use store::submission::Acceptance;

use crate::fixture::{Fixture, submission};

const WRITERS: usize = 200;

/// The file has one writer at a time. Who does not get its turn within the tries is told so, and who is
/// told that it is stored is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_hundred_writers_each_is_stored_or_told_that_others_were_writing()
-> anyhow::Result<()> {
    let db = Fixture::sqlite().await?;
    let endpoint = db.endpoint().await?;
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        writers.push((db.another_store().await?, submission(&endpoint, None, b"{}")?));
    }
    let stored = race(writers, |_, (store, new)| async move {
        match store.accept(&[new]).await {
            Ok(answers) => {
                assert!(matches!(answers[..], [Acceptance::Accepted(_)]), "{answers:?}");
                Ok(1)
            }
            Err(StoreError::Contended { .. }) => Ok(0),
            Err(other) => Err(other.into()),
        }
    })
    .await?;
    let stored: i64 = stored.into_iter().sum();
    assert!(stored > 0, "none had its turn");
    assert_eq!(db.count("submissions").await?, stored);
    assert_eq!(db.count("deliveries").await?, stored);
    Ok(())
}
