//! A receiver that speaks TLS, and the authorities that vouch for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::endpoint::CaCertificates;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::sender::receiver::read_request;

/// Signs certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What a receiver shows, and the key to it.
pub(super) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(authority_params(name), key).unwrap())
    }

    /// One that this one vouches for.
    pub(super) fn below(&self, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::signed_by(authority_params(name), key, &self.0).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(super) fn certificates(&self) -> CaCertificates {
        CaCertificates::parse(&self.pem()).unwrap()
    }

    pub(super) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| {})
    }

    pub(super) fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = params(names);
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity::new(vec![certificate.der().clone()], &key)
    }
}

impl Identity {
    fn new(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Self {
        Self { chain, key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())) }
    }

    pub(super) fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params(names).self_signed(&key).unwrap();
        Self::new(vec![certificate.der().clone()], &key)
    }

    /// The same, showing the certificate of who vouches for it too.
    pub(super) fn showing(mut self, authority: &Authority) -> Self {
        self.chain.push(authority.0.der().clone());
        self
    }
}

/// Shows this, asks its callers for a certificate of that authority, and offers these protocols.
pub(super) fn acceptor(
    identity: Identity,
    clients: Option<&Authority>,
    protocols: &[&[u8]],
) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let mut config = builder.with_single_cert(identity.chain, identity.key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// A request and the name that its handshake asked for.
pub(super) struct Seen {
    pub(super) server_name: Option<String>,
    pub(super) request: Vec<u8>,
}

/// Answers 200 to every request on every connection.
pub(super) struct TlsReceiver {
    pub(super) port: u16,
    pub(super) connections: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl TlsReceiver {
    pub(super) async fn showing(identity: Identity) -> Self {
        Self::start(identity, None, "127.0.0.1:0").await
    }

    /// It wants a certificate of its caller, which the sender has none of.
    pub(super) async fn wanting_clients_of(authority: &Authority, identity: Identity) -> Self {
        Self::start(identity, Some(authority), "127.0.0.1:0").await
    }

    pub(super) async fn start(
        identity: Identity,
        clients: Option<&Authority>,
        listen: &str,
    ) -> Self {
        let acceptor = acceptor(identity, clients, &[]);
        let listener = TcpListener::bind(listen).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let server_name = stream.get_ref().1.server_name().map(str::to_owned);
                    while let Ok(request) = read_request(&mut stream).await {
                        let _ = sender.send(Seen { server_name: server_name.clone(), request });
                        let ok = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        stream.write_all(ok).await.unwrap();
                    }
                });
            }
        });
        Self { port, connections, seen }
    }

    /// The requests that were read so far.
    pub(super) fn seen(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}
