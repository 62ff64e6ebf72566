//! Deliveries from the api to the receiver, through real processes on a real PostgreSQL.

mod all_payloads;
mod group_commit;
mod history;
mod killed_worker;
mod lost_database;
mod outcomes;
mod pooler;
mod rate_limits;
mod service;
mod stopped_worker;
mod wake_up;
