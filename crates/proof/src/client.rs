//! One keep-alive connection to an api, as light as it can be: what the load costs is taken from what
//! is measured.

use std::net::SocketAddr;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// An open connection, on the runtime that opened it.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("the api cannot be reached")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> anyhow::Result<Response<Bytes>> {
        self.sender.ready().await.context("the api closed a connection")?;
        let response = self.sender.send_request(request).await.context("no answer")?;
        let (head, body) = response.into_parts();
        let body: Incoming = body;
        let body = body.collect().await.context("an answer broke off")?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}
