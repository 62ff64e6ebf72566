//! A client of the api, as plain as the calls that it makes.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use rustls::RootCertStore;
use rustls::crypto::ring;
use serde::de::DeserializeOwned;

const DEADLINE: Duration = Duration::from_secs(30);

/// Calls one api under one key. Cheap to clone, with the connections shared; a [`new`](Self::new) one
/// has its own.
#[derive(Clone, Debug)]
pub struct ApiClient {
    client: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// An answer read to its end: a test looks at whichever part it is about.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ApiClient {
    /// `base` is what the api printed when it was ready, `http://127.0.0.1:PORT`.
    pub fn new(base: &str, key: &str) -> anyhow::Result<Self> {
        // Only plain http is spoken here, but a client without a provider of TLS panics.
        let tls = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .timeout(DEADLINE)
            .build()?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), key: Some(key.to_owned()) })
    }

    /// The same client under another key, `None` for a call without one.
    #[must_use]
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self { key: key.map(str::to_owned), ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Reply> {
        self.send(Method::GET, path, &[], None).await
    }

    /// A management call: a JSON body with its content type.
    pub async fn post_json(&self, path: &str, body: &serde_json::Value) -> anyhow::Result<Reply> {
        let json = [(CONTENT_TYPE, "application/json")];
        self.send(Method::POST, path, &json, Some(serde_json::to_vec(body)?.into())).await
    }

    /// Any body under any headers, the content type among them.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> anyhow::Result<Reply> {
        self.send(Method::POST, path, headers, Some(body.into())).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<Bytes>,
    ) -> anyhow::Result<Reply> {
        let called = format!("{method} {path}");
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_bytes(value.as_bytes())?);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.with_context(|| called.clone())?;
        Ok(Reply {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.with_context(|| format!("the answer to {called}"))?,
        })
    }
}

impl Reply {
    pub fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body).with_context(|| format!("not as expected: {self}"))
    }

    /// The answer's body if its status is the one expected, else all of it as the error.
    pub fn expect_status(self, status: StatusCode) -> anyhow::Result<Self> {
        anyhow::ensure!(self.status == status, "expected {status}, got {self}");
        Ok(self)
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.status, String::from_utf8_lossy(&self.body))
    }
}
