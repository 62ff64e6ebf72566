# The recipes people run. `.ci/run` runs the same commands in one go, and needs no `just`.

# List the recipes.
default:
    @just --list

# Every test. Needs Docker, PostgreSQL 15 or later, or FENCEPOST_TEST_DATABASE_URL.
test:
    cargo test --workspace

# The suite on PostgreSQL, real processes and sockets alone.
test-integration *args:
    cargo test -p integration-tests {{ args }}

# Warnings are errors.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The same of what is built for traces alone.
lint-traces:
    cargo clippy --workspace --features fencepost/otlp --all-targets -- -D warnings

# Say what rustfmt would change.
fmt:
    cargo fmt --all --check

# The API documentation, with broken links as errors.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, sources, and who may depend on whom.
deny:
    cargo deny check bans licenses sources

# Each parser of what strangers send, and of the settings file, for seconds, on inputs that a fuzzer makes from fuzz/corpus. Needs a C++ compiler.
fuzz-smoke seconds="5":
    .ci/fuzz {{ seconds }}

# One of them for longer, keeping what it finds: `just fuzz url 600`.
fuzz target seconds="600":
    FENCEPOST_FUZZ_KEEP=1 .ci/fuzz {{ seconds }} {{ target }}

# Call a running api in all ways that its OpenAPI document allows and forbids. Needs python3 and its package registry, once.
schemathesis *args:
    .ci/schemathesis {{ args }}

# All that CI runs, as the machines run it.
ci:
    .ci/run

# Kill api, workers and PostgreSQL at random under load, then check the whole history: `just soak minutes=60`.
soak minutes="10" seed="":
    #!/usr/bin/env bash
    set -euo pipefail
    minutes={{ minutes }}
    export FENCEPOST_SOAK_SECONDS=$((${minutes#minutes=} * 60))
    seed={{ seed }}
    seed=${seed#seed=}
    export FENCEPOST_SOAK_SEED=${seed:-$RANDOM}
    cargo test -p integration-tests --test soak -- --nocapture

# Peak memory of api and worker under each kind of hostile peer, beside the bound of docs/SECURITY.md.
hostile-peers:
    #!/usr/bin/env bash
    set -euo pipefail
    ulimit -n 8192
    FENCEPOST_HOSTILE_PEERS=1 cargo test -p integration-tests --test hostile -- --nocapture --test-threads 1

# The whole path on a scratch database: submit, deliver, verify. Arguments go to `fencepost demo`.
demo *args:
    cargo run --release -- demo {{ args }}

# Sign anew, with the senders' own libraries for Python, what the verification of inbound requests is tested on.
inbound-references:
    #!/usr/bin/env bash
    set -euo pipefail
    venv=target/inbound-references
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r crates/domain/tests/inbound_references.txt
    "$venv/bin/python" crates/domain/tests/inbound_references.py >"$venv/lines"
    mv "$venv/lines" crates/domain/tests/inbound_references.ndjson
    cargo test -p fencepost-domain --test inbound_references

# A collector is told of requests and attempts.
traces:
    cargo test --workspace --features fencepost/otlp --test otlp

# Build the binary of the previous release, and run the test of rolling upgrades beside it.
rolling-upgrade:
    FENCEPOST_TEST_PREVIOUS_RELEASE="$(.ci/previous-release)" cargo test -p integration-tests --test delivery previous_release

# Run it at a release: the next schema has to serve these statements. The release's name goes into .ci/previous-release.
# Keep the statements of this release.
released:
    jq --slurp 'map(.query) | sort' crates/store/.sqlx/query-*.json >integration-tests/released_statements.json

# The image of api, worker and operators.
image:
    docker build --tag fencepost .

# Run it after a change to a PostgreSQL statement. The old answers are replaced only if every statement is right.
# Rewrite crates/store/.sqlx from the migrated database that PG_DATABASE_URL names.
prepare-queries:
    #!/usr/bin/env bash
    set -euo pipefail
    : "${PG_DATABASE_URL:?name a migrated PostgreSQL database}"
    fresh="$PWD/target/prepared-queries"
    rm -rf "$fresh"
    mkdir -p "$fresh" crates/store/.sqlx
    touch crates/store/src/lib.rs # the macros run only when the crate is compiled
    SQLX_OFFLINE=false SQLX_OFFLINE_DIR="$fresh" cargo check -p fencepost-store
    rm -f crates/store/.sqlx/query-*.json
    mv "$fresh"/query-*.json crates/store/.sqlx/
    rmdir "$fresh"
