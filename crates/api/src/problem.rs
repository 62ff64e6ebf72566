//! Every answer that is not a success: RFC 9457 `application/problem+json`.
//!
//! A program tells problems apart by [`Code`], which is stable, and the fields by their own codes. The
//! words are for people and may change. What went wrong inside is logged once, where the request
//! ends (`request_log`), and never answered.

mod code;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use domain::rate_limit::RateLimit;
use serde::Serialize;
use store::StoreError;
use store::rate_limit::Limiter;
use utoipa::ToSchema;

use crate::batches::NotAnswered;
use crate::committer::NotAccepted;
use crate::rate_limit::NotReserved;

pub(crate) use code::Code;

/// The media type of every problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request did not succeed.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    extension: Option<Extension>,
    /// Boxed because it is rare and large.
    header: Option<Box<(HeaderName, HeaderValue)>>,
    cause: Option<String>,
}

/// What is wrong with one field, query parameter or header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// Its name in the API.
    #[schema(value_type = String)]
    pub(crate) field: Cow<'static, str>,
    /// Which rule it breaks: stable.
    #[schema(value_type = String)]
    pub(crate) code: &'static str,
    /// The rule in words, naming its limit.
    pub(crate) message: String,
}

/// Members that some problems have beside those of RFC 9457.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Extension {
    /// The state of the delivery that refuses.
    State { state: &'static str },
    /// Where a text stops being JSON.
    Position { line: usize, column: usize },
    /// The limit that was passed.
    Limit { limit_bytes: usize },
    /// Which limit is spent, and what it is.
    RateLimit { scope: &'static str, limit: u32, window_seconds: u64 },
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
    #[serde(flatten)]
    extension: Option<Extension>,
}

impl Problem {
    /// The problem of this code, in the words of its summary.
    pub(crate) fn new(code: Code) -> Self {
        let detail = Cow::Borrowed(code.summary());
        let problem =
            Self { code, detail, errors: Vec::new(), extension: None, header: None, cause: None };
        match code {
            Code::KeyMissing => {
                problem.header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            Code::KeyUnknown => problem.header(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer error=\"invalid_token\""),
            ),
            Code::IdempotencyKeyInProgress
            | Code::EventInProgress
            | Code::DatabaseUnavailable
            | Code::Overloaded => problem.header(RETRY_AFTER, HeaderValue::from_static("1")),
            _ => problem,
        }
    }

    /// Fields, parameters or headers break a rule.
    pub(crate) fn of_fields(code: Code, errors: Vec<FieldError>) -> Self {
        Self { errors, ..Self::new(code) }
    }

    /// A limit is spent. `wait` is how long its window goes on.
    pub(crate) fn rate_limited(limiter: Limiter, limit: RateLimit, wait: Duration) -> Self {
        let (scope, window_seconds) = (limiter.as_str(), limit.window().as_secs());
        let limit = limit.units();
        // Rounded up: who comes back after that many seconds meets the next window.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::new(Code::RateLimited)
            .detail(format!("the budget of this {scope}, {limit} in {window_seconds} s, is spent"))
            .extended(Extension::RateLimit { scope, limit, window_seconds })
            .header(RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    /// A fault of ours. The cause is logged and not answered.
    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        Self::new(Code::Internal).caused_by(cause.to_string())
    }

    /// With these words instead of the summary.
    pub(crate) fn detail(self, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// With these members.
    pub(crate) fn extended(self, extension: Extension) -> Self {
        Self { extension: Some(extension), ..self }
    }

    /// With this header.
    pub(crate) fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { header: Some(Box::new((name, value))), ..self }
    }

    /// With a cause for the log.
    pub(crate) fn caused_by(self, cause: String) -> Self {
        Self { cause: Some(cause), ..self }
    }

    /// Its code.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// What went wrong inside, for the log only.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl FieldError {
    /// An error of that field.
    pub(crate) fn new(
        field: impl Into<Cow<'static, str>>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), code, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.code.status()
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.code.status();
        let mut response = HttpResponse::build(status);
        response.content_type(PROBLEM_JSON);
        if let Some((name, value)) = self.header.as_deref() {
            response.insert_header((name.clone(), value.clone()));
        }
        response.json(Document {
            // With this type the title is the status in words (RFC 9457, section 4.2.1).
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            code: self.code.as_str(),
            detail: &self.detail,
            errors: &self.errors,
            extension: self.extension,
        })
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<&StoreError> for Problem {
    fn from(error: &StoreError) -> Self {
        let code = if error.is_transient() { Code::DatabaseUnavailable } else { Code::Internal };
        Self::new(code).caused_by(error.chain())
    }
}

impl From<NotAnswered> for Problem {
    fn from(why: NotAnswered) -> Self {
        match why {
            NotAnswered::Failed(error) => Self::from(error.as_ref()),
            NotAnswered::Lost => Self::internal("a statement ended without an answer"),
        }
    }
}

impl From<NotAccepted> for Problem {
    fn from(why: NotAccepted) -> Self {
        match why {
            NotAccepted::QueueFull => Self::new(Code::Overloaded),
            NotAccepted::Failed(error) => Self::from(error.as_ref()),
            NotAccepted::Lost => Self::internal("a flush ended without an answer"),
        }
    }
}

impl From<NotReserved> for Problem {
    fn from(why: NotReserved) -> Self {
        match why {
            NotReserved::QueueFull => Self::new(Code::Overloaded),
            NotReserved::Failed(error) => Self::from(error.as_ref()),
            NotReserved::Lost => Self::internal("a reservation ended without an answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::MessageBody;

    use super::*;

    fn rendered(problem: &Problem) -> (HttpResponse<()>, serde_json::Value) {
        let (head, body) = problem.error_response().into_parts();
        let bytes = body.try_into_bytes().unwrap();
        (head, serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn a_problem_is_rendered_with_its_code_fields_and_members() {
        let errors = vec![FieldError::new("url", "url_not_http", "starts with http")];
        let problem = Problem::of_fields(Code::BodyInvalid, errors)
            .extended(Extension::Limit { limit_bytes: 7 });
        let (head, document) = rendered(&problem);
        assert_eq!(head.headers().get("content-type").unwrap(), PROBLEM_JSON);
        assert_eq!(
            document,
            serde_json::json!({
                "type": "about:blank",
                "title": "Unprocessable Entity",
                "status": 422,
                "code": "body_invalid",
                "detail": Code::BodyInvalid.summary(),
                "errors": [{"field": "url", "code": "url_not_http", "message": "starts with http"}],
                "limit_bytes": 7,
            })
        );
    }

    #[test]
    fn what_went_wrong_inside_is_for_the_log_and_never_answered() {
        let source = "password=hunter2".into();
        let lost = StoreError::Unavailable { operation: "accept", source };
        let problem = Problem::from(lost);
        let (head, document) = rendered(&problem);
        assert_eq!(head.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(head.headers().get("retry-after").unwrap(), "1");
        assert_eq!(document["code"], "database_unavailable");
        assert!(!document.to_string().contains("hunter2"));
        assert!(problem.cause().unwrap().contains("hunter2"));
    }

    #[test]
    fn what_waiting_mends_says_how_long_to_wait() {
        for code in [Code::IdempotencyKeyInProgress, Code::DatabaseUnavailable, Code::Overloaded] {
            let (head, _) = rendered(&Problem::new(code));
            assert_eq!(head.headers().get("retry-after").unwrap(), "1", "{}", code.as_str());
        }
        let (head, _) = rendered(&Problem::new(Code::IdempotencyKeyReused));
        assert_eq!(head.headers().get("retry-after"), None);
    }

    #[test]
    fn a_spent_limit_is_named_with_the_time_until_its_window_ends_rounded_up() {
        let limit = RateLimit::new(600, Duration::from_secs(60)).unwrap();
        for (wait_ms, seconds) in [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (60_000, "60")] {
            let wait = Duration::from_millis(wait_ms);
            let problem = Problem::rate_limited(Limiter::Endpoint, limit, wait);
            let (head, document) = rendered(&problem);
            assert_eq!(head.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(head.headers().get("retry-after").unwrap(), seconds);
            assert_eq!(document["code"], "rate_limited");
            assert_eq!(document["scope"], "endpoint");
            assert_eq!(
                (&document["limit"], &document["window_seconds"]),
                (&600.into(), &60.into())
            );
        }
    }

    #[test]
    fn a_fault_that_waiting_does_not_mend_is_a_500() {
        let row = "secret-row".to_owned();
        let fault = StoreError::Corrupt { table: "deliveries", column: "state", row };
        let (head, document) = rendered(&Problem::from(fault));
        assert_eq!(head.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(document["code"], "internal");
        assert!(!document.to_string().contains("secret-row"));
    }
}
