//! What workers do again and again: find, claim, record, give back.

use uuid::Uuid;

use super::plan::Plan;
use super::{Large, array, quoted};

/// Endpoint 2 with 25,000 pending, and nineteen others.
const ENDPOINTS: std::ops::Range<u32> = 2..22;

impl Large {
    async fn claim(&mut self, sweep: bool) -> anyhow::Result<Plan> {
        const HOUR: u64 = 3_600_000;
        let now = store::new_id::unix_millis_now();
        let endpoints: Vec<u32> = ENDPOINTS.collect();
        let values = [
            array(self.endpoints(&endpoints).await?),
            "5".to_owned(),
            "1000".to_owned(),
            quoted("a worker"),
            quoted(Uuid::max()),
            "2".to_owned(),
            sweep.to_string(),
            "9".to_owned(),
            "86400".to_owned(),
            "2592000".to_owned(),
            "8192".to_owned(),
            quoted(store::new_id::uuid_of_millis(now - 12 * HOUR)),
            quoted(store::new_id::uuid_of_millis(now + 12 * HOUR)),
        ];
        self.explain("postgres::delivery::claim_due", &values).await
    }

    /// Endpoints, ids and claims of deliveries that are processing.
    async fn processing(&mut self) -> anyhow::Result<[Vec<Uuid>; 3]> {
        let text = "select endpoint, id, claim_token from fencepost.deliveries
            where state = 2 order by id limit 100";
        let held: Vec<(Uuid, Uuid, Uuid)> =
            sqlx::query_as(text).fetch_all(&mut self.session).await?;
        let (endpoints, rest): (Vec<_>, Vec<_>) =
            held.into_iter().map(|(endpoint, id, token)| (endpoint, (id, token))).unzip();
        let (ids, tokens) = rest.into_iter().unzip();
        Ok([endpoints, ids, tokens])
    }
}

/// Both scans are bounded on both sides by their index, in its order: nothing is sorted, and a lock is
/// taken of each row before it counts for the limit.
#[tokio::test]
async fn both_scans_of_a_claim_are_bounded_by_their_index_and_stop_at_their_limit()
-> anyhow::Result<()> {
    let mut large = Large::open().await?;
    for sweep in [false, true] {
        let plan = large.claim(sweep).await?;
        for (index, column) in
            [("deliveries_due", "due_at"), ("deliveries_lease", "claim_expires_at")]
        {
            let scan = plan.scan_of(index);
            for bound in ["endpoint = ", &format!("{column} >= "), &format!("{column} <= ")] {
                assert!(scan.text("Index Cond").contains(bound), "{bound}: {plan}");
            }
            assert_eq!(scan.above()[..2], ["LockRows", "Limit"], "{plan}");
        }
        // Candidates, then the rows themselves, their payloads, and their schedule rows a few times over.
        plan.assert_reads_at_most(100 + 100 + 100 + 5 * 20);
        // A day is from midnight to midnight, so twelve hours about now are of two.
        assert!(plan.days_of("submissions_").len() <= 2, "{plan}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_due_is_found_by_a_look_at_each_endpoint() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    for sweep in [false, true] {
        let values = ["null".to_owned(), "100".to_owned(), sweep.to_string()];
        let plan = large.explain("postgres::delivery::find_due_endpoints", &values).await?;
        // 2,040 schedule rows at most, and one delivery or none of each.
        plan.assert_reads_at_most(2 * 2_040);
        for (index, column) in
            [("deliveries_due", "due_at"), ("deliveries_lease", "claim_expires_at")]
        {
            let scan = plan.scan_of(index);
            for bound in ["endpoint = ", &format!("{column} >= "), &format!("{column} <= ")] {
                assert!(scan.text("Index Cond").contains(bound), "{bound}: {plan}");
            }
        }
    }
    Ok(())
}

/// What the metrics tell of the backlog costs a short piece of an index for each endpoint.
#[tokio::test]
async fn the_backlog_is_counted_up_to_its_bound_and_not_behind_it() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let plan = large.explain("postgres::delivery::read_backlog", &["100".to_owned()]).await?;
    // 2,040 schedule rows, once more to count circuits, and up to a hundred deliveries of each of the twenty that have some; one of
    // these has 25,000.
    plan.assert_reads_at_most(3 * 2_040 + 100 * 40);
    let scan = plan.scan_of("deliveries_due");
    for bound in ["endpoint = ", "due_at >= ", "due_at <= "] {
        assert!(scan.text("Index Cond").contains(bound), "{bound}: {plan}");
    }
    Ok(())
}

