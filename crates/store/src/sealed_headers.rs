//! Custom headers at rest: a JSON array of names and values, sealed like a secret.

use domain::endpoint::CustomHeaders;
use domain::id::EndpointKey;
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::StoreError;
use crate::sealing::{Sealed, Sealer};

/// What sealed headers are bound to: the endpoint's UUID and a word that no secret's row has.
#[must_use]
pub fn headers_row(endpoint: EndpointKey) -> [u8; 23] {
    let mut row = [0; 23];
    let (first, second) = row.split_at_mut(16);
    first.copy_from_slice(endpoint.as_uuid().as_bytes());
    second.copy_from_slice(b"headers");
    row
}

/// Seals the headers of an endpoint; none if there are none.
pub(crate) fn seal(
    sealer: &Sealer,
    endpoint: EndpointKey,
    headers: &CustomHeaders,
) -> Result<Option<Sealed>, StoreError> {
    if headers.is_empty() {
        return Ok(None);
    }
    let pairs: Vec<(&str, &str)> = headers.expose().collect();
    // Two texts are always JSON.
    let plaintext = Zeroizing::new(serde_json::to_vec(&pairs).unwrap_or_default());
    sealer.seal(&plaintext, &headers_row(endpoint)).map(Some).map_err(|source| StoreError::Sealed {
        secret: "headers".to_owned(),
        endpoint: endpoint.to_string(),
        source,
    })
}

/// Opens what the two columns of an endpoint hold, or says why not.
pub(crate) fn open(
    sealer: &Sealer,
    endpoint: EndpointKey,
    sealed: Option<Vec<u8>>,
    sealing_key: Option<String>,
) -> Result<CustomHeaders, String> {
    let (Some(bytes), Some(key_id)) = (sealed, sealing_key) else {
        return Ok(CustomHeaders::default());
    };
    let plaintext = sealer
        .open(&Sealed { key_id, bytes }, &headers_row(endpoint))
        .map_err(|error| format!("the headers cannot be unsealed: {error}"))?;
    let pairs: Vec<(String, SecretString)> = serde_json::from_slice(&plaintext)
        .map_err(|_| "the headers are not what was stored".to_owned())?;
    Ok(CustomHeaders::of_stored(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealing::SealingKey;

    #[test]
    fn headers_open_in_their_own_row_only_and_are_not_readable_at_rest() {
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let (own, other) = (crate::new_id::endpoint_key(), crate::new_id::endpoint_key());
        let pair = ("X-Api-Key".to_owned(), SecretString::from("hunter2"));
        let headers = CustomHeaders::parse([pair]).unwrap();
        let sealed = seal(&sealer, own, &headers).unwrap().unwrap();
        assert!(!sealed.bytes.windows(7).any(|part| part == b"hunter2"));
        let columns = || (Some(sealed.bytes.clone()), Some(sealed.key_id.clone()));
        let (bytes, key) = columns();
        let opened = open(&sealer, own, bytes, key).unwrap();
        assert_eq!(opened.expose().collect::<Vec<_>>(), [("x-api-key", "hunter2")]);
        let (bytes, key) = columns();
        assert!(open(&sealer, other, bytes, key).is_err());
        assert_eq!(seal(&sealer, own, &CustomHeaders::default()).unwrap(), None);
        assert!(open(&sealer, own, None, None).unwrap().is_empty());
    }
}
