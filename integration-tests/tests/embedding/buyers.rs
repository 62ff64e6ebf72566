//! Buyers who come at the same instant.

use integration_tests::receiver::{Receiver, always};

use crate::shop::{LONG, Shop, all_ended, release};

/// Whoever comes to the reservations waits until it ends.
const ALL_RESERVATIONS: &str = "lock table reservations in exclusive mode";
/// Five are there for all to see, and three when it ends.
const STOCK_GOES_DOWN: &str = "update stock set available = 3";

fn told(code: i32, result: &str) -> (i32, String) {
    (code, result.to_owned())
}

/// Starts the commands, and lets them loose when all are ready.
async fn race(shop: &Shop, commands: &[Vec<String>]) -> anyhow::Result<Vec<(i32, String)>> {
    let barrier = shop.barrier(ALL_RESERVATIONS).await?;
    let mut children = Vec::new();
    for command in commands {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        children.push(shop.start(&arguments)?);
    }
    shop.until_waiting("insert_key", i64::try_from(commands.len())?).await?;
    release(barrier).await?;
    all_ended(children).await
}

fn reserve(key: &str, quantity: u32) -> Vec<String> {
    vec!["reserve".to_owned(), key.to_owned(), quantity.to_string()]
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_buyers_of_two_of_three_units_one_is_told_that_it_is_too_little()
-> anyhow::Result<()> {
    let receiver = Receiver::start(always(204))?;
    let shop = Shop::open(&receiver.url("/hook")).await?;
    let ended = race(&shop, &[reserve("ada", 2), reserve("bob", 2)]).await?;
    assert_eq!(ended, [told(0, "accepted"), told(3, "insufficient")]);
    assert_eq!(shop.counts().await?, (1, 1, 1, 1));
    let _worker = shop.worker().await?;
    let requests = receiver.wait_for_requests(1, LONG).await?;
    assert_eq!(requests.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn three_buyers_of_one_of_three_units_are_all_accepted() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    let ended = race(&shop, &[reserve("a", 1), reserve("b", 1), reserve("c", 1)]).await?;
    assert_eq!(ended, vec![told(0, "accepted"); 3]);
    assert_eq!(shop.counts().await?, (0, 3, 3, 3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_with_one_key_one_is_accepted_and_one_replayed() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    let ended = race(&shop, &[reserve("ada", 2), reserve("ada", 2)]).await?;
    assert_eq!(ended, [told(0, "accepted"), told(0, "replayed")]);
    assert_eq!(shop.counts().await?, (1, 1, 1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_with_one_key_and_other_quantities_one_is_a_conflict() -> anyhow::Result<()>
{
    let shop = Shop::without_receiver().await?;
    let ended = race(&shop, &[reserve("ada", 2), reserve("ada", 1)]).await?;
    assert_eq!(ended, [told(0, "accepted"), told(4, "conflict")]);
    let (_, reservations, submissions, deliveries) = shop.counts().await?;
    assert_eq!((reservations, submissions, deliveries), (1, 1, 1));
    Ok(())
}

/// The first has the key and waits for the stock, the second waits for the key. Then the first finds
/// too little and rolls back.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_first_holder_rolls_back_is_decided_by_the_second() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    shop.run(&["restock", "2"]).await?;
    let barrier = shop.barrier(STOCK_GOES_DOWN).await?;
    let first = shop.start(&["reserve", "ada", "5"])?;
    shop.until_waiting("take_stock", 1).await?;
    let second = shop.start(&["reserve", "ada", "1"])?;
    shop.until_waiting("insert_key", 1).await?;
    release(barrier).await?;
    let ended = all_ended(vec![first, second]).await?;
    assert_eq!(ended, [told(0, "accepted"), told(3, "insufficient")]);
    assert_eq!(shop.counts().await?, (2, 1, 1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_processes_on_one_sku_sell_what_there_is_and_no_more() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    shop.run(&["restock", "27"]).await?;
    let buyers: Vec<_> = (0..50).map(|number| reserve(&format!("buyer-{number}"), 1)).collect();
    let ended = race(&shop, &buyers).await?;
    let mut expected = vec![told(0, "accepted"); 30];
    expected.extend(vec![told(3, "insufficient"); 20]);
    assert_eq!(ended, expected);
    assert_eq!(shop.counts().await?, (0, 30, 30, 30));
    Ok(())
}
