//! Any headers of a signed request, one a line, then its body: answered, and only ours is taken.
#![no_main]

use std::sync::LazyLock;

use domain::signing::{SigningSecret, verify};
use libfuzzer_sys::fuzz_target;

const NOW: i64 = 1_700_000_000;

static SECRET: LazyLock<SigningSecret> =
    LazyLock::new(|| SigningSecret::from_bytes(vec![7; 24]).expect("24 bytes"));

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(4, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (id, timestamp, signature, body) = (next(), next(), next(), next());
    let secrets = std::slice::from_ref(&*SECRET);
    let verified = verify(secrets, id, timestamp, signature, body.as_bytes(), NOW, 300);
    if verified.is_ok() {
        let age = timestamp.parse::<i64>().expect("a number that was taken");
        assert!(age.abs_diff(NOW) <= 300);
        // Another secret does not take it.
        let other = SigningSecret::from_bytes(vec![8; 24]).expect("24 bytes");
        assert!(verify(&[other], id, timestamp, signature, body.as_bytes(), NOW, 300).is_err());
    }
    // Texts of secrets are read or refused.
    if let Ok(secret) = SigningSecret::parse(id) {
        assert_eq!(
            SigningSecret::parse(&secret.reveal()).map(|it| it.expose_bytes().to_vec()).ok(),
            Some(secret.expose_bytes().to_vec())
        );
    }
});
