use std::time::Instant;

use anyhow::Context as _;
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// One request as it came over the wire.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// In the order and the case in which they were sent.
    pub headers: Vec<(String, Bytes)>,
    pub body: Bytes,
    /// When its last byte had been read.
    pub arrived_at: Instant,
    /// Which connection of the receiver it came on, counted from 1.
    pub connection: u64,
}

impl Request {
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// The first header of that name, in any case, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(sent, _)| sent.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }

    /// Whether the client asked for the connection to end with this request.
    pub(super) fn is_last(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The next request of a connection, `None` where the client ended it between two requests. `buffer` holds
/// what was read beyond the previous one.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    connection: u64,
) -> anyhow::Result<Option<Request>> {
    let head_length = loop {
        if let Some(end) = buffer.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END) {
            break end;
        }
        anyhow::ensure!(buffer.len() <= HEAD_BYTES_MAX, "a head of over {HEAD_BYTES_MAX} bytes");
        if stream.read_buf(buffer).await? == 0 {
            anyhow::ensure!(buffer.is_empty(), "the connection ended inside a head");
            return Ok(None);
        }
    };
    let head = buffer.split_to(head_length);
    buffer.advance(HEAD_END.len());
    let mut request = parse_head(&head, connection)?;

    let length = body_length(&request)?;
    while buffer.len() < length {
        buffer.reserve(length - buffer.len());
        let read = stream.read_buf(buffer).await?;
        anyhow::ensure!(read > 0, "the connection ended inside a body");
    }
    request.body = buffer.split_to(length).freeze();
    request.arrived_at = Instant::now();
    Ok(Some(request))
}

fn parse_head(head: &[u8], connection: u64) -> anyhow::Result<Request> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let first = std::str::from_utf8(lines.next().unwrap_or_default())?;
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        anyhow::bail!("not a request of HTTP/1.1: {first:?}");
    };
    let headers = lines
        .map(|line| {
            let colon =
                line.iter().position(|byte| *byte == b':').context("a header without a colon")?;
            let (name, value) = line.split_at(colon);
            let value = Bytes::copy_from_slice(value[1..].trim_ascii());
            Ok((std::str::from_utf8(name)?.to_owned(), value))
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: Bytes::new(),
        arrived_at: Instant::now(),
        connection,
    })
}

fn body_length(request: &Request) -> anyhow::Result<usize> {
    // A webhook is sent with its length; a client that began to chunk them should be noticed.
    anyhow::ensure!(
        request.header("transfer-encoding").is_none(),
        "a body without a length is not understood here"
    );
    let length = request.header("content-length").map_or(Ok(0), str::parse)?;
    anyhow::ensure!(length <= BODY_BYTES_MAX, "a body of over {BODY_BYTES_MAX} bytes");
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut bytes: &[u8]) -> anyhow::Result<Vec<Request>> {
        let mut buffer = BytesMut::new();
        let mut requests = Vec::new();
        while let Some(request) = read(&mut bytes, &mut buffer, 1).await? {
            requests.push(request);
        }
        Ok(requests)
    }

    #[tokio::test]
    async fn order_case_and_body_are_kept() {
        let requests = read_all(
            b"POST /hook?x=1 HTTP/1.1\r\nWebhook-Id: a\r\nhost:  h \r\nContent-Length: 4\r\n\r\n\x00\r\n\xffGET / HTTP/1.1\r\n\r\n",
        )
        .await
        .unwrap();
        let [post, get] = &requests[..] else { panic!("{requests:?}") };
        assert_eq!((post.method.as_str(), post.target.as_str()), ("POST", "/hook?x=1"));
        assert_eq!(post.path(), "/hook");
        assert_eq!(post.headers[0], ("Webhook-Id".to_owned(), Bytes::from("a")));
        assert_eq!(post.headers[1], ("host".to_owned(), Bytes::from("h")));
        assert_eq!(post.body, b"\x00\r\n\xff"[..]);
        assert_eq!((get.path(), get.headers.len(), get.body.len()), ("/", 0, 0));
    }

    #[tokio::test]
    async fn what_is_cut_or_not_http_is_an_error() {
        let broken: [&[u8]; 5] = [
            b"POST / HTTP/1.1\r\ncontent-le",
            b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nabc",
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nno colon\r\n\r\n",
            b"\x16\x03\x01\r\n\r\n",
        ];
        for bytes in broken {
            assert!(read_all(bytes).await.is_err(), "{}", bytes.escape_ascii());
        }
    }
}
