//! One command after another.

use crate::shop::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_quantity_is_a_conflict_and_changes_nothing() -> anyhow::Result<()>
{
    let shop = Shop::without_receiver().await?;
    for (quantity, code, result) in
        [("2", 0, "accepted"), ("2", 0, "replayed"), ("1", 4, "conflict")]
    {
        let ended = shop.run(&["reserve", "k1", quantity]).await?;
        assert_eq!((ended.code, ended.result.as_str()), (code, result));
        assert_eq!(shop.counts().await?, (1, 1, 1, 1));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insufficient_result_is_not_remembered() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    let first = shop.run(&["reserve", "k1", "5"]).await?;
    assert_eq!((first.code, first.result.as_str()), (3, "insufficient"));
    assert_eq!(shop.counts().await?, (3, 0, 0, 0));
    assert_eq!(shop.run(&["restock", "2"]).await?.answer["available"], 5);
    assert_eq!(shop.run(&["reserve", "k1", "5"]).await?.result, "accepted");
    assert_eq!(shop.counts().await?, (0, 1, 1, 1));
    assert_eq!(shop.run(&["init"]).await?.result, "initialized");
    let shown = shop.run(&["show"]).await?.answer;
    assert_eq!(shown["stock"][0]["available"], 0, "a second init changes nothing");
    assert_eq!(shown["reservations"][0]["op_key"], "k1");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_acceptable_is_named_and_writes_nothing() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    for (arguments, field) in [
        (["reserve", "", "1", "--sku=widget"], "op_key"),
        (["reserve", "a b", "1", "--sku=widget"], "op_key"),
        (["reserve", "k1", "0", "--sku=widget"], "quantity"),
        (["reserve", "k1", "-1", "--sku=widget"], "quantity"),
        (["reserve", "k1", "9223372036854775808", "--sku=widget"], "quantity"),
        (["reserve", "k1", "1", "--sku=nothing"], "sku"),
        (["reserve", "k1", "1", "--sku="], "sku"),
    ] {
        let ended = shop.run(&arguments).await?;
        assert_eq!((ended.code, ended.result.as_str()), (2, "invalid"), "{arguments:?}");
        assert_eq!(ended.answer["field"], field, "{arguments:?}");
    }
    let overflow = shop.run(&["restock", "1000000000"]).await?;
    assert_eq!((overflow.code, overflow.result.as_str()), (2, "invalid"));
    assert_eq!(shop.counts().await?, (3, 0, 0, 0));
    Ok(())
}
