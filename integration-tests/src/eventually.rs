use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep, timeout_at};

/// Short beside anything that is waited for here, long beside the cost of asking.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until the answer is `Ok`, at most for `within`; what the last refusal said is the failure's cause.
///
/// For conditions that no signal announces (a row that another process writes, a server that comes
/// up). It is the only place of the tests that polls.
///
/// ```no_run
/// # async fn example() -> anyhow::Result<()> {
/// # async fn count_delivered() -> anyhow::Result<u32> { Ok(5) }
/// # use std::time::Duration;
/// integration_tests::eventually("every delivery is settled", Duration::from_secs(10), async || {
///     let delivered = count_delivered().await?;
///     anyhow::ensure!(delivered == 5, "{delivered} of 5 are delivered");
///     Ok(())
/// })
/// .await
/// # }
/// ```
pub async fn eventually<T>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + within;
    let mut refusal = anyhow::anyhow!("no answer at all");
    while Instant::now() < deadline {
        match timeout_at(deadline, ask()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => refusal = error,
            // The last question took too long: what the one before it said is the better cause.
            Err(_) => break,
        }
        sleep(PAUSE).await;
    }
    Err(refusal).with_context(|| format!("not within {within:?}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);
    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn the_first_answer_is_given() {
        let mut asked = 0;
        let answer = eventually("the third time", LONG, async || {
            asked += 1;
            anyhow::ensure!(asked == 3);
            Ok(asked)
        })
        .await;
        assert_eq!(answer.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_last_refusal_is_the_cause() {
        let error = eventually("never", SHORT, async || -> anyhow::Result<()> {
            anyhow::bail!("three of four")
        })
        .await
        .unwrap_err();
        assert_eq!(format!("{error:#}"), "not within 50ms: never: three of four");
    }

    #[tokio::test]
    async fn a_question_without_an_answer_ends_at_the_deadline() {
        let asked = eventually("a hang", SHORT, std::future::pending::<anyhow::Result<()>>);
        assert!(asked.await.is_err());
    }
}
