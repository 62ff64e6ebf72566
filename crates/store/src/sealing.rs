//! Secrets at rest: XChaCha20-Poly1305 with a random 24-byte nonce.
//!
//! The row's identity is bound in as associated data, so that a sealed secret copied into another row
//! does not open there.

use std::fmt;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Length of a sealing key, in bytes.
pub const SEALING_KEY_BYTES: usize = 32;

const NONCE_BYTES: usize = 24;

/// One key that seals secrets.
#[derive(Clone)]
pub struct SealingKey {
    id: String,
    bytes: Arc<SecretBox<[u8; SEALING_KEY_BYTES]>>,
}

impl SealingKey {
    /// Wraps a key of 32 random bytes.
    #[must_use]
    pub fn new(bytes: Box<[u8; SEALING_KEY_BYTES]>) -> Self {
        // A digest names the key without telling anything about it.
        let digest = Sha256::digest(bytes.as_slice());
        let id = crate::hex::encode(digest.iter().take(8));
        Self { id, bytes: Arc::new(SecretBox::new(bytes)) }
    }

    /// Wraps a slice, which must have exactly [`SEALING_KEY_BYTES`] bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, SealError> {
        let bytes: [u8; SEALING_KEY_BYTES] = bytes.try_into().map_err(|_| SealError::KeyLength)?;
        Ok(Self::new(Box::new(bytes)))
    }

    /// Makes a key from the operating system's randomness.
    pub fn generate() -> Result<Self, SealError> {
        let mut bytes = Box::new([0; SEALING_KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|_| SealError::NoRandomness)?;
        Ok(Self::new(bytes))
    }

    /// The key's name, which stands beside what it sealed.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key itself, to be written to a key file.
    #[must_use]
    pub fn expose(&self) -> &[u8; SEALING_KEY_BYTES] {
        self.bytes.expose_secret()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.expose().into())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why something could not be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// A key does not have [`SEALING_KEY_BYTES`] bytes.
    #[error("a sealing key has {SEALING_KEY_BYTES} bytes")]
    KeyLength,
    /// The key that sealed it is not among those configured.
    #[error("it was sealed with key {key_id}, which is not configured")]
    UnknownKey {
        /// The key's name.
        key_id: String,
    },
    /// It was changed, or belongs to another row.
    #[error("it does not open with its key in this row")]
    Broken,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
}

/// A secret as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Which key sealed it.
    pub key_id: String,
    /// Nonce, ciphertext and tag.
    pub bytes: Vec<u8>,
}

/// Seals with its first key and opens with any of them.
#[derive(Debug, Clone)]
pub struct Sealer {
    current: SealingKey,
    older: Vec<SealingKey>,
}

impl Sealer {
    /// A sealer with one key for new secrets, and older ones that still open theirs.
    #[must_use]
    pub fn new(current: SealingKey, older: Vec<SealingKey>) -> Self {
        Self { current, older }
    }

    /// The name of the key that seals.
    #[must_use]
    pub fn current_id(&self) -> &str {
        &self.current.id
    }

    /// Seals with the current key what any of the keys sealed for the row that `row` identifies.
    pub fn reseal(&self, sealed: &Sealed, row: &[u8]) -> Result<Sealed, SealError> {
        let plaintext = self.open(sealed, row)?;
        self.seal(&plaintext, row)
    }

    /// A key for another purpose, made of the key that seals: the same wherever that one is. It tells
    /// nothing of it.
    #[must_use]
    pub fn derive(&self, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
        // HMAC fills a short key up with zeros to the block of its hash.
        let mut block = Zeroizing::new([0; 64]);
        let (key, _) = block.split_at_mut(SEALING_KEY_BYTES);
        key.copy_from_slice(self.current.expose());
        let mut mac = Hmac::<Sha256>::new((&*block).into());
        mac.update(purpose);
        Zeroizing::new(mac.finalize().into_bytes().into())
    }

    /// Seals for the row that `row` identifies.
    pub fn seal(&self, plaintext: &[u8], row: &[u8]) -> Result<Sealed, SealError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let payload = Payload { msg: plaintext, aad: row };
        let ciphertext = self
            .current
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| SealError::Broken)?;
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&ciphertext);
        Ok(Sealed { key_id: self.current.id.clone(), bytes })
    }

    /// Opens what was sealed for the row that `row` identifies.
    pub fn open(&self, sealed: &Sealed, row: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let key = std::iter::once(&self.current)
            .chain(&self.older)
            .find(|key| key.id == sealed.key_id)
            .ok_or_else(|| SealError::UnknownKey { key_id: sealed.key_id.clone() })?;
        let (nonce, ciphertext) =
            sealed.bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Broken)?;
        let payload = Payload { msg: ciphertext, aad: row };
        key.cipher()
            .decrypt(&XNonce::from(*nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| SealError::Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_in_its_own_row_only() {
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let kept = sealer.seal(b"secret", b"row 1").unwrap();
        assert_eq!(sealer.open(&kept, b"row 1").unwrap().as_slice(), b"secret");
        assert_eq!(sealer.open(&kept, b"row 2"), Err(SealError::Broken));
        let again = sealer.seal(b"secret", b"row 1").unwrap();
        assert_ne!(kept.bytes, again.bytes, "a nonce must not repeat");
    }

    #[test]
    fn an_older_key_still_opens_and_a_missing_one_is_named() {
        let old = SealingKey::generate().unwrap();
        let new = SealingKey::generate().unwrap();
        let kept = Sealer::new(old.clone(), Vec::new()).seal(b"secret", b"row").unwrap();
        let both = Sealer::new(new.clone(), vec![old.clone()]);
        assert_eq!(both.open(&kept, b"row").unwrap().as_slice(), b"secret");
        let without = Sealer::new(new, Vec::new());
        let key_id = old.id().to_owned();
        assert_eq!(without.open(&kept, b"row"), Err(SealError::UnknownKey { key_id }));
    }

    #[test]
    fn a_changed_or_truncated_secret_does_not_open() {
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let mut kept = sealer.seal(b"secret", b"row").unwrap();
        kept.bytes[NONCE_BYTES] ^= 1;
        assert_eq!(sealer.open(&kept, b"row"), Err(SealError::Broken));
        kept.bytes.truncate(NONCE_BYTES - 1);
        assert_eq!(sealer.open(&kept, b"row"), Err(SealError::Broken));
    }

    #[test]
    fn a_derived_key_depends_on_the_sealing_key_and_on_the_purpose() {
        let (a, b) = (SealingKey::generate().unwrap(), SealingKey::generate().unwrap());
        let of = |key: &SealingKey| Sealer::new(key.clone(), vec![b.clone()]);
        assert_eq!(of(&a).derive(b"x"), of(&a).derive(b"x"));
        assert_ne!(of(&a).derive(b"x"), of(&a).derive(b"y"));
        assert_ne!(of(&a).derive(b"x"), of(&b).derive(b"x"));
        assert_ne!(*of(&a).derive(b"x"), *a.expose());
    }

    #[test]
    fn debug_output_shows_no_key() {
        let key = SealingKey::new(Box::new([0x41; 32]));
        let text = format!("{:?}", Sealer::new(key, Vec::new()));
        assert!(!text.contains("65, 65") && !text.contains("AAAA"), "{text}");
    }
}
