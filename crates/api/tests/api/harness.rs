//! An api on a store of its own, and a client that writes and reads HTTP/1.1 itself: what is tested is
//! what is on the wire.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::{RunningApi, Settings};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CustomHeaders, EndpointSettings, SettingsDraft};
use domain::id::{ApplicationKey, PublicId};
use domain::signing::SigningSecret;
use serde_json::Value;
use store::api_key::{NewApiKey, Role};
use store::endpoint::{Endpoint, EndpointCreation, NewEndpoint};
use store::sealing::{Sealer, SealingKey};
use store::submission::{Submission, SubmissionFilter};
use store::{Page, Store, StoreOptions};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::documented::assert_documented;

/// Longer than anything a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Api {
    pub(crate) running: RunningApi,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stop: CancellationToken,
    /// An admin key of no application.
    pub(crate) key: String,
    _folder: Option<TempDir>,
}

/// The settings of tests: ports of the system's choice, and short waits.
pub(crate) fn settings() -> Settings {
    Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        private_listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        linger: Duration::from_millis(300),
        ..Settings::default()
    }
}

pub(crate) fn options() -> StoreOptions {
    let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
    StoreOptions { acquire_timeout: Duration::from_millis(200), ..StoreOptions::new(sealer) }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::start_with(settings()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
        store::migrate(&url).await.unwrap();
        let store = store::open(&url, options()).await.unwrap();
        let key = create_key(store.as_ref(), Role::Admin, None).await;
        let stop = CancellationToken::new();
        let running = api::start(settings, store.clone(), stop.clone()).unwrap();
        Self { running, store, stop, key, _folder: Some(folder) }
    }

    /// On a database that nobody can reach.
    pub(crate) async fn start_without_database() -> Self {
        let store = store::open("postgres://nobody@127.0.0.1:1/none", options()).await.unwrap();
        let stop = CancellationToken::new();
        let running = api::start(settings(), store.clone(), stop.clone()).unwrap();
        let key = "fp_live_0123".to_owned();
        Self { running, store, stop, key, _folder: None }
    }

    pub(crate) fn get(&self, path: &str) -> Request {
        self.request("GET", path)
    }

    pub(crate) fn post(&self, path: &str) -> Request {
        self.request("POST", path)
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request {
            address: self.running.address(),
            is_documented: true,
            line: format!("{method} {path} HTTP/1.1"),
            headers: vec![(
                "Authorization".to_owned(),
                format!("Bearer {}", self.key).into_bytes(),
            )],
            body: Vec::new(),
        }
    }

    /// Creates an endpoint with this id.
    pub(crate) async fn create_endpoint(&self, id: &str) -> Value {
        let body = serde_json::json!({"id": id, "url": "https://example.com/hook"});
        let answer = self.post("/v1/endpoints").json(&body).send().await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    /// Stores an endpoint whose settings are other than the default.
    pub(crate) async fn store_endpoint(
        &self,
        application: ApplicationKey,
        id: &str,
        change: impl FnOnce(&mut SettingsDraft),
    ) -> Endpoint {
        let mut draft = SettingsDraft::default();
        change(&mut draft);
        let new = NewEndpoint {
            key: store::new_id::endpoint_key(),
            application,
            id: PublicId::parse(id).unwrap(),
            url: DestinationUrl::parse("https://example.com/hook", &AddressPolicy::default())
                .unwrap(),
            name: None,
            event_types: None,
            headers: CustomHeaders::default(),
            enabled: true,
            settings: EndpointSettings::new(draft).unwrap(),
            secret: SigningSecret::from_slice(&[7; 24]).unwrap(),
            ed25519: store::secret::generate_ed25519().unwrap(),
        };
        match self.store.create_endpoint(&new).await.unwrap() {
            EndpointCreation::Created(endpoint) => endpoint,
            EndpointCreation::IdTaken => panic!("{id} is taken"),
        }
    }

    /// A submission to that endpoint, to be completed and sent.
    pub(crate) fn submit(&self, endpoint: &str) -> Request {
        self.post(&format!("/v1/endpoints/{endpoint}/submissions"))
    }

    /// Everything that is stored.
    pub(crate) async fn submissions(&self) -> Vec<Submission> {
        let filter = SubmissionFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: None,
            created: store::CreatedWindow::default(),
            page: Page { limit: 250, before: None },
        };
        self.store.list_submissions(filter).await.unwrap()
    }
}

