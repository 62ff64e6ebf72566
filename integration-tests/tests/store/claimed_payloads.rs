//! Short payloads come with their claim (PostgreSQL).

use store::delivery::CLAIMED_PAYLOAD_MAX;

use crate::fixture::{Fixture, submission};

#[tokio::test(flavor = "multi_thread")]
async fn a_short_payload_comes_with_its_claim_and_a_longer_one_does_not() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let longest = vec![b'x'; usize::try_from(CLAIMED_PAYLOAD_MAX)?];
    let longer = vec![b'y'; longest.len() + 1];
    for payload in [b"{}".as_slice(), &longest, &longer] {
        let new = submission(&endpoint, None, payload)?;
        db.accept_one(&new).await?;
        let (_, batch) = db.claim(&[&endpoint], 1).await?;
        let [claimed] = batch.claimed.as_slice() else { anyhow::bail!("{batch:?}") };
        let read = db.store.read_payloads(&[(endpoint.key, new.id)]).await?;
        assert_eq!(read[0].payload, payload);
        let expected = read.first().filter(|_| payload.len() <= longest.len());
        assert_eq!(claimed.payload.as_ref(), expected);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_payload_does_not_come_with_its_claim() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, None, b"{}")?;
    db.accept_one(&new).await?;
    let erase = "update fencepost.submissions set payload = null, erased_at = now() where id = $1";
    db.run(erase, new.id.as_uuid()).await?;
    let (_, batch) = db.claim(&[&endpoint], 1).await?;
    assert_eq!(batch.claimed.len(), 1);
    assert_eq!(batch.claimed[0].payload, None);
    Ok(())
}

/// A page that is damaged, say. The view stands for it: reading that payload is an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_cannot_be_read_does_not_hold_up_the_claim() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, None, b"{}")?;
    db.accept_one(&new).await?;
    db.accept_one(&submission(&endpoint, None, b"[]")?).await?;
    let damage = format!(
        "create function fencepost.unreadable() returns bytea language plpgsql as $$ begin
            raise exception using errcode = 'XX001', message = 'invalid page in block 7';
        end $$;
        alter table fencepost.submissions rename to damaged_submissions;
        create view fencepost.submissions as select endpoint, id, webhook_id, content_type,
            case when id = '{}' then fencepost.unreadable() else payload end as payload
        from fencepost.damaged_submissions",
        new.id
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(damage)).execute(&mut db.session().await?).await?;
    let (_, batch) = db.claim(&[&endpoint], 5).await?;
    assert_eq!(batch.claimed.len(), 2);
    assert!(batch.claimed.iter().all(|claimed| claimed.payload.is_none()), "{batch:?}");
    Ok(())
}
