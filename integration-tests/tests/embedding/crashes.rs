//! Processes that end at the worst moment.

use integration_tests::receiver::{Receiver, always};

use crate::shop::{LONG, Shop};

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_the_commit_is_answered_as_replayed_and_told_once() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(204))?;
    let shop = Shop::open(&receiver.url("/hook")).await?;
    let crashed = shop.run(&["reserve", "ada", "2", "--crash-after-commit"]).await?;
    assert_eq!((crashed.code, crashed.result.as_str()), (23, ""), "nobody was told");
    let again = shop.run(&["reserve", "ada", "2"]).await?;
    assert_eq!((again.code, again.result.as_str()), (0, "replayed"));
    assert_eq!(shop.counts().await?, (1, 1, 1, 1));
    let _worker = shop.worker().await?;
    receiver.wait_for_webhook_ids(1, LONG).await?;
    // The next one is told later than a second copy of the first would be.
    assert_eq!(shop.run(&["reserve", "bob", "1"]).await?.code, 0);
    assert_eq!(receiver.wait_for_webhook_ids(2, LONG).await?.len(), 2);
    let bodies: Vec<_> = receiver.requests().iter().map(|it| it.body.to_vec()).collect();
    let expected: [&[u8]; 2] = [
        br#"{"op_key":"ada","sku":"widget","quantity":2}"#,
        br#"{"op_key":"bob","sku":"widget","quantity":1}"#,
    ];
    assert_eq!(bodies, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_commit_leaves_nothing_and_nothing_is_told() -> anyhow::Result<()> {
    let receiver = Receiver::start(always(204))?;
    let shop = Shop::open(&receiver.url("/hook")).await?;
    let _worker = shop.worker().await?;
    let crashed = shop.run(&["reserve", "ada", "2", "--crash-before-commit"]).await?;
    assert_eq!(crashed.code, 23);
    assert_eq!(shop.counts().await?, (3, 0, 0, 0));
    let insufficient = shop.run(&["reserve", "ada", "4"]).await?;
    assert_eq!(insufficient.result, "insufficient", "a rolled back one is not told either");
    let again = shop.run(&["reserve", "ada", "2"]).await?;
    assert_eq!((again.code, again.result.as_str()), (0, "accepted"));
    receiver.wait_for_requests(1, LONG).await?;
    assert_eq!(receiver.requests().len(), 1);
    assert_eq!(shop.counts().await?, (1, 1, 1, 1));
    Ok(())
}
