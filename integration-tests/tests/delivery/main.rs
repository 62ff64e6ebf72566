//! Deliveries from the api to the receiver, through real processes on a real PostgreSQL.

mod all_payloads;
mod gone;
mod group_commit;
mod history;
mod idempotency;
mod inbound;
mod killed_worker;
mod lapses;
mod lost_database;
mod observability;
mod outcomes;
mod pooler;
mod previous_release;
mod rate_limits;
mod secrets;
mod service;
mod stopped_worker;
mod wake_up;
