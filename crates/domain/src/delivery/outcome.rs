//! What one try yielded.

use std::time::Duration;

/// What one try yielded, as far as a decision needs it.
///
/// Evidence for people (the answer's body, a failure's text) travels beside it, see the store's
/// `Evidence`, and never takes part in the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A response head arrived.
    Answered {
        /// The status code.
        status: u16,
        /// What `Retry-After` asked for, if it was valid (RFC 9110, section 10.2.3).
        retry_after: Option<Duration>,
    },
    /// No response was had.
    Unanswered(Failure),
}

/// Why there was no response. Each has its own code in the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The whole-call deadline passed before a response head arrived.
    TimedOut,
    /// No connection stood within the connect deadline.
    ConnectTimedOut,
    /// The connection was refused or could not be made.
    ConnectFailed,
    /// The name could not be resolved.
    DnsFailed,
    /// The TLS handshake failed, for instance on the certificate.
    TlsFailed,
    /// The connection ended after it stood and before a response head arrived.
    ConnectionClosed,
    /// What arrived is not an HTTP response.
    ResponseInvalid,
    /// The address policy refused the destination; nothing was sent.
    AddressRefused,
    /// Fencepost could not build the request, for instance because a secret cannot be unsealed.
    Unsendable,
}

impl Failure {
    /// Every failure, for tables and tests.
    pub const ALL: [Self; 9] = [
        Self::TimedOut,
        Self::ConnectTimedOut,
        Self::ConnectFailed,
        Self::DnsFailed,
        Self::TlsFailed,
        Self::ConnectionClosed,
        Self::ResponseInvalid,
        Self::AddressRefused,
        Self::Unsendable,
    ];

    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::ConnectTimedOut => "connect_timed_out",
            Self::ConnectFailed => "connect_failed",
            Self::DnsFailed => "dns_failed",
            Self::TlsFailed => "tls_failed",
            Self::ConnectionClosed => "connection_closed",
            Self::ResponseInvalid => "response_invalid",
            Self::AddressRefused => "address_refused",
            Self::Unsendable => "unsendable",
        }
    }
}

impl Outcome {
    /// The name in answers and logs: `answered`, or that of the failure.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Unanswered(failure) => failure.as_str(),
        }
    }

    /// The status code, if there was a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } => Some(*status),
            Self::Unanswered(_) => None,
        }
    }
}
