//! What opens a circuit, and what does not.

use super::*;

on_both_stores! {
    failures_in_a_row_open_it_and_the_deliveries_keep_their_cycle,
    a_share_of_failures_opens_it,
    a_success_ends_the_row_and_opens_nothing,
    less_than_the_share_opens_nothing,
}

async fn failures_in_a_row_open_it_and_the_deliveries_keep_their_cycle(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, IN_A_ROW_MAX + 5).await?;
    let claims = claim(&db, &endpoint).await?;
    let waiting = db.submit(&endpoint).await?;
    let (first, last) = claims.split_at(usize::try_from(IN_A_ROW_MAX)? - 1);
    record(&db, first, retry(NOW)).await?;
    assert!(is_closed(&db, &endpoint).await?, "one more is needed");
    record(&db, &last[..1], retry(NOW)).await?;
    let opened = opening(&db, &endpoint).await?;
    assert_eq!((opened.cause, opened.times, opened.probe), (OpenCause::InARow, 1, None));
    assert_eq!(opened.until, opened.since + OPEN_FIRST);
    assert!(!life(&db, &endpoint).await?.half_open);

    let unsent: Vec<HeldClaim> = last[1..].to_vec();
    db.store.give_back(&unsent).await?;
    assert!(db.due_endpoints(true).await?.is_empty(), "nothing is due there");
    assert_eq!(db.store.read_backlog().await?.due, 0);
    let (_, batch) = db.claim(&[&endpoint], 100).await?;
    assert!(batch.claimed.is_empty() && batch.set_aside.is_empty(), "{batch:?}");
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Closed)]);
    let row = db.row(waiting).await?;
    assert_eq!((row.state, row.attempts, row.cycle_attempts), (1, 0, 0));
    Ok(())
}

async fn a_share_of_failures_opens_it(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 10).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..3], Verdict::Delivered).await?;
    record(&db, &claims[3..9], retry(NOW)).await?;
    assert!(is_closed(&db, &endpoint).await?, "nine results are too few");
    record(&db, &claims[9..], retry(NOW)).await?;
    assert_eq!(opening(&db, &endpoint).await?.cause, OpenCause::Share);

    // The same with the window over before the tenth.
    let endpoint = db.endpoint().await?;
    submit(&db, &endpoint, 10).await?;
    let claims = claim(&db, &endpoint).await?;
    record(&db, &claims[..3], Verdict::Delivered).await?;
    record(&db, &claims[3..9], retry(NOW)).await?;
    db.age_schedule("window_since", &endpoint, Duration::from_mins(5)).await?;
    record(&db, &claims[9..], retry(NOW)).await?;
    let Circuit::Closed(counts) = life(&db, &endpoint).await?.circuit else { bail!("open") };
    assert_eq!((counts.succeeded, counts.failed, counts.in_a_row), (0, 1, 7));
    Ok(())
}

async fn a_success_ends_the_row_and_opens_nothing(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for (count, verdict) in
        [(20, Verdict::Delivered), (9, LATER), (1, Verdict::Delivered), (9, LATER)]
    {
        results(&db, &endpoint, count, verdict).await?;
    }
    assert!(is_closed(&db, &endpoint).await?, "those are two rows of nine");
    results(&db, &endpoint, 1, LATER).await?;
    assert_eq!(opening(&db, &endpoint).await?.cause, OpenCause::InARow);

    let endpoint = db.endpoint().await?;
    for (count, verdict) in [(2, Verdict::Delivered), (7, LATER), (1, Verdict::Delivered)] {
        results(&db, &endpoint, count, verdict).await?;
    }
    assert!(is_closed(&db, &endpoint).await?, "seven of ten failed, and the tenth did not");
    results(&db, &endpoint, 1, LATER).await?;
    assert_eq!(opening(&db, &endpoint).await?.cause, OpenCause::Share);
    Ok(())
}

async fn less_than_the_share_opens_nothing(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for (count, verdict) in
        [(4, Verdict::Delivered), (6, LATER), (1, Verdict::Delivered), (5, LATER)]
    {
        results(&db, &endpoint, count, verdict).await?;
    }
    assert!(is_closed(&db, &endpoint).await?, "11 of 16 are 69 %");
    results(&db, &endpoint, 1, LATER).await?;
    assert_eq!(opening(&db, &endpoint).await?.cause, OpenCause::Share, "12 of 17 are 71 %");
    Ok(())
}
