//! The rules that hold this repository in shape, each as a test on the files themselves.
//!
//! A rule is a pure function from what it reads to its findings, a test that runs it on the
//! repository, and a test that runs it on a bad example: a rule that cannot fail holds nothing. A
//! finding names file and line, and the failure says why the rule exists.
//!
//! What documents promise to the rules:
//!
//! - A back-ticked path from the root (`crates/…`, `docs/…`, `.ci/…`) names something that is
//!   there. `*` stands for any name and `{a,b}` for either; a path with `<` or `…` is a placeholder
//!   and not looked up.
//! - Any other back-ticked `name.rs` or `name.sql` is the end of a path that is there.
//! - In the guarantees a back-ticked word with three underscores or more is the name of a test (or
//!   of something else that exists under just that name: a migration's constraint, a string in the
//!   product's code). After `file.rs::` it is a function of that file.

mod tidy {
    mod alerts;
    mod ci;
    mod documents;
    mod domain;
    mod finding;
    mod guarantees;
    mod layers;
    mod lints;
    mod markdown;
    mod migrations;
    mod names;
    mod packaging;
    mod repository;
    mod routes;
    mod source;
    mod statements;
    mod stores;
    mod unfinished;
}
