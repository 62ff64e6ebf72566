//! The statements of the store, from the answers that its compiler keeps of them.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

pub(super) struct Statement {
    pub(super) text: String,
    /// Of its parameters, separated by commas.
    pub(super) types: String,
}

#[derive(Deserialize)]
struct Prepared {
    query: String,
    describe: Describe,
}

#[derive(Deserialize)]
struct Describe {
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Parameters {
    #[serde(rename = "Left")]
    left: Vec<String>,
}

impl Statement {
    /// The one statement that begins with this comment.
    pub(super) fn find(name: &str) -> anyhow::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/store/.sqlx");
        let start = format!("-- {name}\n");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let text = std::fs::read_to_string(entry?.path())?;
            let prepared: Prepared = serde_json::from_str(&text)?;
            if prepared.query.starts_with(&start) {
                found.push(prepared);
            }
        }
        let prepared = found.pop().with_context(|| format!("no statement {name}"))?;
        if !found.is_empty() {
            bail!("two statements {name}");
        }
        let types: Vec<String> =
            prepared.describe.parameters.left.iter().map(|name| sql_type(name)).collect();
        Ok(Self { text: prepared.query, types: types.join(", ") })
    }
}

fn sql_type(name: &str) -> String {
    name.strip_suffix("Array").map_or_else(|| name.to_owned(), |element| format!("{element}[]"))
}
