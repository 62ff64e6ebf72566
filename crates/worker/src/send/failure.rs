//! Why there is no response: the client's error, as one of the domain's failures.

use std::error::Error;
use std::io;
use std::time::Duration;

use domain::delivery::Failure;
use domain::destination::RefusedResolution;

use super::Unanswered;
use super::resolver::ResolveError;

/// The failure that an error of the client stands for, with the words for the endpoint's owner.
pub(super) fn of(error: &reqwest::Error, connect_deadline: Duration) -> Unanswered {
    // The name and the certificate say what is wrong in their own words; elsewhere the chain does.
    if let Some(error) = find::<ResolveError>(error) {
        let failure = match error {
            ResolveError::Refused { refused: RefusedResolution::Address(_), .. } => {
                Failure::AddressRefused
            }
            ResolveError::Refused { refused: RefusedResolution::NoAddress, .. }
            | ResolveError::Failed { .. }
            | ResolveError::TimedOut { .. } => Failure::DnsFailed,
        };
        return Unanswered::new(failure, error.to_string());
    }
    if let Some(error) = find::<rustls::Error>(error) {
        return Unanswered::new(Failure::TlsFailed, format!("the TLS handshake failed: {error}"));
    }
    if error.is_builder() {
        return Unanswered::new(Failure::Unsendable, causes_of(error));
    }
    if error.is_connect() {
        return of_connecting(error, connect_deadline);
    }
    let (failure, what) = match find::<hyper::Error>(error) {
        Some(error) if error.is_parse() => {
            (Failure::ResponseInvalid, "what came is not a response")
        }
        _ => (Failure::ConnectionClosed, "the connection ended before a response"),
    };
    Unanswered::new(failure, format!("{what}: {}", causes_of(error)))
}

fn of_connecting(error: &reqwest::Error, connect_deadline: Duration) -> Unanswered {
    if error.is_timeout() {
        let detail = format!("no connection within {connect_deadline:?}");
        return Unanswered::new(Failure::ConnectTimedOut, detail);
    }
    // A refused or unreachable address has one of the other kinds: these need a connection to break.
    let io_errors = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    let broke = io_errors.map(io::Error::kind).any(|kind| {
        matches!(
            kind,
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::InvalidData
        )
    });
    let (failure, what) = if broke {
        (Failure::TlsFailed, "the TLS handshake failed")
    } else {
        (Failure::ConnectFailed, "no connection")
    };
    Unanswered::new(failure, format!("{what}: {}", causes_of(error)))
}

/// What the client's error was caused by, in one line. The client's own words are left out: they name
/// the URL, and that a request failed.
pub(super) fn causes_of(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes(error).skip(1) {
        let text = cause.to_string();
        let is_noise = text.starts_with("client error (")
            || ["connection error", "tcp connect error"].contains(&text.as_str());
        // Some print their cause with themselves.
        let is_told = texts.last().is_some_and(|last| last.ends_with(&text));
        if !is_noise && !is_told {
            texts.push(text);
        }
    }
    if texts.is_empty() { "the connection failed".to_owned() } else { texts.join(": ") }
}

fn find<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// The error and all that caused it.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| {
        // An I/O error that wraps another gives the source of that one as its own.
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}
