//! Api and worker as what they are in production: processes, which can be asked to stop and can be killed.
//!
//! ```no_run
//! # use integration_tests::{postgres::TestPostgres, process::{Api, Settings, Worker}};
//! # macro_rules! api_binary { () => { "" } }
//! # macro_rules! worker_binary { () => { "" } }
//! # async fn example() -> anyhow::Result<()> {
//! let database = TestPostgres::shared().await?.database().await?;
//! let settings = Settings::new(database.url());
//! let api = Api::start(api_binary!(), &settings).await?;
//! let mut worker = Worker::start(worker_binary!(), "worker 1", &settings).await?;
//! // … submit to `api.url` …
//! worker.process.kill().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Their last lines are shown when the test that owns them fails.

mod api;
mod child;
mod output;
mod parent;
mod settings;
mod worker;

pub use self::api::Api;
pub use self::child::ChildProcess;
pub use self::parent::end_with_the_test;
pub use self::settings::Settings;
pub use self::worker::Worker;

/// The path of this package's own api binary; only its integration tests know it.
#[macro_export]
macro_rules! api_binary {
    () => {
        env!("CARGO_BIN_EXE_test-api")
    };
}

/// The path of this package's own worker binary; only its integration tests know it.
#[macro_export]
macro_rules! worker_binary {
    () => {
        env!("CARGO_BIN_EXE_test-worker")
    };
}