pub(crate) async fn create_key(
    store: &dyn Store,
    role: Role,
    application: Option<ApplicationKey>,
) -> String {
    let key = NewApiKey::generate("test", role, application).unwrap();
    store.create_api_key(&key).await.unwrap();
    key.reveal().to_owned()
}

/// Creates an application with this id, and answers its key.
pub(crate) async fn create_application(api: &Api, id: &str) -> ApplicationKey {
    let answer = api.post("/v1/applications").json(&serde_json::json!({"id": id, "name": id}));
    let answer = answer.send().await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = PublicId::parse(id).unwrap();
    api.store.find_application(&id).await.unwrap().unwrap()
}

#[derive(Clone)]
pub(crate) struct Request {
    address: SocketAddr,
    is_documented: bool,
    line: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Request {
    /// To the private address instead, which the document does not tell of.
    pub(crate) fn to(self, address: SocketAddr) -> Self {
        Self { address, is_documented: false, ..self }
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.without("Authorization").header("Authorization", format!("Bearer {key}"))
    }

    pub(crate) fn body(self, body: impl AsRef<[u8]>) -> Self {
        Self { body: body.as_ref().to_vec(), ..self }
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    /// The head with these further header lines, up to the empty line.
    pub(crate) fn head(&self, more: &str) -> Vec<u8> {
        let mut head = format!("{}\r\nHost: fencepost.test\r\n{more}", self.line).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends it on a connection of its own.
    pub(crate) async fn send(&self) -> Answer {
        let length = format!("Connection: close\r\nContent-Length: {}\r\n", self.body.len());
        let mut stream = self.connect().await;
        stream.write_all(&self.head(&length)).await.unwrap();
        // A refused body may not be taken to its end.
        let _ = stream.write_all(&self.body).await;
        self.answer(&mut stream).await
    }

    /// Sends it with a body of one chunk, whose length is not declared ahead.
    pub(crate) async fn send_chunked(&self) -> Answer {
        let mut stream = self.connect().await;
        let head = self.head("Connection: close\r\nTransfer-Encoding: chunked\r\n");
        stream.write_all(&head).await.unwrap();
        let mut body = format!("{:x}\r\n", self.body.len()).into_bytes();
        body.extend_from_slice(&self.body);
        body.extend_from_slice(b"\r\n0\r\n\r\n");
        let _ = stream.write_all(&body).await;
        self.answer(&mut stream).await
    }

    async fn answer(&self, stream: &mut TcpStream) -> Answer {
        let answer = Answer::read(stream).await;
        if self.is_documented {
            assert_documented(&self.line, &answer);
        }
        answer
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Reads one answer, as long as its `Content-Length` says.
    pub(crate) async fn read(stream: &mut TcpStream) -> Self {
        tokio::time::timeout(PATIENCE, Self::read_patiently(stream)).await.expect("an answer")
    }

    async fn read_patiently(stream: &mut TcpStream) -> Self {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a whole head"));
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Self { status, headers, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
        answer.body.resize(length, 0);
        stream.read_exact(&mut answer.body).await.expect("a whole body");
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The status and the code of a problem, which must be well formed.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status);
        assert_eq!(document["type"], "about:blank");
        assert!(document["title"].is_string() && document["detail"].is_string());
        (self.status, document["code"].as_str().unwrap().to_owned())
    }

    /// The fields that a problem names, with the rule that each breaks.
    pub(crate) fn errors(&self) -> Vec<(String, String)> {
        let errors = self.json()["errors"].as_array().cloned().unwrap_or_default();
        let member = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
        errors.iter().map(|error| (member(error, "field"), member(error, "code"))).collect()
    }
}

/// What [`Answer::problem`] is compared with.
pub(crate) fn problem(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}
