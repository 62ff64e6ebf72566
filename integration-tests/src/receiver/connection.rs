use std::io;
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::answer::{Body, Kind, Response};
use super::log::Log;
use super::{Answer, Request, request};

const CHUNK_BYTES: usize = 16 * 1024;

pub(super) type Script = dyn Fn(&Request, usize) -> Answer + Send + Sync;

pub(super) struct Service {
    pub(super) script: Box<Script>,
    pub(super) log: Arc<Log>,
}

/// Serves every connection on a task of its own until `stopped`. The tasks end with the runtime.
pub(super) async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    stopped: impl Future<Output = ()>,
) {
    let serving = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        for number in 1.. {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream, number, Arc::clone(&service)));
        }
        Ok::<_, io::Error>(())
    };
    tokio::select! {
        () = stopped => {}
        Err(error) = serving => report(&format!("accepts no more: {error}")),
    }
}

async fn serve(mut stream: TcpStream, number: u64, service: Arc<Service>) {
    let mut buffer = BytesMut::with_capacity(CHUNK_BYTES);
    loop {
        let request = match request::read(&mut stream, &mut buffer, number).await {
            Ok(Some(request)) => Arc::new(request),
            Ok(None) => return,
            // Of a client killed in the middle of a request this is the expected trace.
            Err(error) => return report(&format!("connection {number}: {error:#}")),
        };
        let nth = service.log.record(Arc::clone(&request));
        let answer = (service.script)(&request, nth);
        // A client that is gone before its answer is complete needs no more of it.
        match perform(answer, &mut stream, &mut buffer).await {
            Ok(ControlFlow::Continue(())) if !request.is_last() => {}
            _ => return,
        }
    }
}

/// Whether the connection can take another request afterwards.
async fn perform(
    answer: Answer,
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> io::Result<ControlFlow<()>> {
    if let Some(hold) = &answer.hold {
        tokio::select! {
            () = hold.released() => {}
            () = gone(stream, buffer) => return Ok(ControlFlow::Break(())),
        }
    }
    match answer.kind {
        Kind::Respond => {
            respond(&answer.response, stream).await?;
            return Ok(ControlFlow::Continue(()));
        }
        Kind::Raw(bytes) => stream.write_all(&bytes).await?,
        Kind::Stall => gone(stream, buffer).await,
        Kind::Reset => stream.set_zero_linger()?,
        Kind::Close => {}
    }
    Ok(ControlFlow::Break(()))
}

async fn respond(response: &Response, stream: &mut TcpStream) -> io::Result<()> {
    let head = response.head();
    match &response.body {
        // One segment for the ordinary answer: two would wait for the client's delayed acknowledgement.
        Body::Sized(body) if response.head_pause.is_none() && response.body_pause.is_none() => {
            let mut whole = head;
            whole.extend_from_slice(body);
            stream.write_all(&whole).await
        }
        Body::Sized(body) => {
            write(stream, &head, response.head_pause).await?;
            write(stream, body, response.body_pause).await
        }
        Body::Endless => {
            write(stream, &head, response.head_pause).await?;
            let chunk = chunk();
            loop {
                stream.write_all(&chunk).await?;
                if let Some(pause) = response.body_pause {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// All at once, or byte by byte: the pause is the fault that is being acted, nothing is waited for.
async fn write(stream: &mut TcpStream, bytes: &[u8], pause: Option<Duration>) -> io::Result<()> {
    let Some(pause) = pause else {
        return stream.write_all(bytes).await;
    };
    stream.set_nodelay(true)?;
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

fn chunk() -> Bytes {
    let mut chunk = format!("{CHUNK_BYTES:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + CHUNK_BYTES, b'.');
    chunk.extend_from_slice(b"\r\n");
    chunk.into()
}

/// Ends when the client has ended the connection. What it still sends is kept for the next request.
async fn gone(stream: &mut TcpStream, buffer: &mut BytesMut) {
    while let Ok(1..) = stream.read_buf(buffer).await {}
}

/// Into the output of the test, whose capture a thread inherits.
fn report(what: &str) {
    eprintln!("receiver: {what}");
}
