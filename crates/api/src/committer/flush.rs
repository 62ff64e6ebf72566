//! One flush: a batch is stored in one transaction, and each of its submissions is answered.

use std::sync::Arc;
use std::time::Duration;

use process::metrics;
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreError};
use tokio::time::Instant;

use super::{NotAccepted, Waiting};
use crate::Waker;

/// How often a flush is tried while the database gives no answer.
const TRIES: u32 = 3;
/// The wait after the first try; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// No further try begins later than this. Whoever waited longer for a connection knows enough.
const TRIED_WITHIN: Duration = Duration::from_secs(3);

pub(super) async fn flush(store: Arc<dyn Store>, waker: Waker, batch: Vec<Waiting>) {
    let (submissions, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.submission, waiting.answer)).unzip();
    let began = Instant::now();
    let accepted = accept(store.as_ref(), &submissions).await;
    metrics::ACCEPT_SECONDS.took(began.elapsed());
    metrics::ACCEPT_BATCH.sized(submissions.len());
    match accepted {
        Ok(acceptances) => {
            let of_each = submissions.iter().zip(&acceptances);
            let mut due = of_each.filter(|(_, acceptance)| is_stored(acceptance)).peekable();
            if due.peek().is_some() {
                waker.wake(due.map(|(submission, _)| submission.endpoint));
            }
            for (answer, acceptance) in answers.into_iter().zip(acceptances) {
                count(&acceptance);
                // Whoever went away is not told.
                let _ = answer.send(Ok(acceptance));
            }
        }
        // One of them is bad. The others are not, and get their verdict.
        Err(error) if !error.is_transient() && submissions.len() > 1 => {
            tracing::warn!(error = error.chain(), "a flush was refused; its rows go singly");
            for (answer, submission) in answers.into_iter().zip(&submissions) {
                let alone = accept(store.as_ref(), std::slice::from_ref(submission)).await;
                let alone = alone.map(|answers| answers.into_iter().next());
                if matches!(&alone, Ok(Some(acceptance)) if is_stored(acceptance)) {
                    waker.wake([submission.endpoint]);
                }
                match &alone {
                    Ok(Some(acceptance)) => count(acceptance),
                    Ok(None) | Err(_) => metrics::SUBMISSIONS.add_with("result", "failed", 1),
                }
                let _ = answer.send(match alone {
                    Ok(Some(acceptance)) => Ok(acceptance),
                    Ok(None) => Err(NotAccepted::Lost),
                    Err(error) => Err(NotAccepted::Failed(Arc::new(error))),
                });
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            metrics::SUBMISSIONS.add_with("result", "failed", answers.len() as u64);
            for answer in answers {
                let _ = answer.send(Err(NotAccepted::Failed(Arc::clone(&error))));
            }
        }
    }
}

fn count(acceptance: &Acceptance) {
    let result = match acceptance {
        Acceptance::Accepted(_) => "accepted",
        Acceptance::Replayed(_) => "replayed",
        Acceptance::Conflicted => "conflicted",
        Acceptance::KeyInProgress => "key_in_progress",
        Acceptance::EndpointMissing => "endpoint_missing",
    };
    metrics::SUBMISSIONS.add_with("result", result, 1);
}

/// Whether something became due.
fn is_stored(acceptance: &Acceptance) -> bool {
    matches!(acceptance, Acceptance::Accepted(_))
}

/// The ids stay the same, so a try that was committed and whose answer was lost is recognised.
async fn accept(
    store: &dyn Store,
    submissions: &[NewSubmission],
) -> Result<Vec<Acceptance>, StoreError> {
    let began = Instant::now();
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        match store.accept(submissions).await {
            Err(error) if error.is_transient() && began.elapsed() < TRIED_WITHIN => {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            answer => return answer,
        }
    }
    store.accept(submissions).await
}
