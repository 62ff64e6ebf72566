//! A new migration rebuilds the crate, which embeds them all.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
