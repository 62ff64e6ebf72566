//! Arrows between crates point one way, and the heavy libraries stay behind one crate each.

use std::collections::{BTreeMap, VecDeque};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use super::finding::{Finding, assert_none};
use super::repository;

const DOMAIN: &str = "fencepost-domain";
const STORE: &str = "fencepost-store";
const SETTINGS: &str = "fencepost-settings";
const PROCESS: &str = "fencepost-process";
const API: &str = "fencepost-api";
const WORKER: &str = "fencepost-worker";
const PROOF: &str = "fencepost-proof";
const FENCEPOST: &str = "fencepost";
const CHECKOUT: &str = "checkout";
const TESTS: &str = "integration-tests";

/// Which crates of ours a crate of ours may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    (DOMAIN, &[]),
    (STORE, &[DOMAIN]),
    (SETTINGS, &[]),
    (PROCESS, &[DOMAIN, STORE, SETTINGS]),
    (API, &[DOMAIN, STORE, PROCESS]),
    (WORKER, &[DOMAIN, STORE, PROCESS]),
    (PROOF, &[DOMAIN, STORE, PROCESS]),
    (FENCEPOST, &[DOMAIN, STORE, PROCESS, API, WORKER, PROOF]),
    (CHECKOUT, &[DOMAIN, STORE]),
    (TESTS, &[DOMAIN, STORE, PROCESS, API, WORKER, PROOF, FENCEPOST, CHECKOUT]),
];

/// Libraries that only the named crates may depend on. A library's family, `sqlx-core` of `sqlx`,
/// is guarded with it.
const GUARDED: &[(&str, &[&str])] = &[
    ("sqlx", &[STORE, PROOF, CHECKOUT, TESTS]),
    ("reqwest", &[WORKER, PROOF, TESTS]),
    ("actix-web", &[API]),
];

/// What a crate without I/O, clock, randomness and async has no use for.
const NOT_IN_THE_DOMAIN: &[&str] = &[
    "tokio",
    "async-trait",
    "futures-util",
    "sqlx",
    "reqwest",
    "actix-web",
    "getrandom",
    "fastrand",
    "rand",
];

/// Libraries that can send an HTTP request.
const HTTP_CLIENTS: &[&str] =
    &["reqwest", "hyper", "hyper-util", "awc", "ureq", "isahc", "curl", "attohttpc", "minreq"];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
    #[serde(skip)]
    manifest: String,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

/// `None` is a normal dependency, the others are `dev` and `build`.
#[derive(Debug, Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

impl Metadata {
    /// `cargo metadata` for this machine. What the tests were built from is there, so nothing is
    /// fetched.
    fn read() -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", "host-tuple"])
            .current_dir(repository::root())
            .output()
            .context("cannot start cargo")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "cargo metadata failed: {errors}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn members(self) -> anyhow::Result<Vec<Package>> {
        let root = repository::root().canonicalize()?;
        let mut members = self.packages;
        members.retain(|package| self.workspace_members.contains(&package.id));
        for member in &mut members {
            member.manifest = std::fs::read_to_string(&member.manifest_path)?;
            let path = std::path::Path::new(&member.manifest_path).canonicalize()?;
            member.manifest_path = path.strip_prefix(&root)?.to_string_lossy().into_owned();
        }
        anyhow::ensure!(!members.is_empty(), "cargo metadata names no member of the workspace");
        Ok(members)
    }
}

impl Package {
    fn finding(&self, dependency: &Dependency, what: impl Into<String>) -> Finding {
        let key = dependency.rename.as_ref().unwrap_or(&dependency.name);
        let names_it = |line: &str| {
            let rest = line.trim_start().strip_prefix(key.as_str());
            rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
        };
        let line = self.manifest.lines().position(names_it).map_or(1, |at| at + 1);
        Finding::new(&self.manifest_path, line, what)
    }
}

