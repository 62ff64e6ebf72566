//! Variables whose name is no setting's. A misspelt one would be lost without a word.

/// What ours begin with.
const PREFIX: &str = "FENCEPOST_";

/// Every variable that some process of ours reads. One environment does for all of them, so each takes
/// those of the others too. A test of the binary holds this list to its arguments.
pub const VARIABLES: &[&str] = &[
    "FENCEPOST_ALLOW_NETWORKS",
    "FENCEPOST_API_KEY",
    "FENCEPOST_API_STOP_DEADLINE",
    "FENCEPOST_API_THREADS",
    "FENCEPOST_BODY_DEADLINE",
    "FENCEPOST_BODY_LIMIT",
    "FENCEPOST_COMMITS_AT_ONCE",
    "FENCEPOST_COMMIT_BYTES",
    "FENCEPOST_COMMIT_QUEUE_BYTES",
    "FENCEPOST_COMMIT_QUEUE_ROWS",
    "FENCEPOST_COMMIT_ROWS",
    "FENCEPOST_CONFIG",
    "FENCEPOST_CONNECTIONS_MAX",
    "FENCEPOST_CONNECTION_WAIT",
    "FENCEPOST_DATABASE_CONNECTIONS",
    "FENCEPOST_DISPATCH_CONNECTIONS",
    "FENCEPOST_HEAD_DEADLINE",
    "FENCEPOST_HOLD",
    "FENCEPOST_IDEMPOTENCY_WINDOW",
    "FENCEPOST_KEEP_ALIVE",
    "FENCEPOST_KEY_RATE",
    "FENCEPOST_LISTEN",
    "FENCEPOST_LISTEN_DATABASE_URL",
    "FENCEPOST_PRIVATE_LISTEN",
    "FENCEPOST_RETENTION",
    "FENCEPOST_SEALING_KEY",
    "FENCEPOST_SEALING_KEY_FILE",
    "FENCEPOST_SOURCE_RATE",
    "FENCEPOST_SOURCE_SECRET",
    "FENCEPOST_TRUSTED_HOPS",
    "FENCEPOST_WORKER_CLAIM_PER_ENDPOINT",
    "FENCEPOST_WORKER_CLAIM_TOTAL",
    "FENCEPOST_WORKER_CONCURRENCY",
    "FENCEPOST_WORKER_DNS_DEADLINE",
    "FENCEPOST_WORKER_NAME",
    "FENCEPOST_WORKER_PAYLOAD_MEMORY",
    "FENCEPOST_WORKER_POLL_INTERVAL",
    "FENCEPOST_WORKER_PRIVATE_LISTEN",
    "FENCEPOST_WORKER_RECORD_BATCH",
    "FENCEPOST_WORKER_RECORD_QUEUE",
    "FENCEPOST_WORKER_STALLED_AFTER",
    "FENCEPOST_WORKER_STOP_DEADLINE",
    "FENCEPOST_WORKER_SWEEP_INTERVAL",
];

/// What is wrong with the first of these names, if anything is.
pub(super) fn refused<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut names = names.into_iter();
    let unknown = names.find(|name| {
        name.starts_with(PREFIX) && !VARIABLES.contains(name) && !is_of_others(name)
    })?;
    let near = VARIABLES
        .iter()
        .map(|known| (distance(known, unknown), known))
        .filter(|(distance, _)| *distance <= 4)
        .min();
    let meant = near.map(|(_, known)| format!(", did you mean {known}?")).unwrap_or_default();
    Some(format!("the variable {unknown} is no setting{meant} --help names them"))
}

/// Kubernetes tells every container of a service that is called `fencepost`, or begins so, where it is.
/// Those of our tests are for them.
fn is_of_others(name: &str) -> bool {
    let tests = ["FENCEPOST_TEST_", "FENCEPOST_SOAK_"];
    let service = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"];
    tests.iter().any(|prefix| name.starts_with(prefix))
        || service.iter().any(|end| name.ends_with(end))
        || name.contains("_SERVICE_PORT_")
        || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| name.contains(protocol))
}

/// How many letters must be put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (from, a) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], from + 1);
        for (to, b) in b.bytes().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[to + 1];
            row[to + 1] = change.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_no_setting_is_refused_with_the_nearest_name() {
        for (name, meant) in [
            ("FENCEPOST_LISTNE", Some("FENCEPOST_LISTEN")),
            ("FENCEPOST_WORKER_CONCURENCY", Some("FENCEPOST_WORKER_CONCURRENCY")),
            ("FENCEPOST_SEALING_KEYS", Some("FENCEPOST_SEALING_KEY")),
            ("FENCEPOST_WHATEVER_THIS_IS", None),
        ] {
            let told = refused([name]).unwrap();
            assert!(told.contains(name), "{told}");
            assert_eq!(
                meant.map(|meant| told.contains(&format!("did you mean {meant}?"))),
                meant.map(|_| true),
                "{told}"
            );
            assert_eq!(told.contains("did you mean"), meant.is_some(), "{told}");
        }
    }

    #[test]
    fn what_is_known_or_of_others_is_taken() {
        let others = [
            "PATH",
            "fencepost_listne",
            "FENCEPOST_SERVICE_HOST",
            "FENCEPOST_API_SERVICE_HOST",
            "FENCEPOST_SERVICE_PORT",
            "FENCEPOST_SERVICE_PORT_HTTP",
            "FENCEPOST_PORT",
            "FENCEPOST_PORT_8080_TCP",
            "FENCEPOST_PORT_8080_TCP_ADDR",
            "FENCEPOST_TEST_DATABASE_URL",
            "FENCEPOST_SOAK_SEED",
        ];
        assert_eq!(refused(VARIABLES.iter().copied().chain(others)), None);
    }
}
