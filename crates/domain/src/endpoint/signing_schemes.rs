//! Which signatures the deliveries of an endpoint carry.

/// The signature schemes of an endpoint (Standard Webhooks, "Signature scheme").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SigningSchemes {
    /// HMAC-SHA256 with a shared secret.
    #[default]
    V1,
    /// Ed25519, whose public key can be read.
    V1a,
    /// A signature of each.
    Both,
}

impl SigningSchemes {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::V1, Self::V1a, Self::Both];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1a => "v1a",
            Self::Both => "both",
        }
    }

    /// The schemes with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schemes| schemes.as_str() == text)
    }

    /// Whether each delivery is signed with the shared secrets.
    #[must_use]
    pub fn has_v1(self) -> bool {
        self != Self::V1a
    }

    /// Whether each delivery is signed with the Ed25519 keys.
    #[must_use]
    pub fn has_v1a(self) -> bool {
        self != Self::V1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_schemes() {
        for schemes in SigningSchemes::ALL {
            assert_eq!(SigningSchemes::parse(schemes.as_str()), Some(schemes));
            assert!(schemes.has_v1() || schemes.has_v1a());
        }
        for text in ["", "V1", "v2", "v1,v1a"] {
            assert_eq!(SigningSchemes::parse(text), None, "{text}");
        }
    }
}