#[tokio::test]
async fn a_record_of_a_hundred_reads_these_and_their_schedule_rows() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let [endpoints, ids, tokens] = large.processing().await?;
    let [lowest, highest] = range(&ids);
    let all = |value: &'static str| array(vec![value; endpoints.len()]);
    for verdict in ["1", "2", "3"] {
        let values = [
            array(&endpoints),
            array(&ids),
            array(&tokens),
            all(verdict),
            all("60"),
            all(if verdict == "3" { "1" } else { "null" }),
            all("now"),
            all("5"),
            all("1"),
            all("200"),
            all("worker"),
            all("https://receiver.example.com/"),
            all("null"),
            all("null"),
            all("\\\\x00"),
            all("false"),
            "2592000".to_owned(),
            all("1"),
            all(if verdict == "1" { "1" } else { "2" }),
            "300".to_owned(),
            "10".to_owned(),
            "10".to_owned(),
            "70".to_owned(),
            "30".to_owned(),
            "600".to_owned(),
            lowest.clone(),
            highest.clone(),
        ];
        let plan =
            large.explain("postgres::delivery::record_attempts::record_live", &values).await?;
        // Each delivery to lock it and to change it, and the same for its schedule row.
        plan.assert_reads_at_most(4 * 100);
        assert!(plan.days_of("attempts_").len() <= 2, "{plan}");
    }
    Ok(())
}

/// The partitions of other days are left out as the rows come, also under a generic plan.
#[tokio::test]
async fn a_late_record_of_a_settled_delivery_looks_into_its_own_day_only() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let text = "select endpoint, id from fencepost.settled_deliveries order by id limit 3";
    let settled: Vec<(Uuid, Uuid)> = sqlx::query_as(text).fetch_all(&mut large.session).await?;
    let all = |value: &'static str| array([value; 3]);
    let ids: Vec<Uuid> = settled.iter().map(|(_, id)| *id).collect();
    let [lowest, highest] = range(&ids);
    let values = [
        array(settled.iter().map(|(endpoint, _)| endpoint)),
        array(&ids),
        array([Uuid::max(); 3]),
        all("now"),
        all("5"),
        all("1"),
        all("200"),
        all("worker"),
        all("https://receiver.example.com/"),
        all("null"),
        all("null"),
        all("\\\\x00"),
        all("false"),
        lowest,
        highest,
    ];
    let plan =
        large.explain("postgres::delivery::record_attempts::record_settled", &values).await?;
    plan.assert_reads_at_most(3 + 3);
    for table in ["settled_deliveries_", "attempts_"] {
        assert_eq!(plan.days_read_of(table).len(), 1, "{plan}");
    }
    assert_eq!(plan.days_of("attempts_").len(), 1, "{plan}");
    Ok(())
}

#[tokio::test]
async fn a_give_back_reads_what_it_gives_back() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let [endpoints, ids, tokens] = large.processing().await?;
    let values = [array(&endpoints), array(&ids), array(&tokens)];
    let plan = large.explain("postgres::delivery::give_back", &values).await?;
    plan.assert_reads_at_most(4 * 100);
    Ok(())
}

/// Payloads are looked up one by one, in the days that they are of.
#[tokio::test]
async fn payloads_are_read_one_by_one_from_their_own_days() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let text = "(select endpoint, id from fencepost.submissions order by id limit 1) union all
        (select endpoint, id from fencepost.submissions order by id desc limit 1)";
    let some: Vec<(Uuid, Uuid)> = sqlx::query_as(text).fetch_all(&mut large.session).await?;
    let ids: Vec<Uuid> = some.iter().map(|(_, id)| *id).collect();
    let [lowest, highest] = range(&ids);
    let values = [array(some.iter().map(|(endpoint, _)| endpoint)), array(&ids), lowest, highest];
    let plan = large.explain("postgres::submission::read_payloads", &values).await?;
    plan.assert_reads_at_most(2);
    // They lie a day apart, and half an hour: on one day, two or three, by the time of day.
    assert!(plan.days_of("submissions_").len() <= 3, "{plan}");
    Ok(())
}

/// Storing opens the day of what is stored, in case that it was stored before.
#[tokio::test]
async fn storing_opens_no_day_but_its_own() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let endpoints = large.endpoints(&[2, 3]).await?;
    let ids = [(); 2].map(|()| store::new_id::uuid_now());
    let [lowest, highest] = range(&ids);
    let all = |value: &'static str| array([value; 2]);
    let values = [
        array(endpoints),
        array(ids),
        array(ids),
        array(ids),
        array(["a", "b"]),
        all("\\\\x00"),
        all("null"),
        all("application/json"),
        all("2"),
        all("\\\\x7b7d"),
        "86400".to_owned(),
        "null".to_owned(),
        lowest,
        highest,
    ];
    let plan = large.explain("postgres::submission::accept::insert_new", &values).await?;
    // The endpoints.
    plan.assert_reads_at_most(2);
    assert!(plan.days_of("submissions_").len() <= 2, "{plan}");
    Ok(())
}

/// The lowest and the highest, as they stand in a statement.
fn range(ids: &[Uuid]) -> [String; 2] {
    [ids.iter().min(), ids.iter().max()].map(|id| quoted(id.copied().unwrap_or_default()))
}
