//! How a command ended.

use std::process::ExitCode;

use serde::Serialize;

/// The exit code of a process that was asked to crash.
pub(crate) const CRASHED: i32 = 23;

#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The tables and the endpoint are there. Secrets are told by whoever made them, once.
    Initialized {
        endpoint_id: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sealing_key: Option<String>,
    },
    /// It was taken from the stock, and its webhook is owed.
    Accepted { op_key: String, sku: String, quantity: i64, available: i64, submission_id: String },
    /// The same operation was accepted before. Nothing was taken.
    Replayed { op_key: String, sku: String, quantity: i64 },
    /// There is less than that. The key is free: the same operation may succeed later.
    Insufficient { op_key: String, sku: String, quantity: i64 },
    /// The key stands for another operation. Nothing was taken.
    Conflict { op_key: String },
    /// Put into the stock.
    Restocked { sku: String, available: i64 },
    /// What there is.
    Shown { stock: Vec<Stock>, reservations: Vec<Reservation> },
    /// What was asked for is not acceptable. Nothing was written.
    Invalid { field: &'static str, message: String },
    /// It is not known whether it was done: ask again with the same key.
    Failed { message: String },
}

#[derive(Debug, Serialize)]
pub(crate) struct Stock {
    pub(crate) sku: String,
    pub(crate) available: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reservation {
    pub(crate) op_key: String,
    pub(crate) sku: String,
    pub(crate) quantity: i64,
}

impl Answer {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Initialized { .. }
            | Self::Accepted { .. }
            | Self::Replayed { .. }
            | Self::Restocked { .. }
            | Self::Shown { .. } => ExitCode::SUCCESS,
            Self::Failed { .. } => ExitCode::FAILURE,
            Self::Invalid { .. } => ExitCode::from(2),
            Self::Insufficient { .. } => ExitCode::from(3),
            Self::Conflict { .. } => ExitCode::from(4),
        }
    }
}