fn arrows_against_the_layers(members: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == member.name) else {
            let what = format!("{} has no place in LAYERS", member.name);
            findings.push(Finding::new(&member.manifest_path, 1, what));
            continue;
        };
        for dependency in &member.dependencies {
            let ours = members.iter().any(|other| other.name == dependency.name);
            if ours && !allowed.contains(&dependency.name.as_str()) {
                let what = format!("{} must not depend on {}", member.name, dependency.name);
                findings.push(member.finding(dependency, what));
            }
        }
    }
    findings
}

fn unguarded_libraries(members: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        for dependency in &member.dependencies {
            let guard = GUARDED.iter().find(|(library, _)| {
                let family = dependency.name.strip_prefix(library);
                family.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            });
            let Some((_, allowed)) = guard else { continue };
            if !allowed.contains(&member.name.as_str()) {
                let what = format!("{} is only for {}", dependency.name, allowed.join(", "));
                findings.push(member.finding(dependency, what));
            }
        }
    }
    findings
}

fn outside_world_in_the_domain(members: &[Package]) -> Vec<Finding> {
    let domain = members.iter().filter(|member| member.name == DOMAIN);
    let dependencies = domain
        .flat_map(|member| member.dependencies.iter().map(move |dependency| (member, dependency)));
    dependencies
        .filter(|(_, dependency)| NOT_IN_THE_DOMAIN.contains(&dependency.name.as_str()))
        .map(|(domain, dependency)| {
            domain.finding(dependency, format!("the domain must not know {}", dependency.name))
        })
        .collect()
}

/// Every one of these libraries that `package` is built with, each with the chain of dependencies that
/// leads to it.
fn reached_by(package: &str, libraries: &[&str], metadata: &Metadata) -> Vec<Finding> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();

    let start = metadata.packages.iter().find(|member| member.name == package);
    let mut chains: BTreeMap<&str, String> = BTreeMap::new();
    let mut open = VecDeque::new();
    if let Some(start) = start {
        chains.insert(&start.id, start.name.clone());
        open.push_back(start.id.as_str());
    }
    while let Some(id) = open.pop_front() {
        let chain = chains.get(id).cloned().unwrap_or_default();
        for edge in nodes.get(id).iter().flat_map(|node| &node.deps) {
            let normal = edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let Some(next) = packages.get(edge.pkg.as_str()) else {
                continue;
            };
            if normal && !chains.contains_key(edge.pkg.as_str()) {
                chains.insert(&edge.pkg, format!("{chain} -> {}", next.name));
                open.push_back(&edge.pkg);
            }
        }
    }
    let reached = chains.iter().filter_map(|(id, chain)| Some((packages.get(id)?, chain)));
    reached
        .filter(|(reached, _)| libraries.contains(&reached.name.as_str()))
        .map(|(_, chain)| Finding::new("Cargo.lock", 1, chain.clone()))
        .collect()
}

#[test]
fn arrows_between_crates_point_one_way() -> anyhow::Result<()> {
    let findings = arrows_against_the_layers(&Metadata::read()?.members()?);
    assert_none(&findings, "a decision that depends on what carries it cannot be tested alone");
    Ok(())
}

#[test]
fn heavy_libraries_stay_behind_the_crates_that_own_them() -> anyhow::Result<()> {
    let findings = unguarded_libraries(&Metadata::read()?.members()?);
    assert_none(&findings, "one place for SQL, one for sending, one for answering");
    Ok(())
}

#[test]
fn the_domain_depends_on_nothing_that_acts() -> anyhow::Result<()> {
    let findings = outside_world_in_the_domain(&Metadata::read()?.members()?);
    assert_none(&findings, "the domain has no I/O, no clock, no randomness and no async");
    Ok(())
}

