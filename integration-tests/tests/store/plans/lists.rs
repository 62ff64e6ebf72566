//! Lists: a page is read from the ends of indexes.

use uuid::Uuid;

use super::{Large, quoted};

const PAGE: u32 = 51;

/// Of the application `default`.
const ENDPOINTS: u32 = 40;

/// What a list may read of so many endpoints: each of them, and a page of its rows from either table,
/// twice over for what is passed on the way.
fn rows_max(endpoints: u32) -> u32 {
    endpoints * (1 + 2 * 2 * PAGE)
}

/// Bounds of ids.
#[derive(Clone, Copy)]
struct Window {
    from: Uuid,
    below: Uuid,
    empty: bool,
}

impl Large {
    /// All ids, those of the first half of the day, and an hour that has none.
    async fn windows(&mut self) -> anyhow::Result<[Window; 3]> {
        let text = "select
            (select id from fencepost.submissions order by id offset 40000 limit 1),
            (select id from fencepost.submissions order by id offset 49999 limit 1),
            (select id from fencepost.submissions order by id offset 50000 limit 1)";
        let (middle, last, first): (Uuid, Uuid, Uuid) =
            sqlx::query_as(text).fetch_one(&mut self.session).await?;
        let after_last = Uuid::from_u128(last.as_u128() + 1);
        Ok([
            Window { from: Uuid::nil(), below: Uuid::max(), empty: false },
            Window { from: Uuid::nil(), below: middle, empty: false },
            Window { from: after_last, below: first, empty: true },
        ])
    }

    /// Bounds of the keys of endpoints: all of `default`, the two that have most, and one that has few.
    async fn choices(&mut self) -> anyhow::Result<Vec<(Uuid, Uuid, u32)>> {
        let mut choices = vec![(Uuid::nil(), Uuid::max(), ENDPOINTS)];
        for key in self.endpoints(&[1, 2, 3]).await? {
            choices.push((key, key, 1));
        }
        Ok(choices)
    }
}

#[tokio::test]
async fn a_page_of_deliveries_costs_a_page_whatever_it_is_narrowed_to() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let application = quoted(large.application("default").await?);
    let (windows, choices) = (large.windows().await?, large.choices().await?);
    for (lowest, highest, endpoints) in choices {
        for state in [None, Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)] {
            for window in windows {
                let values = [
                    application.clone(),
                    quoted(lowest),
                    state.map_or("null".to_owned(), |state| state.to_string()),
                    quoted(window.from),
                    quoted(window.below),
                    PAGE.to_string(),
                    quoted(highest),
                ];
                let plan = large.explain("postgres::delivery::list", &values).await?;
                // What is processing is read whole, and is at most the endpoints' caps: here a hundred.
                let processing = if state == Some(2) { 100 } else { 0 };
                let rows = if window.empty { endpoints } else { rows_max(endpoints) };
                plan.assert_reads_at_most(rows + processing);
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_page_of_submissions_costs_a_page() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let application = quoted(large.application("default").await?);
    let (windows, choices) = (large.windows().await?, large.choices().await?);
    for (lowest, highest, endpoints) in choices {
        for window in windows {
            let values = [
                application.clone(),
                quoted(lowest),
                quoted(window.from),
                quoted(window.below),
                PAGE.to_string(),
                quoted(highest),
            ];
            let plan = large.explain("postgres::submission::list", &values).await?;
            let rows = if window.empty { endpoints } else { rows_max(endpoints) };
            plan.assert_reads_at_most(rows);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_page_of_endpoints_keys_or_applications_costs_a_page() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let (default, neighbour) =
        (large.application("default").await?, large.application("neighbour").await?);
    let (page, first, end) = (PAGE.to_string(), quoted(Uuid::nil()), quoted(Uuid::max()));
    for application in [default, neighbour] {
        // With each endpoint its schedule row, and with each key its application.
        let values = [quoted(application), end.clone(), page.clone()];
        large.explain("postgres::endpoint::list", &values).await?.assert_reads_at_most(2 * PAGE);
        large.explain("postgres::api_key::list", &values).await?.assert_reads_at_most(2 * PAGE);
        let values = [quoted(application), quoted(application), end.clone(), page.clone()];
        large.explain("postgres::application::list", &values).await?.assert_reads_at_most(1);
    }
    let values = ["null".to_owned(), end.clone(), page.clone()];
    large.explain("postgres::api_key::list", &values).await?.assert_reads_at_most(2 * PAGE);
    let values = [first, end.clone(), end, page];
    large.explain("postgres::application::list", &values).await?.assert_reads_at_most(PAGE);
    Ok(())
}

#[tokio::test]
async fn one_delivery_its_attempts_and_its_submission_are_found_in_the_partition_of_their_day()
-> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let application = quoted(large.application("default").await?);
    let text = "select endpoint, id from fencepost.settled_deliveries d
        where endpoint in (select key from fencepost.endpoints where id = 'endpoint-1') limit 1";
    let (endpoint, id): (Uuid, Uuid) = sqlx::query_as(text).fetch_one(&mut large.session).await?;
    let values = [quoted(endpoint), quoted(id), "1".to_owned()];
    large.explain("postgres::delivery::list_attempts", &values).await?.assert_reads_at_most(1);
    let values = [application, quoted(id)];
    large.explain("postgres::delivery::find", &values).await?.assert_reads_at_most(2);
    large.explain("postgres::submission::find", &values).await?.assert_reads_at_most(2);
    Ok(())
}
