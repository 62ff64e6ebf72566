//! Which IP addresses a request may be sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Decides about IP addresses: globally reachable unicast is allowed, everything else is refused.
///
/// The refused ranges are those of the IANA IPv4 and IPv6 Special-Purpose Address Registries
/// (RFC 6890), multicast, and all IPv6 space outside `2000::/3`, the only global unicast space that
/// IANA has allocated. Registry entries that are marked globally reachable (AS112, AMT, anycast
/// relays) are refused too: they are infrastructure and never a receiver of webhooks.
///
/// An IPv4-mapped address (`::ffff:0:0/96`) and an address of the well-known NAT64 prefix
/// (`64:ff9b::/96`, RFC 6052) are judged by the IPv4 address that they reach. The forms that carry an IPv4
/// address through a tunnel (6to4, Teredo, IPv4-compatible) and the local-use NAT64 prefix are
/// refused whatever they carry, because the packet may end anywhere. Where such a network is allowed, and
/// for the addresses of ISATAP, which may have any prefix, what they carry has to be allowed too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressPolicy {
    /// Networks that are allowed although the table refuses them. Empty by default.
    ///
    /// An IPv4 network also covers the IPv4-mapped and NAT64 forms of its addresses.
    pub allow_networks: Vec<IpNet>,
}

/// An address that the policy refuses, with the reason and where that rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the address {address} is refused: {reason} ({source_document})")]
pub struct RefusedAddress {
    /// The address as it was given.
    pub address: IpAddr,
    /// What kind of address it is, such as `loopback` or `link-local`.
    pub reason: &'static str,
    /// The document that sets the range aside, such as `RFC 1918`.
    pub source_document: &'static str,
}

/// Why a name's addresses cannot be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RefusedResolution {
    /// The name resolved to nothing. Without a checked address there is no connection.
    #[error("the name resolved to no address")]
    NoAddress,
    /// At least one address is refused.
    #[error(transparent)]
    Address(#[from] RefusedAddress),
}

impl AddressPolicy {
    /// Says whether a request may go to `address`.
    ///
    /// [`allow_networks`](Self::allow_networks) wins over the table of refused ranges. One that IPv4
    /// addresses are carried in opens itself and nothing that it carries.
    ///
    /// # Errors
    /// [`RefusedAddress`], which names the address as given and the reason.
    pub fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        let reached = reached_address(address);
        // A network may be written in the IPv4-mapped form too.
        let is_named = is_mapped(address) && self.allows(address);
        let carried = carried_address(reached);
        match self.refusal(reached).filter(|_| !is_named).or_else(|| self.refusal(carried?)) {
            None => Ok(()),
            Some((reason, source_document)) => {
                Err(RefusedAddress { address, reason, source_document })
            }
        }
    }

    /// Says whether a connection to a name with these addresses may be opened.
    ///
    /// One refused address refuses all: a name that mixes public and private addresses is either
    /// an attack or a mistake, and which one a client picks is not to be left to chance.
    ///
    /// # Errors
    /// [`RefusedResolution::NoAddress`] for an empty list, otherwise the first refused address.
    pub fn check_resolved(&self, addresses: &[IpAddr]) -> Result<(), RefusedResolution> {
        if addresses.is_empty() {
            return Err(RefusedResolution::NoAddress);
        }
        for address in addresses {
            self.check(*address)?;
        }
        Ok(())
    }

    fn refusal(&self, address: IpAddr) -> Option<(&'static str, &'static str)> {
        if self.allows(address) { None } else { refusal(address) }
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allow_networks.iter().any(|network| network.contains(&address))
    }
}

/// The address where a packet to `address` ends, when that is an IPv4 address in another spelling.
pub(super) fn reached_address(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    if NAT64.contains(&v6) {
        let [.., a, b, c, d] = v6.octets();
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    v6.to_canonical()
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// The IPv4 address that an IPv6 address carries through a tunnel or a translation of the network's own.
fn carried_address(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else {
        return None;
    };
    let [_, second, third, .., seventh, eighth] = v6.segments();
    let (high, low) = if SIX_TO_FOUR.contains(&v6) {
        (second, third)
    } else if TEREDO.contains(&v6) {
        (!seventh, !eighth)
    } else if is_isatap(&v6) || LAST_32_BITS.iter().any(|network| network.contains(&v6)) {
        (seventh, eighth)
    } else {
        return None;
    };
    // `::` and `::1` are no IPv4 addresses, although they stand among the compatible ones.
    let is_own = v6.is_unspecified() || v6.is_loopback();
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    (!is_own).then(|| Ipv4Addr::new(a, b, c, d).into())
}

/// RFC 5214 section 6.1: the interface identifier is `0:5efe` or `200:5efe`, and an IPv4 address.
fn is_isatap(v6: &Ipv6Addr) -> bool {
    let [.., fifth, sixth, _, _] = v6.segments();
    matches!(fifth, 0 | 0x200) && sixth == 0x5efe
}

fn refusal(address: IpAddr) -> Option<(&'static str, &'static str)> {
    match address {
        IpAddr::V4(v4) => REFUSED_IPV4
            .iter()
            .find(|(network, ..)| network.contains(&v4))
            .map(|(_, reason, source)| (*reason, *source)),
        IpAddr::V6(v6) => REFUSED_IPV6
            .iter()
            .find(|(network, ..)| network.contains(&v6))
            .map(|(_, reason, source)| (*reason, *source))
            .or_else(|| {
                (!GLOBAL_UNICAST.contains(&v6)).then_some(("not global unicast", "RFC 4291"))
            }),
    }
}

/// The well-known prefix of IPv4/IPv6 translation (RFC 6052 section 2.1).
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// RFC 3056 section 2: the IPv4 address follows the prefix.
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);

/// RFC 4380 section 4: the client's IPv4 address stands last, each bit inverted.
const TEREDO: Ipv6Net = v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32);

