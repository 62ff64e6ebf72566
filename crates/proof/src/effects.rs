//! What an inbound event does in a proof: a row more. There is no key in it, so that doing it twice
//! shows. Beside it is what the naive forms note of an event.

use crate::connections::{Connection, Value};

/// The effect, inside a transaction or alone.
pub(crate) const APPLY: &str = "-- proof::effects::apply
    INSERT INTO {}effects VALUES ($1)";

pub(crate) async fn make_tables(connection: &mut Connection) -> anyhow::Result<()> {
    for table in [
        "-- proof::effects::make_tables
        CREATE TABLE IF NOT EXISTS {}effects (event_id text NOT NULL)",
        "-- proof::effects::make_tables
        CREATE TABLE IF NOT EXISTS {}naive_receipts (event_id text NOT NULL)",
    ] {
        connection.run(table, &[]).await?;
    }
    Ok(())
}

pub(crate) async fn apply(connection: &mut Connection, event: &str) -> anyhow::Result<()> {
    connection.run(APPLY, &[Value::Text(event)]).await?;
    Ok(())
}

/// How often the event had its effect.
pub(crate) async fn count(connection: &mut Connection, event: &str) -> anyhow::Result<i64> {
    let effects = connection
        .read_one(
            "-- proof::effects::count
            SELECT CAST(count(*) AS bigint) AS effects FROM {}effects WHERE event_id = $1",
            &[Value::Text(event)],
        )
        .await?;
    Ok(effects.integer("effects")?)
}

/// Notes that the event was seen, without its effect.
pub(crate) async fn note(connection: &mut Connection, event: &str) -> anyhow::Result<()> {
    connection
        .run(
            "-- proof::effects::note
            INSERT INTO {}naive_receipts VALUES ($1)",
            &[Value::Text(event)],
        )
        .await?;
    Ok(())
}

/// How often it was noted.
pub(crate) async fn count_notes(connection: &mut Connection, event: &str) -> anyhow::Result<i64> {
    let noted = connection
        .read_one(
            "-- proof::effects::count_notes
            SELECT CAST(count(*) AS bigint) AS noted FROM {}naive_receipts WHERE event_id = $1",
            &[Value::Text(event)],
        )
        .await?;
    Ok(noted.integer("noted")?)
}
