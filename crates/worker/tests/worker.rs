//! The whole worker on a real store: an SQLite file, and receivers on loopback.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in what it shares"
)]

mod worker {
    mod bench;
    mod database_away;
    mod delivering;
    mod delivery_rate;
    mod faulty_store;
    mod site;
    mod stopping;
    mod upkeep;
    mod wake_up;
}
