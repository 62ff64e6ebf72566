//! Upkeep: a batch reads what it takes, and a row or two of each endpoint to find it.

use super::Large;

const BATCH: u32 = 100;
const ENDPOINTS: u32 = 2_040;

#[tokio::test]
async fn a_batch_of_upkeep_reads_its_batch_and_not_what_is_behind_it() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let (batch, retention) = (BATCH.to_string(), "600".to_owned());
    // More of each than a batch takes.
    let failed =
        "update fencepost.deliveries set due_at = now() - interval '1 day' where state = 3";
    let deleted = "update fencepost.endpoint_schedule set deleted = true
        where endpoint in (select key from fencepost.endpoints where id = 'endpoint-2')";
    let closed = "update fencepost.endpoint_schedule set enabled = false
        where endpoint in (select key from fencepost.endpoints where id = 'endpoint-2')";
    let called_off = "update fencepost.deliveries set cancel_requested_at = now() where state = 2";
    for (before, name, per_endpoint, more) in [
        (failed, "postgres::maintenance::expire_failed", 0, None),
        ("", "postgres::maintenance::expire_keys", 0, None),
        ("", "postgres::rate_limit::sweep", 0, None),
        (deleted, "postgres::maintenance::cancel_deleted", 2, None),
        (called_off, "postgres::maintenance::cancel_requested", 2, None),
        (closed, "postgres::maintenance::fail_held", 2, Some(&retention)),
    ] {
        let values: Vec<String> = [Some(&batch), more].into_iter().flatten().cloned().collect();
        let plan = large.explain_after(before, name, &values).await?;
        // What is taken is read to lock it and to change it, and its schedule row twice as well.
        plan.assert_reads_at_most(4 * BATCH + per_endpoint * ENDPOINTS);
        let taken = plan.nodes().iter().any(|node| node.number("Actual Rows") >= f64::from(BATCH));
        assert!(taken, "it took no full batch: {plan}");
    }
    Ok(())
}

/// Each schedule row once to find those that failed for too long, and what is disabled a few times.
#[tokio::test]
async fn what_failed_for_too_long_is_found_by_a_look_at_each_endpoint() -> anyhow::Result<()> {
    let mut large = Large::open().await?;
    let failing = "update fencepost.endpoint_schedule
        set failing_since = now() - interval '6 days', failed_at = now()";
    let values = [BATCH.to_string(), "432000".to_owned(), "345600".to_owned(), "3".to_owned()];
    let name = "postgres::maintenance::disable_failing";
    let plan = large.explain_after(failing, name, &values).await?;
    plan.assert_reads_at_most(6 * BATCH + ENDPOINTS);
    let disabled = plan.nodes().iter().any(|node| node.number("Actual Rows") >= f64::from(BATCH));
    assert!(disabled, "it took no full batch: {plan}");
    Ok(())
}
