//! Takes the lead, or keeps it.

use crate::StoreError;
use crate::maintenance::Candidacy;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn lead(writer: &Writer, candidacy: &Candidacy<'_>) -> Result<bool, StoreError> {
    let (holder, token, lease) = (candidacy.holder.to_owned(), candidacy.token, candidacy.lease);
    writer
        .run("maintenance::lead", move |tx| {
            Box::pin(async move {
                let (now, until) = (UnixMicros(tx.now()), UnixMicros(tx.now() + lease));
                let done = sqlx::query(
                    "-- sqlite::maintenance::lead
                    INSERT INTO leaders (role, holder, token, expires_at)
                    VALUES ('maintenance', ?1, ?2, ?3)
                    ON CONFLICT (role) DO UPDATE SET holder = excluded.holder,
                        token = excluded.token, expires_at = excluded.expires_at
                    WHERE leaders.token = excluded.token OR leaders.expires_at <= ?4",
                )
                .bind(holder)
                .bind(token)
                .bind(until)
                .bind(now)
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected() > 0)
            })
        })
        .await
}
