use integration_tests::postgres::TestPostgres;
use integration_tests::race::race;

#[tokio::test]
async fn databases_are_separate_and_can_be_made_at_once() -> anyhow::Result<()> {
    let postgres = TestPostgres::shared().await?;
    let databases = race(0..6, |_, _| postgres.database()).await?;
    for database in &databases {
        // Works only once in each.
        sqlx::query("create table mark ()").execute(&mut database.connect().await?).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_database_is_migrated() -> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut connection = database.connect().await?;
    // On a runtime of its own, like each of these tests: the server outlives the one that started it.
    let (name, migrated): (String, bool) = sqlx::query_as(
        "select current_database(), to_regclass('fencepost.deliveries') is not null",
    )
    .fetch_one(&mut connection)
    .await?;
    assert_eq!((name.as_str(), migrated), (database.name(), true));
    Ok(())
}
