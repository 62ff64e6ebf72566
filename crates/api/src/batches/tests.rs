//! Questions to a store that the test holds back.

use tokio::sync::{Semaphore, mpsc};

use super::*;

/// Look-ups of numbers.
type Numbers = Batches<u32, Option<u32>>;

/// Statements as they came, each held until it may end. Every number is found and stands for itself,
/// but zero, which cannot be read.
fn held() -> (Numbers, mpsc::UnboundedReceiver<Vec<u32>>, Arc<Semaphore>) {
    let (began, statements) = mpsc::unbounded_channel();
    let may_end = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&may_end);
    let lookups = Batches::of_look_ups(move |keys: Vec<u32>| {
        let (began, gate) = (began.clone(), Arc::clone(&gate));
        async move {
            began.send(keys.clone()).unwrap();
            gate.acquire().await.unwrap().forget();
            if keys.contains(&0) {
                return Err(StoreError::Corrupt {
                    table: "numbers",
                    column: "number",
                    row: "0".to_owned(),
                });
            }
            Ok(keys.into_iter().map(|key| (key < 100).then_some(key)).collect())
        }
    });
    (lookups, statements, may_end)
}

fn ask(
    lookups: &Numbers,
    key: u32,
) -> impl Future<Output = Result<Option<u32>, NotAnswered>> + Send + 'static + use<> {
    let lookups = Batches { shared: Arc::clone(&lookups.shared) };
    let asked = tokio::spawn(async move { lookups.ask(key).await });
    async move { asked.await.unwrap() }
}

#[tokio::test]
async fn what_is_asked_during_a_statement_is_asked_by_a_later_one_and_equal_questions_share_it() {
    let (lookups, mut statements, may_end) = held();
    let mut asked = vec![ask(&lookups, 1)];
    assert_eq!(statements.recv().await, Some(vec![1]), "alone, and at once");
    for key in [1, 2, 3, 2, 200] {
        asked.push(ask(&lookups, key));
        tokio::task::yield_now().await;
    }
    while lookups.shared.open().waiting.len() < 5 {
        tokio::task::yield_now().await;
    }
    may_end.add_permits(1);
    assert_eq!(statements.recv().await, Some(vec![1, 2, 3, 200]), "never by an earlier statement");
    may_end.add_permits(1);
    let mut answers = Vec::new();
    for one in asked {
        answers.push(one.await.unwrap());
    }
    assert_eq!(answers, [Some(1), Some(1), Some(2), Some(3), Some(2), None]);
    while lookups.shared.open().statements > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_costs_the_others_nothing() {
    let (lookups, mut statements, may_end) = held();
    let first = ask(&lookups, 1);
    assert!(statements.recv().await.is_some());
    let asked = [ask(&lookups, 0), ask(&lookups, 5)];
    while lookups.shared.open().waiting.len() < 2 {
        tokio::task::yield_now().await;
    }
    may_end.add_permits(100);
    assert_eq!(first.await.unwrap(), Some(1));
    let [bad, good] = asked;
    assert!(matches!(bad.await, Err(NotAnswered::Failed(_))));
    assert_eq!(good.await.unwrap(), Some(5));
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_others_their_answer() {
    let (lookups, mut statements, may_end) = held();
    let gone = {
        let lookups = Batches { shared: Arc::clone(&lookups.shared) };
        tokio::spawn(async move { lookups.ask(1).await.map(drop) })
    };
    assert!(statements.recv().await.is_some());
    let stays = ask(&lookups, 2);
    gone.abort();
    may_end.add_permits(10);
    assert_eq!(stays.await.unwrap(), Some(2));
}

#[tokio::test]
async fn what_is_charged_is_asked_as_often_as_it_was_asked_for() {
    let batches = Batches::new(|asked: Vec<u32>| async move {
        let count = asked.len();
        Ok((0..count).map(|place| (place, count)).collect())
    });
    let ask = || batches.ask(7);
    let answers = tokio::join!(ask(), ask(), ask());
    let answers = [answers.0, answers.1, answers.2].map(Result::unwrap);
    assert_eq!(answers, [(0, 3), (1, 3), (2, 3)], "each has an answer of its own");
}
