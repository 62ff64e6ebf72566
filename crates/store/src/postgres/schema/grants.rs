//! What a role needs to submit or to receive by SQL, and no more.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::connect_options;

const OPERATION: &str = "schema::grants";

/// PostgreSQL cuts longer names, and would grant to another role than was named.
const NAME_BYTES_MAX: usize = 63;

/// A role of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseRole(String);

/// Why a text names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a role has 1 to {NAME_BYTES_MAX} bytes, none of them NUL")]
pub struct DatabaseRoleError;

impl DatabaseRole {
    /// Takes the name as it stands in `pg_roles`, without quotes.
    pub fn parse(text: &str) -> Result<Self, DatabaseRoleError> {
        match text.len() {
            1..=NAME_BYTES_MAX if !text.contains('\0') => Ok(Self(text.to_owned())),
            _ => Err(DatabaseRoleError),
        }
    }
}

impl fmt::Display for DatabaseRole {
    /// As an identifier of SQL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// What a role may be let do, inside its own transactions. It can read nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Call `fencepost.submit`.
    Submit,
    /// Call `fencepost.receive`.
    Receive,
}

impl Right {
    fn functions(self) -> &'static [&'static str] {
        match self {
            Self::Submit => &[
                "submit(text, bytea, text, text, text, text)",
                "submit(text, text, text, text, text, text)",
                "submit(text, json, text, text, text, text)",
            ],
            Self::Receive => &["receive(text, text, bytea, interval)"],
        }
    }
}

/// The statements that give a role these rights.
#[must_use]
pub fn grants(role: &DatabaseRole, rights: &[Right]) -> Vec<String> {
    let usage = format!("GRANT USAGE ON SCHEMA fencepost TO {role};");
    let functions = rights.iter().flat_map(|right| right.functions());
    let calls = functions
        .map(|function| format!("GRANT EXECUTE ON FUNCTION fencepost.{function} TO {role};"));
    std::iter::once(usage).chain(calls).collect()
}

/// Gives a role these rights. Doing it again changes nothing.
pub async fn grant(url: &str, role: &DatabaseRole, rights: &[Right]) -> Result<(), StoreError> {
    let failed = |error| store_error(OPERATION, error);
    let mut connection = connect_options(url)?.connect().await.map_err(failed)?;
    // One message without parameters is one transaction.
    let text = grants(role, rights).join("\n");
    connection.execute(AssertSqlSafe(text)).await.map_err(failed)?;
    connection.close().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_quoted_and_an_impossible_one_refused() {
        let role = DatabaseRole::parse("shop \"east\"").unwrap();
        let statements = grants(&role, &[Right::Submit]);
        assert_eq!(
            statements.first().map(String::as_str),
            Some("GRANT USAGE ON SCHEMA fencepost TO \"shop \"\"east\"\"\";")
        );
        assert_eq!(statements.len(), 4);
        for bad in ["", "a\0b", &"r".repeat(64)] {
            assert_eq!(DatabaseRole::parse(bad), Err(DatabaseRoleError));
        }
    }
}
