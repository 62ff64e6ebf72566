//! Takes the lead, or keeps it.
//!
//! One conditional upsert: of any number of candidates one wins, and only the holder of the current
//! term keeps it. A lease that is over is anybody's.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::maintenance::Candidacy;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;

pub(super) async fn lead(pool: &Pool, candidacy: &Candidacy<'_>) -> Result<bool, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::maintenance::lead
            INSERT INTO fencepost.leaders AS l (role, holder, token, expires_at)
            VALUES ('maintenance', $1, $2,
                statement_timestamp() + $3::float8 * interval '1 second')
            ON CONFLICT (role) DO UPDATE SET holder = excluded.holder, token = excluded.token,
                expires_at = excluded.expires_at
            WHERE l.token = excluded.token OR l.expires_at <= statement_timestamp()
            RETURNING true AS "leads!""#,
            candidacy.holder,
            candidacy.token,
            candidacy.lease.as_secs_f64(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map(|led| led.is_some())
    .map_err(|error| store_error("maintenance::lead", error))
}
