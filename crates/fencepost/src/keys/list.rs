//! `fencepost keys list`: all keys, newest first, revoked ones included.

use std::process::ExitCode;

use store::Page;
use store::api_key::ApiKeyView;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
}

const COLUMNS: usize = 7;
const HEAD: [&str; COLUMNS] = ["ID", "KEY", "ROLE", "APPLICATION", "CREATED", "LAST USED", "NAME"];

pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = super::open(&args.database).await?;
    let mut rows = vec![HEAD.map(str::to_owned)];
    let mut page = Page { limit: 250, before: None };
    loop {
        let keys = store.list_api_keys(None, page).await?;
        let Some(last) = keys.last() else { break };
        page.before = Some(last.id);
        rows.extend(keys.iter().map(row));
    }
    for line in aligned(&rows) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(key: &ApiKeyView) -> [String; COLUMNS] {
    let used = match (key.revoked_at, key.last_used_at) {
        (Some(at), _) => format!("revoked {}", shown(at)),
        (None, Some(at)) => shown(at),
        (None, None) => "never".to_owned(),
    };
    [
        key.id.to_string(),
        format!("{}…", key.shown_prefix),
        key.role.as_str().to_owned(),
        key.application_id.clone().unwrap_or_else(|| "(all)".to_owned()),
        shown(key.created_at),
        used,
        key.name.clone(),
    ]
}

/// To the second, in UTC.
fn shown(at: OffsetDateTime) -> String {
    let whole = at.to_offset(time::UtcOffset::UTC).truncate_to_second();
    whole.format(&Rfc3339).unwrap_or_else(|_| whole.to_string())
}

fn aligned(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let width = |column: usize| {
        let lengths =
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use store::api_key::Role;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn keys_stand_in_columns_with_what_is_known_of_their_use() {
        let key = ApiKeyView {
            id: uuid::Uuid::nil(),
            name: "shop".to_owned(),
            shown_prefix: "fp_live_0a1b".to_owned(),
            role: Role::Publish,
            application_id: Some("a".to_owned()),
            created_at: datetime!(2026-01-02 03:04:05.678 UTC),
            last_used_at: None,
            revoked_at: None,
        };
        let used = ApiKeyView {
            application_id: None,
            last_used_at: Some(datetime!(2026-02-03 04:05:06 +01:00)),
            ..key.clone()
        };
        let revoked =
            ApiKeyView { revoked_at: Some(datetime!(2026-03-04 05:06:07 UTC)), ..used.clone() };
        let rows = [&key, &used, &revoked].map(row);
        assert_eq!(rows[0][5], "never");
        assert_eq!((rows[1][3].as_str(), rows[1][5].as_str()), ("(all)", "2026-02-03T03:05:06Z"));
        assert_eq!(rows[2][5], "revoked 2026-03-04T05:06:07Z");
        let id = uuid::Uuid::nil();
        assert_eq!(
            aligned(&rows)[0],
            format!(
                "{id}  fp_live_0a1b…  publish  a      2026-01-02T03:04:05Z  never                         shop"
            )
        );
    }
}
