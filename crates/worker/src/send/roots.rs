//! Who may vouch for a receiver: the roots of the platform, and what an endpoint adds for itself.
//!
//! There is no way to switch verification off.

use std::sync::Arc;

use anyhow::Context as _;
use domain::endpoint::CaCertificates;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The roots of this machine: where its TLS libraries look for them, or where `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` say. A machine that has none, a bare container, gets Mozilla's.
///
/// # Errors
/// There are some, and not one of them can be read.
pub(super) fn of_the_platform() -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (_, unusable) = roots.add_parsable_certificates(found.certs);
    if unusable > 0 {
        tracing::debug!(unusable, "some root certificates of this machine cannot be used");
    }
    if roots.is_empty() {
        // What somebody chose is not replaced by something else behind their back.
        if let Some(error) = found.errors.into_iter().next() {
            return Err(error).context("the root certificates of this machine cannot be read");
        }
        tracing::info!("this machine has no root certificates: Mozilla's are used");
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(roots)
}

/// The same with those of an endpoint.
pub(super) fn with(roots: &RootCertStore, more: &CaCertificates) -> anyhow::Result<RootCertStore> {
    let mut roots = roots.clone();
    for certificate in CertificateDer::pem_slice_iter(more.as_pem().as_bytes()) {
        roots.add(certificate?)?;
    }
    Ok(roots)
}

/// TLS 1.2 and 1.3 with these roots. The provider is named, because two of them in one process make the
/// implicit choice panic.
pub(super) fn tls(roots: RootCertStore) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
