//! Structured logs on standard error, so that standard output stays for answers.

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// Sends logs to standard error: lines for people on a terminal, JSON elsewhere.
///
/// `RUST_LOG` chooses what is logged; where it is not set, what a service should tell: [`SERVICE`].
/// Calling it twice does nothing.
pub fn init_log() {
    init_log_with(SERVICE);
}

/// What a service logs: everything from `info` on, but of the web server's own only warnings.
pub const SERVICE: &str = "info,actix_server=warn";

/// The same, with another default.
pub fn init_log_with(default: &str) {
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter(default)).with_writer(std::io::stderr);
    // A second call finds a subscriber in place, which is what it wanted.
    let _ = if std::io::stderr().is_terminal() {
        builder.try_init()
    } else {
        builder.json().try_init()
    };
}

/// What [`init_log`] sets up, for who hears of spans beside the log.
pub fn log_layer<S>() -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        layer.with_filter(filter(SERVICE)).boxed()
    } else {
        layer.json().with_filter(filter(SERVICE)).boxed()
    }
}

/// The target of events that are for others than the log, whatever `RUST_LOG` says.
pub const UNLOGGED: &str = "fencepost::unlogged";

fn filter(default: &str) -> EnvFilter {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    match format!("{UNLOGGED}=off").parse() {
        Ok(unlogged) => filter.add_directive(unlogged),
        Err(_) => filter,
    }
}
