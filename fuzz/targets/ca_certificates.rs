//! Any text as a bundle of certificates: what is kept is read again as the same.
#![no_main]

use domain::endpoint::{CA_BUNDLE_BYTES_MAX, CaCertificates};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(kept) = CaCertificates::parse(text) {
        assert!(kept.as_pem().len() <= CA_BUNDLE_BYTES_MAX);
        assert_eq!(CaCertificates::parse(kept.as_pem()).as_ref(), Ok(&kept));
        assert!(!kept.as_pem().contains("PRIVATE KEY"));
    }
});