/// Where the last 32 bits are the IPv4 address: the compatible form (RFC 4291 section 2.5.5.1), the
/// translated one (RFC 2765 section 2.1), and local-use NAT64 as it is used with a prefix of 96 bits (RFC
/// 8215; of a shorter one only its operator knows).
const LAST_32_BITS: [Ipv6Net; 3] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
];

/// The only IPv6 space allocated for global unicast (RFC 4291 section 2.4, IANA IPv6 Address Space).
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// A network, what it is, and the document that sets it aside. The first match gives the reason.
type Refused<N> = (N, &'static str, &'static str);

/// IANA IPv4 Special-Purpose Address Registry, and multicast.
#[rustfmt::skip]
const REFUSED_IPV4: [Refused<Ipv4Net>; 20] = [
    (v4([0, 0, 0, 0], 8),          "this network",                       "RFC 791"),
    (v4([10, 0, 0, 0], 8),         "private",                            "RFC 1918"),
    (v4([100, 64, 0, 0], 10),      "carrier-grade NAT",                  "RFC 6598"),
    (v4([127, 0, 0, 0], 8),        "loopback",                           "RFC 1122"),
    (v4([169, 254, 0, 0], 16),     "link-local",                         "RFC 3927"),
    (v4([172, 16, 0, 0], 12),      "private",                            "RFC 1918"),
    (v4([192, 0, 0, 0], 24),       "IETF protocol assignments",          "RFC 6890"),
    (v4([192, 0, 2, 0], 24),       "documentation",                      "RFC 5737"),
    (v4([192, 31, 196, 0], 24),    "AS112",                              "RFC 7535"),
    (v4([192, 52, 193, 0], 24),    "automatic multicast tunneling",      "RFC 7450"),
    (v4([192, 88, 99, 0], 24),     "6to4 relay anycast",                 "RFC 7526"),
    (v4([192, 168, 0, 0], 16),     "private",                            "RFC 1918"),
    (v4([192, 175, 48, 0], 24),    "AS112",                              "RFC 7534"),
    (v4([198, 18, 0, 0], 15),      "benchmarking",                       "RFC 2544"),
    (v4([198, 51, 100, 0], 24),    "documentation",                      "RFC 5737"),
    (v4([203, 0, 113, 0], 24),     "documentation",                      "RFC 5737"),
    (v4([224, 0, 0, 0], 4),        "multicast",                          "RFC 5771"),
    (v4([255, 255, 255, 255], 32), "limited broadcast",                  "RFC 919"),
    (v4([240, 0, 0, 0], 4),        "reserved",                           "RFC 1112"),
    // In no registry: a public address that inside Azure reaches the host's metadata service.
    (v4([168, 63, 129, 16], 32),   "Azure platform service",             "Microsoft Azure documentation"),
];

/// IANA IPv6 Special-Purpose Address Registry, multicast, and the deprecated forms of RFC 4291.
#[rustfmt::skip]
const REFUSED_IPV6: [Refused<Ipv6Net>; 18] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128),         "unspecified",               "RFC 4291"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128),         "loopback",                  "RFC 4291"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96),          "IPv4-compatible",           "RFC 4291"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),  "local-use NAT64",           "RFC 8215"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),      "discard-only",              "RFC 6666"),
    (v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64),      "dummy prefix",              "RFC 9780"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),     "Teredo",                    "RFC 4380"),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48),     "benchmarking",              "RFC 5180"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),     "IETF protocol assignments", "RFC 2928"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation",             "RFC 3849"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),     "6to4",                      "RFC 3056"),
    (v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), "AS112",                 "RFC 7534"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),     "documentation",             "RFC 9637"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),     "segment routing",           "RFC 9602"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),      "unique local",              "RFC 4193"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),     "link-local",                "RFC 4291"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),     "site-local",                "RFC 3879"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),      "multicast",                 "RFC 4291"),
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(s: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]), prefix)
}

#[cfg(test)]
mod tests;
