//! Certificates that vouch for one endpoint's receiver, beside the roots of the platform.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject as _, SectionKind};

/// The longest bundle of an endpoint, in bytes, as given and as kept.
pub const CA_BUNDLE_BYTES_MAX: usize = 16 * 1024;

/// The most certificates of an endpoint.
pub const CA_CERTIFICATES_MAX: usize = 8;

/// 1 to [`CA_CERTIFICATES_MAX`] X.509 certificates in PEM (RFC 7468), each of which TLS can take for a
/// trust anchor.
///
/// They are public and kept as text. They are trusted for one endpoint beside the roots of the platform:
/// name, dates and signature of what a receiver shows are verified as ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CaCertificates(Arc<str>);

/// Why a text is not a bundle of certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CaCertificatesError {
    /// Longer than [`CA_BUNDLE_BYTES_MAX`].
    #[error("must have at most {CA_BUNDLE_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
    },
    /// No certificate is in it.
    #[error("must have at least one certificate in PEM, `-----BEGIN CERTIFICATE-----`")]
    Empty,
    /// More than [`CA_CERTIFICATES_MAX`].
    #[error("must have at most {CA_CERTIFICATES_MAX} certificates")]
    TooMany,
    /// Something else is in it. A private key would be shown to whoever may read the endpoint.
    #[error("must hold certificates and nothing else: never a private key")]
    NotOnlyCertificates,
    /// It is not PEM.
    #[error("is not valid PEM")]
    NotPem,
    /// A certificate cannot be read.
    #[error("certificate {position} is not a valid X.509 certificate")]
    Malformed {
        /// Which one, counted from 1.
        position: usize,
    },
}

impl CaCertificatesError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "ca_certificates_too_long",
            Self::Empty => "ca_certificates_empty",
            Self::TooMany => "ca_certificates_too_many",
            Self::NotOnlyCertificates => "ca_certificates_not_only_certificates",
            Self::NotPem | Self::Malformed { .. } => "ca_certificates_malformed",
        }
    }
}

impl CaCertificates {
    /// Reads the bundle. Text between the certificates is left out.
    ///
    /// # Errors
    /// [`CaCertificatesError`], which names the limit or the certificate.
    pub fn parse(text: &str) -> Result<Self, CaCertificatesError> {
        if text.len() > CA_BUNDLE_BYTES_MAX {
            return Err(CaCertificatesError::TooLong { bytes: text.len() });
        }
        let mut pem = String::new();
        let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes());
        for (section, position) in sections.zip(1..) {
            let (kind, der) = section.map_err(|_| CaCertificatesError::NotPem)?;
            if kind != SectionKind::Certificate {
                return Err(CaCertificatesError::NotOnlyCertificates);
            }
            if position > CA_CERTIFICATES_MAX {
                return Err(CaCertificatesError::TooMany);
            }
            webpki::anchor_from_trusted_cert(&CertificateDer::from(der.as_slice()))
                .map_err(|_| CaCertificatesError::Malformed { position })?;
            write_pem(&mut pem, &der);
        }
        match pem.len() {
            0 => Err(CaCertificatesError::Empty),
            1..=CA_BUNDLE_BYTES_MAX => Ok(Self(pem.into())),
            bytes => Err(CaCertificatesError::TooLong { bytes }),
        }
    }

    /// The certificates in PEM, at most [`CA_BUNDLE_BYTES_MAX`] bytes.
    #[must_use]
    pub fn as_pem(&self) -> &str {
        &self.0
    }
}

/// As RFC 7468 section 2 writes it: lines of 64 characters.
fn write_pem(pem: &mut String, der: &[u8]) {
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    for bytes in der.chunks(48) {
        STANDARD.encode_string(bytes, pem);
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl req -x509`, a P-256 key, valid for a hundred years.
    const CERTIFICATE: &str = include_str!("../../tests/ca_certificate.pem");

    fn parse(text: &str) -> Result<CaCertificates, CaCertificatesError> {
        CaCertificates::parse(text)
    }

    #[test]
    fn what_is_kept_is_the_certificates_alone() {
        let given = format!("Subject: us\n{CERTIFICATE}\n# and again\n{CERTIFICATE}");
        let kept = parse(&given.replace('\n', "\r\n")).unwrap();
        assert_eq!(kept.as_pem(), CERTIFICATE.repeat(2));
        assert_eq!(parse(kept.as_pem()).unwrap(), kept);
    }

    #[test]
    fn what_is_no_bundle_of_certificates_is_refused() {
        let body = CERTIFICATE.lines().nth(1).unwrap();
        let labelled = |label: &str, body: &str| {
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
        };
        for (name, bad, code) in [
            ("nothing", String::new(), "ca_certificates_empty"),
            ("text", "not PEM".to_owned(), "ca_certificates_empty"),
            ("a label of its own", labelled("TRUSTED CERTIFICATE", body), "ca_certificates_empty"),
            (
                "a key beside it",
                CERTIFICATE.to_owned() + &labelled("PRIVATE KEY", "AAAA"),
                "ca_certificates_not_only_certificates",
            ),
            (
                "a request",
                labelled("CERTIFICATE REQUEST", "AAAA"),
                "ca_certificates_not_only_certificates",
            ),
            ("half of it", labelled("CERTIFICATE", body), "ca_certificates_malformed"),
            ("no DER", labelled("CERTIFICATE", "AAAA"), "ca_certificates_malformed"),
            ("no base64", labelled("CERTIFICATE", "A*A="), "ca_certificates_malformed"),
            (
                "no end",
                CERTIFICATE.replace("-----END CERTIFICATE-----", ""),
                "ca_certificates_malformed",
            ),
            ("nine", CERTIFICATE.repeat(9), "ca_certificates_too_many"),
            ("long", "x".repeat(CA_BUNDLE_BYTES_MAX + 1), "ca_certificates_too_long"),
        ] {
            assert_eq!(parse(&bad).unwrap_err().code(), code, "{name}");
        }
        assert!(parse(&CERTIFICATE.repeat(8)).is_ok());
    }
}
