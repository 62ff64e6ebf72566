//! A place between the receipt of an event and its delivery where whoever comes waits.
//!
//! Both are written by one statement, so that no process can be caught between them from outside: a
//! trigger of the scratch database waits for a lock before the delivery is written, when the receipt is.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use crate::connections::{Connection, Connections, Value};
use crate::transaction::Transaction;

/// The advisory lock that is waited for.
const LOCK: i64 = 4_711;
/// How long the way there may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked.
const POLL: Duration = Duration::from_millis(5);

/// It lasts until [`end`](Self::end). Dropped before, it leaves its trigger, which waits for nobody then.
pub(super) struct Pause {
    holder: Transaction,
}

impl Pause {
    pub(super) async fn begin(connections: &Connections) -> anyhow::Result<Self> {
        let mut connection = connections.get().await?;
        // The statement that waits has a limit of its own for waiting: it has to outlast that.
        let function = format!(
            "-- proof::verify::inbox::gateway::pause::begin
            CREATE OR REPLACE FUNCTION {{}}pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                PERFORM set_config('lock_timeout', '0', true);
                PERFORM pg_advisory_xact_lock_shared({LOCK});
                RETURN NEW;
            END $$"
        );
        connection.run(&function, &[]).await?;
        let trigger = "-- proof::verify::inbox::gateway::pause::begin
            CREATE OR REPLACE TRIGGER pause BEFORE INSERT ON {}deliveries
            FOR EACH ROW EXECUTE FUNCTION {}pause()";
        connection.run(trigger, &[]).await?;
        let mut holder = Transaction::begin(connections, PATIENCE).await?;
        let lock = "-- proof::verify::inbox::gateway::pause::begin
            SELECT pg_advisory_xact_lock($1)";
        holder.run(lock, &[Value::Integer(LOCK)]).await?;
        Ok(Self { holder })
    }

    /// Returns when somebody waits.
    pub(super) async fn reached(&self, connection: &mut Connection) -> anyhow::Result<()> {
        let waiting = async {
            while count_waiting(connection).await? == 0 {
                tokio::time::sleep(POLL).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, waiting).await.context("no copy came to its delivery")?
    }

    /// Ends the session of the dead process, as the server does when it finds that its client is gone:
    /// while a session waits for a lock, it does not look. Then nobody waits here any more.
    pub(super) async fn end(self, connection: &mut Connection) -> anyhow::Result<()> {
        let ended = connection
            .read_one(
                "-- proof::verify::inbox::gateway::pause::end
                SELECT count(*) AS sessions, count(*) FILTER (
                    WHERE pg_terminate_backend(l.pid, 30000)) AS ended
                FROM pg_catalog.pg_locks l
                JOIN pg_catalog.pg_database d ON d.oid = l.database
                WHERE d.datname = current_database() AND l.locktype = 'advisory'
                    AND l.objid = CAST($1 AS bigint) AND NOT l.granted",
                &[Value::Integer(LOCK)],
            )
            .await?;
        let (sessions, ended) = (ended.integer("sessions")?, ended.integer("ended")?);
        anyhow::ensure!((sessions, ended) == (1, 1), "{ended} of {sessions} sessions ended");
        self.holder.rollback().await?;
        for text in [
            "-- proof::verify::inbox::gateway::pause::end
            DROP TRIGGER pause ON {}deliveries",
            "-- proof::verify::inbox::gateway::pause::end
            DROP FUNCTION {}pause()",
        ] {
            connection.run(text, &[]).await?;
        }
        Ok(())
    }
}

async fn count_waiting(connection: &mut Connection) -> anyhow::Result<i64> {
    let waiting = connection
        .read_one(
            "-- proof::verify::inbox::gateway::pause::count_waiting
            SELECT count(*) AS waiting FROM pg_catalog.pg_locks l
            JOIN pg_catalog.pg_database d ON d.oid = l.database
            WHERE d.datname = current_database() AND l.locktype = 'advisory'
                AND l.objid = CAST($1 AS bigint) AND NOT l.granted",
            &[Value::Integer(LOCK)],
        )
        .await?;
    Ok(waiting.integer("waiting")?)
}
