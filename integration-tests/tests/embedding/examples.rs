//! The examples of `docs/EMBEDDING.md` do what they say.
//!
//! They need `psql`, and a Python with psycopg. Where one is missing its test says so and shows nothing,
//! unless `FENCEPOST_TEST_EXAMPLES=required`, which CI sets.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use sqlx::PgConnection;
use tokio::process::Command;

use crate::sql_function::{count, orders};

const REQUIRED_VARIABLE: &str = "FENCEPOST_TEST_EXAMPLES";
const PYTHON_VARIABLE: &str = "FENCEPOST_TEST_PYTHON";
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/EMBEDDING.md");

/// The first block of that language behind that heading.
fn example(heading: &str, language: &str) -> anyhow::Result<String> {
    let text = fs::read_to_string(DOCUMENT)?;
    let section = text.split_once(&format!("\n### {heading}\n")).context("no such heading")?.1;
    let fence = format!("```{language}\n");
    let block = section.split_once(&fence).context("no block of that language")?.1;
    Ok(block.split_once("```").context("the block does not end")?.0.to_owned())
}

/// Says on the terminal, around the capture of the test runner, that nothing was shown.
fn left_out(what: &str) -> anyhow::Result<()> {
    let required = env::var_os(REQUIRED_VARIABLE).is_some_and(|value| value == "required");
    ensure!(!required, "{REQUIRED_VARIABLE}=required, and {what}");
    let _ = writeln!(io::stderr(), "an example of docs/EMBEDDING.md was left out: {what}");
    Ok(())
}

fn psql() -> Option<PathBuf> {
    let in_path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&in_path).collect();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(installed.map(|version| version.path().join("bin")));
    folders.into_iter().map(|folder| folder.join("psql")).find(|path| path.is_file())
}

async fn run(
    program: impl Into<OsString>,
    url: &str,
    arguments: &[&str],
) -> anyhow::Result<Output> {
    let output = Command::new(program.into())
        .args(arguments)
        .env("DATABASE_URL", url)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{told}");
    Ok(output)
}

async fn with_orders_table(session: &mut PgConnection) -> anyhow::Result<()> {
    sqlx::raw_sql("create table orders (id bigint primary key, total numeric not null)")
        .execute(session)
        .await?;
    Ok(())
}

async fn counts(session: &mut PgConnection) -> anyhow::Result<(i64, i64)> {
    let orders: i64 =
        sqlx::query_scalar("select count(*) from orders").fetch_one(&mut *session).await?;
    Ok((orders, count(session, "deliveries").await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_for_psql_commits_and_rolls_back_both() -> anyhow::Result<()> {
    let Some(psql) = psql() else { return left_out("psql is not installed") };
    let (database, mut session) = orders().await?;
    with_orders_table(&mut session).await?;
    let text = example("psql", "sql")?;
    let rolled_back = text.replace("COMMIT;", "ROLLBACK;");
    assert_ne!(rolled_back, text);
    for (text, expected) in [(rolled_back, (0, 0)), (text, (1, 1))] {
        let arguments = ["-X", "-v", "ON_ERROR_STOP=1", "-c", &text, database.url()];
        run(&psql, database.url(), &arguments).await?;
        assert_eq!(counts(&mut session).await?, expected);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_for_python_commits_both_and_is_told_what_is_refused() -> anyhow::Result<()> {
    let python = env::var_os(PYTHON_VARIABLE).unwrap_or_else(|| "python3".into());
    let (database, mut session) = orders().await?;
    if run(&python, database.url(), &["-c", "import psycopg"]).await.is_err() {
        let what = format!("{} has no psycopg", Path::new(&python).display());
        return left_out(&what);
    }
    with_orders_table(&mut session).await?;
    let output = run(&python, database.url(), &["-c", &example("Python", "python")?]).await?;
    let told = String::from_utf8(output.stdout)?;
    assert!(told.contains(" False\n"), "{told}");
    assert!(told.contains("WH002 endpoint_id code: endpoint_not_found"), "{told}");
    assert_eq!(counts(&mut session).await?, (1, 1), "what was refused has no order");
    Ok(())
}
