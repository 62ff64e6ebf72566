//! The binary.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use store::api_key::{NewApiKey, Role};
use store::sealing::{Sealer, SealingKey};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::harness::PATIENCE;

fn spawn(database_url: &str) -> Child {
    spawn_with(database_url, &[])
}

fn spawn_with(database_url: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost-api"));
    command
        .env_clear()
        .args(["--listen", "127.0.0.1:0", "--private-listen", "127.0.0.1:0"])
        .args(arguments)
        .env("DATABASE_URL", database_url)
        .env("FENCEPOST_SEALING_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command.spawn().unwrap()
}

fn url_of(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("fencepost.db").display())
}

async fn status_of(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Waits for the one line on standard output, and answers both addresses.
async fn listening(child: &mut Child) -> (String, String) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line").unwrap();
    let line = line.expect("a line");
    let words: Vec<_> = line.split(' ').collect();
    let [listening, public, private, operators] = words[..] else { panic!("{line}") };
    assert_eq!((listening, private), ("listening", "private"));
    let address = |url: &str| url.strip_prefix("http://").unwrap().to_owned();
    (address(public), address(operators))
}

async fn send(signal: &str, child: &Child) {
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
}

async fn stop(mut child: Child, signal: &str) {
    send(signal, &child).await;
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("an end").unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
async fn the_process_tells_where_it_listens_and_stops_on_a_signal() {
    for signal in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        let url = url_of(folder.path());
        store::migrate(&url).await.unwrap();
        let mut child = spawn(&url);
        let (public, private) = listening(&mut child).await;
        assert_eq!(status_of(&public, "/livez").await, "HTTP/1.1 200 OK");
        assert_eq!(status_of(&private, "/readyz").await, "HTTP/1.1 200 OK");
        stop(child, signal).await;
    }
}

/// A process with a request in flight, whose body does not come.
async fn with_half_a_request(folder: &Path, deadline: &str) -> (Child, TcpStream) {
    let url = url_of(folder);
    store::migrate(&url).await.unwrap();
    let sealer = Sealer::new(SealingKey::new(Box::new([7; 32])), Vec::new());
    let store = store::open(&url, store::StoreOptions::new(sealer)).await.unwrap();
    let key = NewApiKey::generate("test", Role::Admin, None).unwrap();
    store.create_api_key(&key).await.unwrap();
    drop(store);
    let mut child = spawn_with(&url, &["--api-stop-deadline", deadline, "--body-deadline", "10m"]);
    let (public, _) = listening(&mut child).await;
    let mut stream = TcpStream::connect(&public).await.unwrap();
    let head = format!(
        "POST /v1/endpoints HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n",
        key.reveal()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server waits for the body now.
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    tokio::time::timeout(PATIENCE, read).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    (child, stream)
}

/// Case C103.
#[tokio::test]
async fn a_request_that_does_not_end_holds_a_stop_up_until_its_deadline_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let (child, _stream) = with_half_a_request(folder.path(), "1s").await;
    stop(child, "-TERM").await;
}

/// Case C103.
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    for signal in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, _stream) = with_half_a_request(folder.path(), "10m").await;
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        send(signal, &child).await;
        let told = async {
            while let Some(line) = log.next_line().await.unwrap() {
                if line.contains("a second signal ends the process at once") {
                    return true;
                }
            }
            false
        };
        assert!(tokio::time::timeout(PATIENCE, told).await.expect("the log tells of the stop"));
        send(signal, &child).await;
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("an end").unwrap();
        assert_eq!(ended.code(), Some(143));
    }
}

#[tokio::test]
async fn a_database_that_is_away_does_not_end_the_process() {
    let mut child = spawn("postgres://nobody@127.0.0.1:1/none");
    let (public, private) = listening(&mut child).await;
    assert_eq!(status_of(&public, "/livez").await, "HTTP/1.1 200 OK");
    assert_eq!(status_of(&private, "/readyz").await, "HTTP/1.1 503 Service Unavailable");
    stop(child, "-TERM").await;
}

#[tokio::test]
async fn a_schema_that_is_missing_ends_the_process_with_the_command_that_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("fencepost.db")).unwrap();
    let mut child = spawn(&url_of(folder.path()));
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("an end").unwrap();
    assert_eq!(ended.code(), Some(1));
    let mut log = String::new();
    let mut stderr = child.stderr.take().unwrap();
    let read = stderr.read_to_string(&mut log);
    tokio::time::timeout(Duration::from_secs(5), read).await.unwrap().unwrap();
    assert!(log.contains("fencepost migrate"), "{log}");
}
