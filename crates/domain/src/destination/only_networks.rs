//! The networks that an endpoint's own requests are kept within.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::address::{RefusedAddress, reached_address};

/// The most networks of an endpoint.
pub const ONLY_NETWORKS_MAX: usize = 32;

/// 1 to [`ONLY_NETWORKS_MAX`] networks, outside of which nothing of an endpoint is sent.
///
/// They narrow what the [`AddressPolicy`](super::AddressPolicy) of the deployment allows and never widen
/// it, so that whoever may change an endpoint, also a tenant, cannot open the network that the workers
/// stand in. A receiver with fixed addresses is so kept apart from whoever takes over its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnlyNetworks(Arc<[IpNet]>);

/// Why a list is not one of networks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OnlyNetworksError {
    /// The list is empty.
    #[error("must have at least one network; without the field no network is left out")]
    Empty,
    /// The list is longer than [`ONLY_NETWORKS_MAX`].
    #[error("must have at most {ONLY_NETWORKS_MAX} networks, this one has {count}")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// Something in it is not a network.
    #[error("network {position} is not an address and a prefix such as 203.0.113.0/24")]
    Malformed {
        /// Which one, counted from 1.
        position: usize,
    },
    /// The address has bits beyond the prefix: a slip, which would allow more than was meant.
    #[error("network {position} has bits beyond its prefix, it would be {network}")]
    BitsBeyondPrefix {
        /// Which one, counted from 1.
        position: usize,
        /// The network that it is in.
        network: IpNet,
    },
}

impl OnlyNetworksError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "only_networks_empty",
            Self::TooMany { .. } => "only_networks_too_many",
            Self::Malformed { .. } | Self::BitsBeyondPrefix { .. } => "network_malformed",
        }
    }
}

impl OnlyNetworks {
    /// Reads the networks, whose order is kept.
    ///
    /// # Errors
    /// [`OnlyNetworksError`], which names the limit or the network.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Self, OnlyNetworksError> {
        match texts.len() {
            0 => return Err(OnlyNetworksError::Empty),
            1..=ONLY_NETWORKS_MAX => {}
            count => return Err(OnlyNetworksError::TooMany { count }),
        }
        let networks = texts.iter().zip(1..).map(|(text, position)| {
            let given: IpNet =
                text.as_ref().parse().map_err(|_| OnlyNetworksError::Malformed { position })?;
            let network = given.trunc();
            if given.addr() == network.addr() {
                Ok(network)
            } else {
                Err(OnlyNetworksError::BitsBeyondPrefix { position, network })
            }
        });
        networks.collect::<Result<_, _>>().map(Self)
    }

    /// Says whether a request may go to `address`, which the policy of the deployment allows.
    ///
    /// An IPv4 network also covers the IPv4-mapped and NAT64 forms of its addresses.
    ///
    /// # Errors
    /// [`RefusedAddress`], which names the address as given.
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        let reached = reached_address(address);
        if self.0.iter().any(|it| it.contains(&address) || it.contains(&reached)) {
            return Ok(());
        }
        let reason = "outside the networks of the endpoint";
        Err(RefusedAddress { address, reason, source_document: "only_networks" })
    }

    /// The networks as text, canonical, 1 to [`ONLY_NETWORKS_MAX`] of them.
    #[must_use]
    pub fn to_texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<OnlyNetworks, OnlyNetworksError> {
        OnlyNetworks::parse(texts)
    }

    #[test]
    fn networks_are_kept_in_canonical_form_and_cover_every_form_of_their_addresses() {
        let only = parse(&["203.0.113.0/24", "2001:DB8:0::/48", "8.8.8.8/32"]).unwrap();
        assert_eq!(only.to_texts(), ["203.0.113.0/24", "2001:db8::/48", "8.8.8.8/32"]);
        for inside in ["203.0.113.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:db8::1"] {
            assert_eq!(only.check(inside.parse().unwrap()), Ok(()), "{inside}");
        }
        for outside in ["203.0.114.0", "8.8.8.9", "::ffff:8.8.8.9", "2001:db8:1::1", "::1"] {
            let refused = only.check(outside.parse().unwrap()).unwrap_err().to_string();
            assert!(refused.contains("only_networks") && refused.contains(outside), "{refused}");
        }
    }

    #[test]
    fn what_is_no_list_of_networks_is_refused_and_the_network_is_named() {
        let many = vec!["10.0.0.0/8"; ONLY_NETWORKS_MAX + 1];
        for (bad, code, word) in [
            (&[][..], "only_networks_empty", "at least one"),
            (&many[..], "only_networks_too_many", "at most 32"),
            (&["10.0.0.0/8", "10.0.0.1"], "network_malformed", "network 2"),
            (&["10.0.0.0/33"], "network_malformed", "network 1"),
            (&["example.com/8"], "network_malformed", "network 1"),
            (&[""], "network_malformed", "network 1"),
            (&["10.1.0.0/8"], "network_malformed", "10.0.0.0/8"),
            (&["fe80::1/64"], "network_malformed", "fe80::/64"),
        ] {
            let refused = parse(bad).unwrap_err();
            assert_eq!(refused.code(), code, "{bad:?}");
            assert!(refused.to_string().contains(word), "{refused}");
        }
        assert!(parse(&many[1..]).is_ok());
    }
}
