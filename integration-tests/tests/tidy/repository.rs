//! The files that the rules read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::source::Source;

/// Folders that are not ours: build output, and what git keeps.
const NOT_OURS: &[&str] = &[".git", "target", "node_modules"];

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below `folder`, as paths from the root with `/` between the names.
pub(super) fn files(folder: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let path = root().join(&folder);
        for entry in fs::read_dir(&path).with_context(|| format!("cannot list {folder}/"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !entry.file_type()?.is_dir() {
                found.insert(path);
            } else if !NOT_OURS.contains(&name.as_str()) {
                open.push(path);
            }
        }
    }
    Ok(found)
}

pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == extension)
}

/// Whether `path` is `end`, or ends with it from one of its names on.
pub(super) fn is_end_of(end: &str, path: &str) -> bool {
    let rest = path.strip_suffix(end);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// The text of a file, or `None` where there is no such file.
pub(super) fn text(path: &str) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(root().join(path)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

/// Every Rust file of the workspace.
pub(super) fn rust_sources() -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in files("")?.into_iter().filter(|path| has_extension(path, "rs")) {
        // A file that went away in between was somebody's temporary one.
        if let Some(text) = text(&path)? {
            sources.push(Source::new(&path, &text));
        }
    }
    anyhow::ensure!(!sources.is_empty(), "no Rust file found: the rules would hold vacuously");
    Ok(sources)
}
