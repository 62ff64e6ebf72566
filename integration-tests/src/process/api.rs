use std::path::Path;

use anyhow::Context as _;

use super::child::START_UP;
use super::{ChildProcess, Settings};
use crate::http::ApiClient;

/// A running api that has said where it listens.
#[derive(Debug)]
pub struct Api {
    pub process: ChildProcess,
    pub url: String,
    /// Readiness, not for the public.
    pub private_url: String,
}

impl Api {
    pub async fn start(binary: impl AsRef<Path>, settings: &Settings) -> anyhow::Result<Self> {
        let mut process = ChildProcess::start("api", binary, &[], settings)?;
        let (url, private_url) =
            process.wait_for_line("where it listens", START_UP, ready_line).await?;
        Ok(Self { process, url, private_url })
    }

    pub fn client(&self, key: &str) -> anyhow::Result<ApiClient> {
        ApiClient::new(&self.url, key).context("a client of the api")
    }
}

fn ready_line(line: &str) -> Option<(String, String)> {
    let (url, private_url) = line.strip_prefix("listening ")?.split_once(" private ")?;
    Some((url.to_owned(), private_url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_both_addresses() {
        let line = "listening http://127.0.0.1:4711 private http://127.0.0.1:4712";
        let (url, private_url) = ready_line(line).unwrap();
        assert_eq!(url, "http://127.0.0.1:4711");
        assert_eq!(private_url, "http://127.0.0.1:4712");
        assert_eq!(ready_line("listening on something"), None);
    }
}
