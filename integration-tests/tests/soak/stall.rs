//! What stands still, for whoever reads that a soak did.

use std::fmt::Write as _;

use integration_tests::http::ApiClient;
use sqlx::PgConnection;

/// What is owed and why nobody sends it, who is connected and what they wait for.
const QUESTIONS: [(&str, &str); 3] = [
    (
        "owed",
        "select format('%s of state %s, claimed by %s, in %s lapses: due from %s to %s, leased until %s',
            count(*), state, claimed_by, lapses, min(due_at) - now(), max(due_at) - now(),
            max(leased_until) - now())
        from fencepost.deliveries group by state, claimed_by, lapses order by 1",
    ),
    (
        "endpoint",
        "select format('%s: %s in flight of %s, %s, paused for %s, low water %s, lease low %s',
            endpoint, in_flight, cap, case when enabled then 'enabled' else 'disabled' end,
            paused_until - now(), low_water - now(), lease_low - now())
        from fencepost.endpoint_schedule order by 1",
    ),
    (
        "session",
        "select format('%s, %s %s, for %s: %s', application_name, state, wait_event,
            now() - state_change, left(query, 80))
        from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        order by 1",
    ),
];

/// Answers text also where a question cannot be answered: that tells something too.
pub(crate) async fn explain(
    connection: anyhow::Result<PgConnection>,
    addresses: &[String],
    key: &str,
) -> String {
    let mut text = String::new();
    for address in addresses {
        let asked = async { ApiClient::new(address, key)?.get("/readyz").await };
        let _ = match asked.await {
            Ok(reply) => writeln!(text, "api {address}: {}", reply.status),
            Err(error) => writeln!(text, "api {address}: {error:#}"),
        };
    }
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => {
            let _ = writeln!(text, "PostgreSQL: {error:#}");
            return text;
        }
    };
    for (what, question) in QUESTIONS {
        let _ = match sqlx::query_scalar::<_, String>(question).fetch_all(&mut connection).await {
            Ok(lines) => lines.iter().try_for_each(|line| writeln!(text, "{what}: {line}")),
            Err(error) => writeln!(text, "{what}: {error}"),
        };
    }
    text
}
