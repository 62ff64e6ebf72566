//! Every crate of the workspace takes the lints of the workspace, which forbid `unsafe`.

use super::finding::{Finding, assert_none};
use super::repository;

/// A workspace of its own: what its macro expands to cannot do without.
const ON_ITS_OWN: &str = "fuzz/Cargo.toml";

fn without_the_lints(manifests: &[(String, String)]) -> Vec<Finding> {
    let takes = |text: &str| text.contains("\n[lints]\nworkspace = true\n");
    manifests
        .iter()
        .filter(|(_, text)| text.contains("[package]\n") && !takes(text))
        .map(|(path, _)| Finding::new(path, 1, "`[lints]` has to say `workspace = true`"))
        .collect()
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() -> anyhow::Result<()> {
    let mut manifests = Vec::new();
    for path in repository::files("")?.into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = repository::text(&path)?.unwrap_or_default();
        if path == "Cargo.toml" {
            assert!(text.contains("\nunsafe_code = \"forbid\"\n"), "unsafe code is not forbidden");
        } else if path != ON_ITS_OWN {
            manifests.push((path, text));
        }
    }
    assert!(manifests.len() > 1, "there is no crate: the rule would hold vacuously");
    assert_none(&without_the_lints(&manifests), "`unsafe` is forbidden in all crates");
    Ok(())
}

#[test]
fn a_crate_with_lints_of_its_own_is_found() {
    let manifest =
        |path: &str, lints: &str| (path.to_owned(), format!("[package]\nname = \"a\"\n\n{lints}"));
    let manifests = [
        manifest("a/Cargo.toml", "[lints]\nworkspace = true\n"),
        manifest("b/Cargo.toml", "[lints.rust]\nunsafe_code = \"allow\"\n"),
        manifest("c/Cargo.toml", ""),
    ];
    let paths: Vec<String> =
        without_the_lints(&manifests).into_iter().map(|finding| finding.path).collect();
    assert_eq!(paths, ["b/Cargo.toml", "c/Cargo.toml"]);
}
