//! A receiver whose answer depends on the path and on how often it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A request as far as these tests look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) webhook_id: String,
    pub(crate) body: Vec<u8>,
}

/// What the receiver does with a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// Answers with this status at once.
    Status(u16),
    /// Answers with 200 when the site is released.
    Held,
}

/// A listening receiver.
#[derive(Debug)]
pub(crate) struct Site {
    port: u16,
    log: Arc<Mutex<Vec<Seen>>>,
    released: watch::Sender<bool>,
}

impl Site {
    /// `reply` is asked for each request, with how many of that path came before.
    pub(crate) async fn new(reply: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let log = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let (released, watch) = watch::channel(false);
        let (seen, reply) = (Arc::clone(&log), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, reply, mut watch) =
                    (Arc::clone(&seen), Arc::clone(&reply), watch.clone());
                tokio::spawn(async move {
                    while let Some(request) = read(&mut stream).await {
                        let before = {
                            let mut seen = seen.lock().unwrap();
                            let before = seen.iter().filter(|it| it.path == request.path).count();
                            seen.push(request.clone());
                            before
                        };
                        let status = match reply(&request, before) {
                            Reply::Status(status) => status,
                            Reply::Held => {
                                let _ = watch.wait_for(|released| *released).await;
                                200
                            }
                        };
                        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, log, released }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// Answers all that is held, and all that will be.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let header = |name: &str| {
                let value = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                value.unwrap_or_default().to_owned()
            };
            let length: usize = header("content-length").parse().unwrap();
            if bytes.len() - end - 4 == length {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                let body = bytes[end + 4..].to_vec();
                return Some(Seen { path, webhook_id: header("webhook-id"), body });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
