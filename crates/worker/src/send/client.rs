//! HTTP clients: one for each connect deadline that is in use.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::delivery::Failure;
use domain::destination::AddressPolicy;
use reqwest::{Client, redirect, retry};
use rustls::{ClientConfig, RootCertStore};

use super::Unanswered;
use super::resolver::{Lookups, Resolver};

/// How many clients are kept. Beyond it the one used longest ago goes, with its idle connections.
///
/// The client library takes the connect deadline per client. Nearly all endpoints keep the default,
/// so nearly always there is one.
const CLIENTS_MAX: usize = 16;

/// How long an idle connection is kept.
///
/// A receiver that closes an idle connection while a request is on its way costs that attempt: what
/// was read of it is not known, so it is not sent again within the attempt. (One of which nothing was
/// written yet goes to another connection.) Node.js, Apache and
/// uvicorn close after 5 s, most others later; so the pool closes before them.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// How many idle connections to one host are kept: as many as an endpoint has open by default.
const IDLE_PER_HOST_MAX: usize = 32;

/// How many headers a response may have. HTTP/1.1 also bounds its head as a whole, at 408 KiB.
const RESPONSE_HEADERS_MAX: usize = 256;

/// How long the head of an HTTP/2 response may be, in bytes.
const H2_HEAD_BYTES_MAX: u32 = 128 * 1024;

/// What an HTTP/2 receiver may send ahead of our reading: as much of a body as is read at all, and
/// some of these for the connection.
const H2_STREAM_WINDOW: u32 = 64 * 1024;
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;

/// An HTTP/2 connection that answers no ping for this long is closed. Without it, one that a firewall
/// forgot would take request after request and answer none.
const H2_PING_EVERY: Duration = Duration::from_secs(5);
const H2_PING_TIMEOUT: Duration = Duration::from_secs(5);

const USER_AGENT: &str = concat!("Fencepost/", env!("CARGO_PKG_VERSION"));

/// Clients by connect deadline, which share their TLS sessions and their look-ups.
pub(super) struct Clients {
    policy: Arc<AddressPolicy>,
    dns_deadline: Duration,
    lookups: Arc<Lookups>,
    tls: ClientConfig,
    /// The one used last stands last.
    kept: Mutex<VecDeque<(Duration, Client)>>,
}

impl Clients {
    pub(super) fn new(policy: AddressPolicy, dns_deadline: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            policy: Arc::new(policy),
            dns_deadline,
            lookups: Lookups::of_the_system(),
            tls: tls()?,
            kept: Mutex::default(),
        })
    }

    /// The client whose connections stand within that time or not at all.
    pub(super) fn get(&self, connect_deadline: Duration) -> Result<Client, Unanswered> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((deadline, client)) = kept.back()
            && *deadline == connect_deadline
        {
            return Ok(client.clone());
        }
        let position = kept.iter().position(|(deadline, _)| *deadline == connect_deadline);
        let client = match position.and_then(|position| kept.remove(position)) {
            Some((_, client)) => client,
            None => self.build(connect_deadline).map_err(|error| {
                let detail = format!("no HTTP client: {error}");
                Unanswered::new(Failure::Unsendable, detail)
            })?,
        };
        if kept.len() >= CLIENTS_MAX {
            kept.pop_front();
        }
        kept.push_back((connect_deadline, client.clone()));
        Ok(client)
    }

    fn build(&self, connect_deadline: Duration) -> reqwest::Result<Client> {
        let resolver = Resolver::new(
            Arc::clone(&self.lookups),
            Arc::clone(&self.policy),
            self.dns_deadline,
            connect_deadline,
        );
        Client::builder()
            .dns_resolver(resolver)
            .tls_backend_preconfigured(self.tls.clone())
            .connect_timeout(connect_deadline)
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .retry(retry::never())
            .user_agent(USER_AGENT)
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
            .http1_max_headers(RESPONSE_HEADERS_MAX)
            .http2_max_header_list_size(H2_HEAD_BYTES_MAX)
            .http2_initial_stream_window_size(H2_STREAM_WINDOW)
            .http2_initial_connection_window_size(H2_CONNECTION_WINDOW)
            .http2_keep_alive_interval(H2_PING_EVERY)
            .http2_keep_alive_timeout(H2_PING_TIMEOUT)
            .build()
    }
}

/// TLS 1.2 and 1.3 with Mozilla's roots. The provider is named, because two of them in one process
/// make the implicit choice panic.
fn tls() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_shared_by_connect_deadline_and_their_number_is_bounded() {
        let clients = Clients::new(AddressPolicy::default(), Duration::from_secs(3)).unwrap();
        let deadlines = || clients.kept.lock().unwrap().iter().map(|(d, _)| *d).collect::<Vec<_>>();
        let ms = Duration::from_millis;
        for deadline in [100, 200, 100, 100] {
            clients.get(ms(deadline)).unwrap();
        }
        assert_eq!(deadlines(), [ms(200), ms(100)]);
        for deadline in 1_000..1_000 + CLIENTS_MAX as u64 {
            clients.get(ms(deadline)).unwrap();
        }
        assert_eq!(deadlines().len(), CLIENTS_MAX);
        assert!(!deadlines().contains(&ms(200)) && !deadlines().contains(&ms(100)));
    }
}
