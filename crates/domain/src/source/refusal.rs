//! Why a request was not accepted as one of the source's.

/// Why a request did not prove where it comes from.
///
/// It is for the operator of the source. The sender is told that it failed and nothing else, since
/// each of these tells a forger what to try next. It never holds any part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A header that the scheme reads is not there.
    #[error("the header `{header}` is missing")]
    HeaderMissing {
        /// Its name in lower case.
        header: String,
    },
    /// A header that the scheme reads is there more than once, so that it is not clear which counts.
    #[error("the header `{header}` is given more than once")]
    HeaderRepeated {
        /// Its name in lower case.
        header: String,
    },
    /// A header that the scheme reads is longer than any of its values can be.
    #[error("the header `{header}` is longer than {limit} bytes")]
    HeaderTooLong {
        /// Its name in lower case.
        header: String,
        /// The most bytes that are read.
        limit: usize,
    },
    /// A header has another form than the scheme gives it.
    #[error("the header `{header}` is not {expected}")]
    HeaderMalformed {
        /// Its name in lower case.
        header: String,
        /// What it should have been.
        expected: &'static str,
    },
    /// The header holds more signatures than are tried.
    #[error("the header `{header}` holds more than {limit} signatures")]
    SignaturesTooMany {
        /// Its name in lower case.
        header: String,
        /// The most that are tried.
        limit: usize,
    },
    /// The time that was signed is no time.
    #[error("the signed time is not a number of seconds since the Unix epoch")]
    TimestampMalformed,
    /// It was signed longer ago than the tolerance allows.
    #[error("it was signed {by_seconds} s longer ago than the tolerance allows")]
    Stale {
        /// Seconds beyond the tolerance, at least 1.
        by_seconds: u64,
    },
    /// It was signed further in the future than the tolerance allows: one of the two clocks is wrong.
    #[error("it was signed {by_seconds} s further ahead than the tolerance allows")]
    NotYetValid {
        /// Seconds beyond the tolerance, at least 1.
        by_seconds: u64,
    },
    /// The scheme cannot cover a body of this kind, and the sender did not cover it otherwise.
    #[error("the body is not covered by the signature: {missing}")]
    BodyNotCovered {
        /// What would have covered it.
        missing: &'static str,
    },
    /// Well-formed, but made with none of the live secrets over this content.
    #[error("no signature matches: another secret, or other bytes than those that were signed")]
    Mismatch,
    /// The source has no live secret that the scheme can use.
    #[error("the source has no live secret")]
    NoSecret,
}

impl Refusal {
    /// The stable name of this reason, for lists and counters.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeaderMissing { .. } => "header_missing",
            Self::HeaderRepeated { .. } => "header_repeated",
            Self::HeaderTooLong { .. } => "header_too_long",
            Self::HeaderMalformed { .. } => "header_malformed",
            Self::SignaturesTooMany { .. } => "signatures_too_many",
            Self::TimestampMalformed => "timestamp_malformed",
            Self::Stale { .. } => "stale",
            Self::NotYetValid { .. } => "not_yet_valid",
            Self::BodyNotCovered { .. } => "body_not_covered",
            Self::Mismatch => "mismatch",
            Self::NoSecret => "no_secret",
        }
    }
}
