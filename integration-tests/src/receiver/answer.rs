use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::Hold;

/// What the receiver does with one request.
///
/// [`header`](Self::header), [`body`](Self::body), [`drip_head`](Self::drip_head),
/// [`drip_body`](Self::drip_body) and [`endless_body`](Self::endless_body) shape a response; an answer
/// that is no response ([`stall`](Self::stall), [`reset`](Self::reset), [`close`](Self::close),
/// [`raw`](Self::raw)) ignores them. Each can be held back.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    pub(super) kind: Kind,
    pub(super) response: Response,
    pub(super) hold: Option<Hold>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Respond,
    Raw(Bytes),
    Stall,
    Reset,
    Close,
}

#[derive(Clone, Debug)]
pub(super) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) head_pause: Option<Duration>,
    pub(super) body_pause: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Sized(Bytes),
    /// Chunks, without an end.
    Endless,
}

impl Answer {
    /// A response with that status, no headers of its own and an empty body.
    pub fn status(status: u16) -> Self {
        let response = Response {
            status,
            headers: Vec::new(),
            body: Body::Sized(Bytes::new()),
            head_pause: None,
            body_pause: None,
        };
        Self { kind: Kind::Respond, response, hold: None }
    }

    pub fn redirect(status: u16, location: &str) -> Self {
        Self::status(status).header("location", location)
    }

    /// These bytes as they are, then the end of the connection: a head that is no head, a body shorter than
    /// it claims.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::instead(Kind::Raw(bytes.into()))
    }

    /// Takes the request and says nothing, until the client gives up.
    pub fn stall() -> Self {
        Self::instead(Kind::Stall)
    }

    /// Cuts the connection with an RST.
    pub fn reset() -> Self {
        Self::instead(Kind::Reset)
    }

    /// Ends the connection in order (FIN), without a word.
    pub fn close() -> Self {
        Self::instead(Kind::Close)
    }

    /// A `content-length` given here replaces the true one.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.response.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.response.body = Body::Sized(body.into());
        self
    }

    pub fn endless_body(mut self) -> Self {
        self.response.body = Body::Endless;
        self
    }

    /// The head one byte at a time, with this pause after each.
    pub fn drip_head(mut self, pause: Duration) -> Self {
        self.response.head_pause = Some(pause);
        self
    }

    /// A sized body one byte at a time, with this pause after each; of an endless one each chunk.
    pub fn drip_body(mut self, pause: Duration) -> Self {
        self.response.body_pause = Some(pause);
        self
    }

    /// Does all this only when `hold` lets it.
    pub fn hold(mut self, hold: &Hold) -> Self {
        self.hold = Some(hold.clone());
        self
    }

    fn instead(kind: Kind) -> Self {
        Self { kind, ..Self::status(200) }
    }
}

impl From<u16> for Answer {
    fn from(status: u16) -> Self {
        Self::status(status)
    }
}

impl Response {
    pub(super) fn head(&self) -> Vec<u8> {
        let reason =
            StatusCode::from_u16(self.status).ok().and_then(|code| code.canonical_reason());
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or_default());
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        match &self.body {
            Body::Endless => head.push_str("transfer-encoding: chunked\r\n"),
            Body::Sized(body) if self.states_its_length() => {
                head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
            }
            Body::Sized(_) => {}
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn states_its_length(&self) -> bool {
        let bodiless = matches!(self.status, 100..200 | 204 | 304);
        let given =
            self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        !bodiless && !given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(answer: &Answer) -> String {
        String::from_utf8(answer.response.head()).unwrap()
    }

    #[test]
    fn a_response_states_the_length_of_its_body() {
        let answer = Answer::status(429).header("Retry-After", "7").body("wait");
        let expected =
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\ncontent-length: 4\r\n\r\n";
        assert_eq!(head(&answer), expected);
    }

    #[test]
    fn a_length_that_was_given_or_is_forbidden_is_not_added() {
        let lying = Answer::status(200).header("Content-Length", "9").body("x");
        assert_eq!(head(&lying), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
        assert_eq!(head(&Answer::status(204)), "HTTP/1.1 204 No Content\r\n\r\n");
    }
}
