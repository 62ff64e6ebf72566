//! What a role needs to submit by SQL, and no more.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::connect_options;

const OPERATION: &str = "schema::grants";

/// PostgreSQL cuts longer names, and would grant to another role than was named.
const NAME_BYTES_MAX: usize = 63;

/// A role of the database that may submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherRole(String);

/// Why a text names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a role has 1 to {NAME_BYTES_MAX} bytes, none of them NUL")]
pub struct PublisherRoleError;

impl PublisherRole {
    /// Takes the name as it stands in `pg_roles`, without quotes.
    pub fn parse(text: &str) -> Result<Self, PublisherRoleError> {
        match text.len() {
            1..=NAME_BYTES_MAX if !text.contains('\0') => Ok(Self(text.to_owned())),
            _ => Err(PublisherRoleError),
        }
    }
}

impl fmt::Display for PublisherRole {
    /// As an identifier of SQL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// The statements that let a role submit by `fencepost.submit`. It can read nothing.
#[must_use]
pub fn publisher_grants(role: &PublisherRole) -> Vec<String> {
    let mut statements = vec![format!("GRANT USAGE ON SCHEMA fencepost TO {role};")];
    statements.extend(["bytea", "text", "json"].map(|payload| {
        format!(
            "GRANT EXECUTE ON FUNCTION fencepost.submit(text, {payload}, text, text, text, text) \
             TO {role};"
        )
    }));
    statements
}

/// Lets a role submit. Doing it again changes nothing.
pub async fn grant_publisher(url: &str, role: &PublisherRole) -> Result<(), StoreError> {
    let failed = |error| store_error(OPERATION, error);
    let mut connection = connect_options(url)?.connect().await.map_err(failed)?;
    // One message without parameters is one transaction.
    let text = publisher_grants(role).join("\n");
    connection.execute(AssertSqlSafe(text)).await.map_err(failed)?;
    connection.close().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_quoted_and_an_impossible_one_refused() {
        let role = PublisherRole::parse("shop \"east\"").unwrap();
        let statements = publisher_grants(&role);
        assert_eq!(
            statements.first().map(String::as_str),
            Some("GRANT USAGE ON SCHEMA fencepost TO \"shop \"\"east\"\"\";")
        );
        assert_eq!(statements.len(), 4);
        for bad in ["", "a\0b", &"r".repeat(64)] {
            assert_eq!(PublisherRole::parse(bad), Err(PublisherRoleError));
        }
    }
}
