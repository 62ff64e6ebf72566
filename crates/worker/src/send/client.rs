//! HTTP clients: one for each set of terms that connections may be shared under, for a minute each.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::delivery::Failure;
use domain::destination::{AddressPolicy, OnlyNetworks};
use domain::endpoint::CaCertificates;
use reqwest::{Client, redirect, retry};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use super::Unanswered;
use super::resolver::{Lookups, Resolver};
use super::roots;

/// How many clients are kept. Beyond it the one used longest ago goes, with its idle connections.
///
/// Nearly all endpoints keep the defaults, so nearly always there is one.
const CLIENTS_MAX: usize = 64;

/// How long requests go through one client. After it another is made, and the connections of the old one
/// end with the requests that they carry.
///
/// So a name is looked up and checked again after a minute at the latest, however busy its connection is,
/// and what a receiver proved in its handshake is asked for again.
const CLIENT_AGE_MAX: Duration = Duration::from_mins(1);

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

/// What requests have to have in common to share connections: a connection stands for the address that was
/// checked when it was made, and for who vouched for the receiver then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// Connections stand within that time or not at all.
    pub(super) connect_deadline: Duration,
    /// They go to no other address.
    pub(super) only_networks: Option<OnlyNetworks>,
    /// Who vouches for the receiver beside the roots of the platform.
    pub(super) ca_certificates: Option<CaCertificates>,
}

struct Kept {
    terms: Terms,
    made_at: Instant,
    client: Client,
}

/// Clients by their terms, which share their look-ups and, but for those with certificates of their own,
/// their TLS sessions.
pub(super) struct Clients {
    policy: Arc<AddressPolicy>,
    dns_deadline: Duration,
    lookups: Arc<Lookups>,
    roots: RootCertStore,
    tls: ClientConfig,
    /// The one used last stands last.
    kept: Mutex<VecDeque<Kept>>,
}

impl Clients {
    pub(super) fn new(
        policy: AddressPolicy,
        dns_deadline: Duration,
        lookups: Arc<Lookups>,
    ) -> anyhow::Result<Self> {
        let roots = roots::of_the_platform()?;
        Ok(Self {
            policy: Arc::new(policy),
            dns_deadline,
            lookups,
            tls: roots::tls(roots.clone())?,
            roots,
            kept: Mutex::default(),
        })
    }

    /// The client of these terms.
    pub(super) fn get(&self, terms: &Terms, now: Instant) -> Result<Client, Unanswered> {
        let is_young = |kept: &Kept| now.duration_since(kept.made_at) < CLIENT_AGE_MAX;
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = all.back()
            && kept.terms == *terms
            && is_young(kept)
        {
            return Ok(kept.client.clone());
        }
        let position = all.iter().position(|kept| kept.terms == *terms);
        let kept = position.and_then(|position| all.remove(position)).filter(is_young);
        let kept = kept.map_or_else(|| self.make(terms, now), Ok)?;
        if all.len() >= CLIENTS_MAX {
            all.pop_front();
        }
        let client = kept.client.clone();
        all.push_back(kept);
        Ok(client)
    }

    fn make(&self, terms: &Terms, now: Instant) -> Result<Kept, Unanswered> {
        let client = self.build(terms).map_err(|error| {
            Unanswered::new(Failure::Unsendable, format!("no HTTP client: {error:#}"))
        })?;
        Ok(Kept { terms: terms.clone(), made_at: now, client })
    }

    fn build(&self, terms: &Terms) -> anyhow::Result<Client> {
        let connect_deadline = terms.connect_deadline;
        let resolver = Resolver::new(
            Arc::clone(&self.lookups),
            Arc::clone(&self.policy),
            terms.only_networks.clone(),
            self.dns_deadline,
            connect_deadline,
        );
        let tls = match &terms.ca_certificates {
            None => self.tls.clone(),
            Some(more) => roots::tls(roots::with(&self.roots, more)?)?,
        };
        let client = Client::builder()
            .dns_resolver(resolver)
            .tls_backend_preconfigured(tls)
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
            .build()?;
        Ok(client)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    fn clients(allow: &str) -> Clients {
        let policy = AddressPolicy { allow_networks: vec![allow.parse().unwrap()] };
        Clients::new(policy, Duration::from_secs(3), Lookups::of_the_system()).unwrap()
    }

    fn within_ms(milliseconds: u64) -> Terms {
        let connect_deadline = Duration::from_millis(milliseconds);
        Terms { connect_deadline, only_networks: None, ca_certificates: None }
    }

    #[test]
    fn clients_are_shared_by_their_terms_and_their_number_is_bounded() {
        let clients = clients("127.0.0.0/8");
        let now = Instant::now();
        let kept =
            || clients.kept.lock().unwrap().iter().map(|it| it.terms.clone()).collect::<Vec<_>>();
        let only = OnlyNetworks::parse(&["10.0.0.0/8"]).unwrap();
        let narrowed = Terms { only_networks: Some(only), ..within_ms(100) };
        for terms in
            [within_ms(100), within_ms(200), within_ms(100), narrowed.clone(), within_ms(100)]
        {
            clients.get(&terms, now).unwrap();
        }
        assert_eq!(kept(), [within_ms(200), narrowed, within_ms(100)]);
        for deadline in 1_000..1_000 + CLIENTS_MAX as u64 {
            clients.get(&within_ms(deadline), now).unwrap();
        }
        assert_eq!(kept().len(), CLIENTS_MAX);
        assert!(!kept().contains(&within_ms(200)) && !kept().contains(&within_ms(100)));
    }

    /// Answers every request on its connection and counts the connections.
    fn receiver() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    let mut request = Vec::new();
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        request.push(byte[0]);
                        if request.ends_with(b"\r\n\r\n") {
                            request.clear();
                            let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                            stream.write_all(ok).unwrap();
                        }
                    }
                });
            }
        });
        (url, connections)
    }

    #[tokio::test]
    async fn a_connection_is_shared_for_a_minute_and_not_longer() {
        let clients = clients("127.0.0.0/8");
        let (url, connections) = receiver();
        let began = Instant::now();
        for (age, expected) in [(0, 1), (1, 1), (59, 1), (60, 2), (61, 2), (119, 2), (120, 3)] {
            let client = clients.get(&within_ms(5_000), began + Duration::from_secs(age)).unwrap();
            let answer = client.get(&url).send().await.unwrap();
            assert!(answer.bytes().await.unwrap().is_empty());
            assert_eq!(connections.load(Ordering::SeqCst), expected, "after {age} s");
        }
    }

    #[tokio::test]
    async fn connections_of_one_set_of_terms_do_not_serve_another() {
        let clients = clients("127.0.0.0/8");
        let (url, connections) = receiver();
        let now = Instant::now();
        let pem = include_str!("../../../domain/tests/ca_certificate.pem");
        let only_networks = Some(OnlyNetworks::parse(&["127.0.0.0/8"]).unwrap());
        let ca_certificates = Some(CaCertificates::parse(pem).unwrap());
        for (terms, expected) in [
            (within_ms(5_000), 1),
            (Terms { only_networks, ..within_ms(5_000) }, 2),
            (Terms { ca_certificates, ..within_ms(5_000) }, 3),
            (within_ms(5_000), 3),
        ] {
            let answer = clients.get(&terms, now).unwrap().get(&url).send().await.unwrap();
            assert!(answer.bytes().await.unwrap().is_empty());
            assert_eq!(connections.load(Ordering::SeqCst), expected, "{terms:?}");
        }
    }
}
