/// The environment of a process of ours: what all processes on one database share, and what a test adds.
#[derive(Clone, Debug)]
pub struct Settings {
    variables: Vec<(String, String)>,
}

/// 32 bytes in base64. A test that needs to know that secrets are sealed replaces it.
const SEALING_KEY: &str = "ZmVuY2Vwb3N0IHRlc3RzIHNlYWwgd2l0aCB0aGlzISE=";

impl Settings {
    /// Free ports on loopback, deliveries to loopback allowed.
    #[must_use]
    pub fn new(database_url: &str) -> Self {
        Self { variables: Vec::new() }
            .with("DATABASE_URL", database_url)
            .with("FENCEPOST_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_PRIVATE_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_WORKER_PRIVATE_LISTEN", "127.0.0.1:0")
            .with("FENCEPOST_SEALING_KEY", SEALING_KEY)
            .with("FENCEPOST_ALLOW_NETWORKS", "127.0.0.0/8")
    }

    /// A later value of one name wins.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }
}
