//! New ids, and where their time and randomness come from.
//!
//! The domain makes ids from a millisecond and ten random bytes; this is the edge that supplies both.
//! The process's clock decides only in which day's partition a row lies, never what is due.

use domain::id::{ApplicationKey, ClaimToken, EndpointKey, SourceKey, uuid_v7};
use time::OffsetDateTime;
use uuid::Uuid;

/// Milliseconds since 1970 on this process's clock.
#[must_use]
pub fn unix_millis_now() -> u64 {
    let millis = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    u64::try_from(millis).unwrap_or(0)
}

/// A `UUIDv7` of that millisecond.
///
/// The bits come from the operating system; where it has none to give, from this process's generator,
/// which keeps ids distinct. Ids are not secrets.
#[must_use]
pub fn uuid_of_millis(unix_millis: u64) -> Uuid {
    let mut entropy = [0; 10];
    if getrandom::fill(&mut entropy).is_err() {
        fastrand::fill(&mut entropy);
    }
    uuid_v7(unix_millis, entropy)
}

/// A `UUIDv7` of now.
#[must_use]
pub fn uuid_now() -> Uuid {
    uuid_of_millis(unix_millis_now())
}

/// Another `UUIDv7`, of the same millisecond.
#[must_use]
pub fn uuid_beside(id: Uuid) -> Uuid {
    // RFC 9562, section 5.7: the first 48 bits.
    uuid_of_millis((id.as_u64_pair().0) >> 16)
}

/// A new endpoint's key.
#[must_use]
pub fn endpoint_key() -> EndpointKey {
    EndpointKey::from_uuid(uuid_now())
}

/// A new application's key.
#[must_use]
pub fn application_key() -> ApplicationKey {
    ApplicationKey::from_uuid(uuid_now())
}

/// A new source's key.
#[must_use]
pub fn source_key() -> SourceKey {
    SourceKey::from_uuid(uuid_now())
}

/// A token for one claim.
#[must_use]
pub fn claim_token() -> ClaimToken {
    ClaimToken::from_uuid(uuid_now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_beside_another_has_its_millisecond_and_is_another() {
        let id = uuid_of_millis(1_796_000_000_123);
        let beside = uuid_beside(id);
        assert_eq!(id.as_bytes()[..6], beside.as_bytes()[..6]);
        assert_ne!(id, beside);
    }
}
