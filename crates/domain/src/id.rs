//! Identifiers. A UUID of one kind cannot be passed where another kind is meant.
//!
//! Submissions, deliveries and endpoints carry `UUIDv7` (RFC 9562, section 5.7), made by the process
//! that accepts them: the first 48 bits are milliseconds since 1970, which is what partitions the
//! PostgreSQL tables by day. Applications and endpoints also have a public name that their owner
//! chooses ([`PublicId`]).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use uuid::Uuid;

/// Makes a `UUIDv7` of milliseconds since 1970 and ten random bytes (RFC 9562, section 5.7).
///
/// Only the lowest 48 bits of `unix_millis` are used, which last until the year 10889.
#[must_use]
pub fn uuid_v7(unix_millis: u64, entropy: [u8; 10]) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(unix_millis, &entropy).into_uuid()
}

/// Below every `UUIDv7` of that millisecond, and above every one of an earlier millisecond.
#[must_use]
pub fn uuid_floor(unix_millis: u64) -> Uuid {
    Uuid::from_u128(u128::from(unix_millis & 0xffff_ffff_ffff) << 80)
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that is known to be of this kind.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            #[must_use]
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.hyphenated(), f)
            }
        }

        impl FromStr for $name {
            type Err = MalformedUuid;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_hyphenated(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

uuid_id! {
    /// A submission: one accepted message.
    SubmissionId
}
uuid_id! {
    /// A delivery: the obligation to bring one submission to one endpoint.
    DeliveryId
}
uuid_id! {
    /// The internal identity of an endpoint, which stands in every hot table.
    EndpointKey
}
uuid_id! {
    /// The internal identity of an application.
    ApplicationKey
}
uuid_id! {
    /// The internal identity of a source.
    SourceKey
}
uuid_id! {
    /// Which claim of a delivery this is. A result counts only under the token that the row carries.
    ClaimToken
}

/// The text is not a UUID in the form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")]
pub struct MalformedUuid;

fn parse_hyphenated(text: &str) -> Result<Uuid, MalformedUuid> {
    // The braced, urn: and undashed spellings are not ours: one resource has one address.
    if text.len() != 36 {
        return Err(MalformedUuid);
    }
    Uuid::try_parse(text).map_err(|_| MalformedUuid)
}

/// How long a public id may be, in characters.
pub const PUBLIC_ID_CHARACTERS_MAX: usize = 64;

/// A name in URLs that the owner of an application or endpoint chooses.
///
/// 1 to 64 of `a-z`, `0-9`, `-` and `_`, starting and ending with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PublicId(String);

/// Why a text is not a public id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicIdError {
    /// It has no characters, or more than [`PUBLIC_ID_CHARACTERS_MAX`].
    #[error("must have 1 to {PUBLIC_ID_CHARACTERS_MAX} characters")]
    Length,
    /// It has a character other than `a-z`, `0-9`, `-` and `_`.
    #[error("may only contain a-z, 0-9, - and _")]
    Character,
    /// Its first or last character is `-` or `_`.
    #[error("must start and end with a letter or a digit")]
    Border,
}

impl PublicId {
    /// Parses the text, which is stored and compared as it stands.
    pub fn parse(text: &str) -> Result<Self, PublicIdError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > PUBLIC_ID_CHARACTERS_MAX {
            return Err(PublicIdError::Length);
        }
        let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !bytes.iter().all(|b| alphanumeric(b) || matches!(b, b'-' | b'_')) {
            return Err(PublicIdError::Character);
        }
        if ![bytes.first(), bytes.last()].into_iter().flatten().all(alphanumeric) {
            return Err(PublicIdError::Border);
        }
        Ok(Self(text.to_owned()))
    }

    /// The id of an endpoint whose owner chose none: `ep_` and the endpoint's UUID.
    #[must_use]
    pub fn of_endpoint(key: EndpointKey) -> Self {
        Self(format!("ep_{key}"))
    }

    /// The id of a source whose owner chose none: `src_` and the source's UUID.
    #[must_use]
    pub fn of_source(key: SourceKey) -> Self {
        Self(format!("src_{key}"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_made_later_sort_later_and_carry_their_millisecond() {
        let early = uuid_v7(1_700_000_000_000, [0xff; 10]);
        let late = uuid_v7(1_700_000_000_001, [0; 10]);
        assert!(early < late);
        assert_eq!(early.get_version_num(), 7);
        let (seconds, nanos) = early.get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (1_700_000_000, 0));
    }

    #[test]
    fn only_the_hyphenated_spelling_is_an_id() {
        let id = "0190f5fe-7c00-7a00-8a00-000000000001";
        assert_eq!(id.parse::<DeliveryId>().unwrap().to_string(), id);
        for bad in [
            "",
            "x",
            "0190f5fe7c007a008a00000000000001",
            "{0190f5fe-7c00-7a00-8a00-000000000001}",
            "urn:uuid:0190f5fe-7c00-7a00-8a00-000000000001",
            "0190f5fe-7c00-7a00-8a00-00000000000g",
        ] {
            assert_eq!(bad.parse::<DeliveryId>(), Err(MalformedUuid), "{bad}");
        }
    }

    #[test]
    fn a_public_id_is_held_to_its_alphabet_length_and_borders() {
        let longest = "a".repeat(64);
        for good in ["a", "7", "orders", "ep_1-2", longest.as_str()] {
            assert_eq!(PublicId::parse(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(65);
        for (bad, why) in [
            ("", PublicIdError::Length),
            (too_long.as_str(), PublicIdError::Length),
            ("Orders", PublicIdError::Character),
            ("a.b", PublicIdError::Character),
            ("a b", PublicIdError::Character),
            ("ä", PublicIdError::Character),
            ("-a", PublicIdError::Border),
            ("a_", PublicIdError::Border),
        ] {
            assert_eq!(PublicId::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn the_id_made_for_an_endpoint_is_a_public_id() {
        let id = PublicId::of_endpoint(EndpointKey::from_uuid(uuid_v7(1, [7; 10])));
        assert_eq!(PublicId::parse(id.as_str()), Ok(id));
    }
}
