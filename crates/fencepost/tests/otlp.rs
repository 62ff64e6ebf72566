//! A collector is told of an accepted submission and of its attempt, as one trace.
#![cfg(feature = "otlp")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Long beside anything that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// Takes requests, answers each with 200 and an empty object, and hands their heads and bodies on.
fn stub() -> anyhow::Result<(SocketAddr, Receiver<(String, Vec<u8>)>)> {
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
fn take(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<(String, Vec<u8>)>> {
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

/// Posts JSON, and answers what was answered.
fn post(address: &str, key: &str, path: &str, body: &str) -> anyhow::Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    ensure!(head.starts_with("HTTP/1.1 20"), "{answer}");
    Ok(serde_json::from_str(body)?)
}

fn spans(batch: &Value) -> impl Iterator<Item = &Value> {
    batch["resourceSpans"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|resource| resource["scopeSpans"].as_array().into_iter().flatten())
        .flat_map(|scope| scope["spans"].as_array().into_iter().flatten())
}

#[test]
fn a_collector_is_told_of_a_submission_and_its_attempt_as_one_trace() -> anyhow::Result<()> {
    let (collector, batches) = stub()?;
    let (receiver, deliveries) = stub()?;
    let folder = tempfile::tempdir()?;
    let mut server = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .arg("serve")
        .current_dir(folder.path())
        .env_remove("DATABASE_URL")
        .env("FENCEPOST_LISTEN", "127.0.0.1:0")
        .env("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:0")
        .env("FENCEPOST_WORKER_PRIVATE_LISTEN", "127.0.0.1:0")
        .env("FENCEPOST_ALLOW_NETWORKS", "127.0.0.0/8")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}"))
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("its output")?).lines();
    let mut line = |start: &str| -> anyhow::Result<String> {
        let found = lines.by_ref().map_while(Result::ok);
        let mut found = found.filter_map(|line| line.strip_prefix(start).map(str::to_owned));
        found.next().with_context(|| format!("no line begins with {start}"))
    };
    let address = line("listening http://")?;
    let address = address.split(' ').next().context("an address")?;
    let key = line("admin key, shown once: ")?;

    let endpoint = format!("{{\"id\":\"orders\",\"url\":\"http://{receiver}/\"}}");
    post(address, &key, "/v1/endpoints", &endpoint)?;
    let accepted = post(address, &key, "/v1/endpoints/orders/submissions", "{\"n\":1}")?;
    let submission = accepted["submission_id"].as_str().context("an id")?;
    deliveries.recv_timeout(LONG).context("it is delivered")?;

    let trace = submission.replace('-', "");
    let (mut request, mut delivery) = (None, None);
    while request.is_none() || delivery.is_none() {
        let (head, batch) = batches.recv_timeout(LONG).context("the collector is told")?;
        ensure!(head.starts_with("POST /v1/traces "), "{head}");
        let batch: Value = serde_json::from_slice(&batch)?;
        for span in spans(&batch).filter(|span| span["traceId"] == trace.as_str()) {
            match span["name"].as_str() {
                Some("request") => request = Some(span.clone()),
                Some("delivery") => delivery = Some(span.clone()),
                _ => {}
            }
        }
    }
    let (request, delivery) = (request.context("a request")?, delivery.context("a delivery")?);
    assert_eq!(delivery["parentSpanId"], request["spanId"], "{request} {delivery}");
    assert_ne!(delivery["spanId"], request["spanId"]);
    server.kill()?;
    server.wait()?;
    Ok(())
}
