//! Who keeps dead rows alive: sessions, prepared transactions and replication slots.
//!
//! A session in another database does not, but for one that replicates. A vacuum does not either.

use std::time::Duration;

use domain::health::{HolderKind, SnapshotHolder, Snapshots};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn snapshots(pool: &Pool) -> Result<Snapshots, StoreError> {
    let rows = sqlx::query!(
        r#"-- postgres::doctor::snapshots
        SELECT h.kind AS "kind!", h.name AS "name!", h.detail AS "detail!", h.seconds AS "seconds?",
            h.transactions AS "transactions!",
            pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') AS "sees_all!"
        FROM (
            SELECT 1 AS kind, a.pid::text AS name,
                concat_ws(', ', a.usename, nullif(a.application_name, ''), a.state) AS detail,
                extract(epoch FROM statement_timestamp() - a.xact_start)::float8 AS seconds,
                GREATEST(age(a.backend_xmin), age(a.backend_xid), 0)::bigint AS transactions
            FROM pg_catalog.pg_stat_activity a
            WHERE a.pid <> pg_backend_pid()
                AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
                AND a.backend_type <> 'autovacuum worker'
                AND (a.datname = current_database() OR a.backend_type = 'walsender')
            UNION ALL
            SELECT 2, p.gid, p.owner::text,
                extract(epoch FROM statement_timestamp() - p.prepared)::float8,
                age(p.transaction)::bigint
            FROM pg_catalog.pg_prepared_xacts p
            WHERE p.database = current_database()
            UNION ALL
            SELECT 3, s.slot_name::text, CASE WHEN s.active THEN 'in use' ELSE 'not in use' END,
                NULL, GREATEST(age(s.xmin), age(s.catalog_xmin), 0)::bigint
            FROM pg_catalog.pg_replication_slots s
            WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
            UNION ALL
            SELECT 0, '', '', NULL, -1
        ) h
        ORDER BY h.transactions DESC, h.seconds DESC NULLS LAST
        LIMIT 50"#,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("doctor::snapshots", error))?;
    let sees_all = rows.first().is_some_and(|row| row.sees_all);
    let mut holders = Vec::new();
    for row in rows {
        let kind = match row.kind {
            1 => HolderKind::Session,
            2 => HolderKind::Prepared,
            3 => HolderKind::Slot,
            // The row that says what this user may see, also where there is no other.
            _ => continue,
        };
        let age = row.seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
        let transactions = row.transactions.unsigned_abs();
        let (name, detail) = (row.name, row.detail);
        holders.push(SnapshotHolder { kind, name, detail, age, transactions });
    }
    Ok(Snapshots { holders, sees_all })
}
