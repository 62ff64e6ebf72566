use std::fmt;

use sqlx::PgConnection;

/// What a server says about itself.
pub(super) struct Version {
    number: String,
    max_connections: String,
}

impl Version {
    pub(super) async fn read(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let (number, max_connections) = sqlx::query_as(
            "select current_setting('server_version'), current_setting('max_connections')",
        )
        .fetch_one(connection)
        .await?;
        Ok(Self { number, max_connections })
    }

    pub(super) fn major(&self) -> u32 {
        let digits = self.number.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with max_connections = {}", self.number, self.max_connections)
    }
}
