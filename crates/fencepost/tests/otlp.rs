//! A collector is told of an accepted submission and of its attempt, as one trace.
#![cfg(feature = "otlp")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Long beside anything that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// The head and the body of a request.
type Request = (String, Vec<u8>);

/// Takes requests, answers each with 200 and an empty object, and hands their heads and bodies on.
fn stub() -> anyhow::Result<(SocketAddr, Receiver<Request>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Ok(Some(request)) = take(&mut stream) {
                    let _ = sender.send(request);
                }
            });
        }
    });
    Ok((address, requests))
}

/// One request; none at the end of the connection.
fn take(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<Request>> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if stream.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let line = head[start..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    stream.get_mut().write_all(answer.as_bytes())?;
    Ok(Some((head, body)))
}

fn spans(batch: &Value) -> impl Iterator<Item = &Value> {
    batch["resourceSpans"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|resource| resource["scopeSpans"].as_array().into_iter().flatten())
        .flat_map(|scope| scope["spans"].as_array().into_iter().flatten())
}

/// A service that tells a collector. It is killed when it is dropped.
struct Server {
    process: Child,
    address: String,
    key: String,
    batches: Receiver<Request>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// With an endpoint `orders` at that receiver.
    fn start(folder: &Path, receiver: SocketAddr) -> anyhow::Result<Self> {
        let (collector, batches) = stub()?;
        let mut process = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .arg("serve")
            .current_dir(folder)
            .env_remove("DATABASE_URL")
            .env("FENCEPOST_LISTEN", "127.0.0.1:0")
            .env("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:0")
            .env("FENCEPOST_WORKER_PRIVATE_LISTEN", "127.0.0.1:0")
            .env("FENCEPOST_ALLOW_NETWORKS", "127.0.0.0/8")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}"))
            .env("OTEL_BSP_SCHEDULE_DELAY", "50")
            .env("RUST_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(File::create(folder.join("log"))?)
            .spawn()?;
        let output = process.stdout.take().context("its output")?;
        let mut server = Self { process, address: String::new(), key: String::new(), batches };
        let mut lines = BufReader::new(output).lines();
        let mut line = |start: &str| -> anyhow::Result<String> {
            let found = lines.by_ref().map_while(Result::ok);
            let mut found = found.filter_map(|line| line.strip_prefix(start).map(str::to_owned));
            found.next().with_context(|| format!("no line begins with {start}"))
        };
        let address = line("listening http://")?;
        address.split(' ').next().context("an address")?.clone_into(&mut server.address);
        server.key = line("admin key, shown once: ")?;
        let endpoint = format!("{{\"id\":\"orders\",\"url\":\"http://{receiver}/\"}}");
        server.post("/v1/endpoints", "", &endpoint)?;
        Ok(server)
    }

    /// Posts JSON, and answers what was answered.
    fn post(&self, path: &str, header: &str, body: &str) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{header}\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.key,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        ensure!(head.starts_with("HTTP/1.1 20"), "{answer}");
        Ok(serde_json::from_str(body)?)
    }

    /// The trace of a new submission.
    fn submit(&self, header: &str) -> anyhow::Result<String> {
        let accepted = self.post("/v1/endpoints/orders/submissions", header, "{\"n\":1}")?;
        Ok(accepted["submission_id"].as_str().context("an id")?.replace('-', ""))
    }

    /// The first spans of these traces and names that the collector is told of.
    fn told<const N: usize>(&self, wanted: [(&str, &str); N]) -> anyhow::Result<[Value; N]> {
        let mut found = wanted.map(|_| Value::Null);
        while found.iter().any(Value::is_null) {
            let (head, batch) = self.batches.recv_timeout(LONG).context("the collector is told")?;
            ensure!(head.starts_with("POST /v1/traces "), "{head}");
            let batch: Value = serde_json::from_slice(&batch)?;
            for span in spans(&batch) {
                let place = wanted
                    .iter()
                    .position(|it| (span["traceId"] == it.0) && (span["name"] == it.1));
                if let Some(place) = place {
                    found[place] = span.clone();
                }
            }
        }
        Ok(found)
    }
}

#[test]
fn a_collector_is_told_of_a_submission_and_its_attempt_as_one_trace() -> anyhow::Result<()> {
    let (receiver, deliveries) = stub()?;
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path(), receiver)?;
    // What is no span of a caller changes nothing.
    for header in ["", "traceparent: 00-0-0-01\r\n", &format!("{TRACEPARENT}{TRACEPARENT}")] {
        let trace = server.submit(header)?;
        deliveries.recv_timeout(LONG).context("it is delivered")?;
        let [request, delivery] = server.told([(&trace, "request"), (&trace, "delivery")])?;
        assert_eq!(delivery["parentSpanId"], request["spanId"], "{request} {delivery}");
        assert_ne!(delivery["spanId"], request["spanId"]);
        assert!(request["parentSpanId"].as_str().is_none_or(str::is_empty), "{request}");
    }
    Ok(())
}

const CALLERS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str =
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n";

#[test]
fn a_request_is_told_in_its_callers_trace_and_linked_with_the_submissions() -> anyhow::Result<()> {
    let (receiver, deliveries) = stub()?;
    let folder = tempfile::tempdir()?;
    let server = Server::start(folder.path(), receiver)?;
    let trace = server.submit(TRACEPARENT)?;
    let (head, _) = deliveries.recv_timeout(LONG).context("it is delivered")?;
    assert!(!head.to_ascii_lowercase().contains("traceparent"), "{head}");
    let [request, stored, delivery] =
        server.told([(CALLERS_TRACE, "request"), (&trace, "submission"), (&trace, "delivery")])?;
    assert_eq!(request["parentSpanId"], "00f067aa0ba902b7", "{request}");
    assert_eq!(delivery["parentSpanId"], stored["spanId"], "{stored} {delivery}");
    assert_eq!(request["links"][0]["traceId"], trace.as_str(), "{request}");
    assert_eq!(stored["links"][0]["traceId"], CALLERS_TRACE, "{stored}");
    assert_eq!(stored["links"][0]["spanId"], request["spanId"], "{stored}");
    drop(server);
    let log = std::fs::read_to_string(folder.path().join("log"))?;
    assert!(log.contains(&trace[..8]) && !log.contains(CALLERS_TRACE), "no header is logged");
    Ok(())
}