#[test]
fn the_api_is_built_without_an_http_client() -> anyhow::Result<()> {
    let metadata = Metadata::read()?;
    let there = metadata.packages.iter().any(|package| package.name == API);
    assert!(there, "cargo metadata does not name {API}");
    let findings = reached_by(API, HTTP_CLIENTS, &metadata);
    assert_none(&findings, "that a replay sends nothing is true because the api cannot send");
    Ok(())
}

#[test]
fn an_embedder_is_built_without_http() -> anyhow::Result<()> {
    let metadata = Metadata::read()?;
    let there = metadata.packages.iter().any(|package| package.name == CHECKOUT);
    assert!(there, "cargo metadata does not name {CHECKOUT}");
    let mut findings = reached_by(CHECKOUT, HTTP_CLIENTS, &metadata);
    findings.extend(reached_by(CHECKOUT, &["actix-web", "actix-http"], &metadata));
    assert_none(&findings, "who embeds the store has an HTTP stack of their own");
    Ok(())
}

/// What a crate is built with when it is built alone: features of other members do not count.
fn built_alone(package: &str) -> anyhow::Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--package", package])
        .current_dir(repository::root())
        .output()
        .context("cannot start cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "cargo tree failed: {errors}");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect())
}

#[test]
fn an_embedder_on_one_database_is_built_without_the_other() -> anyhow::Result<()> {
    let crates = built_alone(CHECKOUT)?;
    let has = |name: &str| crates.iter().any(|it| it == name);
    assert!(has("sqlx-postgres"), "{crates:?}");
    assert!(!has("sqlx-sqlite") && !has("libsqlite3-sys"), "{crates:?}");
    Ok(())
}

mod bad_examples {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            manifest_path: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), rename: None })
                .collect(),
            manifest: dependencies.iter().fold("[dependencies]\n".to_owned(), |text, name| {
                text + name + ".workspace = true\n"
            }),
        }
    }

    #[test]
    fn an_arrow_back_and_an_unknown_crate_are_found() {
        let members = [
            package("fencepost-domain", &["serde", "fencepost-store"]),
            package("fencepost-store", &[]),
            package("new", &[]),
        ];
        assert_eq!(
            arrows_against_the_layers(&members),
            [
                Finding::new(
                    "crates/fencepost-domain/Cargo.toml",
                    3,
                    "fencepost-domain must not depend on fencepost-store"
                ),
                Finding::new("crates/new/Cargo.toml", 1, "new has no place in LAYERS"),
            ]
        );
    }

    #[test]
    fn a_guarded_library_and_its_family_are_found() {
        let members = [
            package("fencepost-store", &["sqlx"]),
            package("fencepost-api", &["actix-web", "sqlx-core", "reqwest"]),
        ];
        let found: Vec<usize> = unguarded_libraries(&members).iter().map(|it| it.line).collect();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn a_runtime_in_the_domain_is_found() {
        let members = [package("fencepost-domain", &["time", "tokio"])];
        assert_eq!(outside_world_in_the_domain(&members).len(), 1);
    }

    #[test]
    fn a_client_behind_another_crate_is_found_with_its_chain() {
        let edge = |to: &str, kind: Option<&str>| Edge {
            pkg: to.to_owned(),
            dep_kinds: vec![DependencyKind { kind: kind.map(str::to_owned) }],
        };
        let node = |id: &str, deps| Node { id: id.to_owned(), deps };
        let metadata = Metadata {
            packages: ["fencepost-api", "a", "ureq", "reqwest"]
                .map(|name| package(name, &[]))
                .into(),
            workspace_members: vec![],
            resolve: Resolve {
                nodes: vec![
                    node("fencepost-api", vec![edge("a", None), edge("reqwest", Some("dev"))]),
                    node("a", vec![edge("ureq", None)]),
                ],
            },
        };
        assert_eq!(
            reached_by("fencepost-api", HTTP_CLIENTS, &metadata),
            [Finding::new("Cargo.lock", 1, "fencepost-api -> a -> ureq")]
        );
    }
}
