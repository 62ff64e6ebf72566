//! Counts a refused request of a source, and keeps the newest reasons.
//!
//! The list is rebuilt from the row that is locked, so no reason is lost beside another. The row is one
//! of its own: who changes or reads the source does not wait for it. The clock is read when the row is had,
//! so that the newest stands first: a statement that waited began before the one that it waited for.

use domain::id::SourceKey;
use domain::source::Refusal;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::source::REFUSALS_KEPT;

pub(in crate::postgres) async fn note_refusal(
    pool: &Pool,
    source: SourceKey,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    after_conflict(|| async {
        sqlx::query!(
            "-- postgres::source::note_refusal
            UPDATE fencepost.source_refusals r
            SET refused = r.refused + 1,
                newest = jsonb_build_array(jsonb_build_object(
                    'at_micros', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
                    'code', $2::text, 'message', $3::text
                )) || coalesce((
                    SELECT jsonb_agg(o.value ORDER BY o.n)
                    FROM jsonb_array_elements(r.newest) WITH ORDINALITY AS o(value, n)
                    WHERE o.n < $4::bigint
                ), '[]')
            WHERE r.source = $1",
            source.as_uuid(),
            refusal.code(),
            refusal.to_string(),
            i64::try_from(REFUSALS_KEPT).unwrap_or(i64::MAX),
        )
        .execute(pool)
        .await
    })
    .await
    .map(drop)
    .map_err(|error| store_error("source::note_refusal", error))
}
