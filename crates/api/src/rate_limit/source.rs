//! Where a request comes from: an address, as a digest that only this service can compute.
//!
//! Addresses are not stored. What is stored is a digest keyed with a secret, so that whoever reads
//! the counters cannot try all addresses until one fits.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::rate_limit::RateLimit;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How many bytes of a digest are kept.
const DIGEST_BYTES: usize = 16;
/// The fewest bytes of a source secret.
pub(crate) const SOURCE_SECRET_BYTES_MIN: usize = 16;
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How much one address may send.
#[derive(Debug, Clone)]
pub struct SourceLimit {
    /// The limit.
    pub limit: RateLimit,
    /// What the digests of addresses are keyed with. The same in every process on one database, or
    /// each counts by itself.
    pub secret: SourceSecret,
    /// How many proxies in front of this process are ours. Each has appended the address that it was
    /// called from to `X-Forwarded-For`. 0: the header counts for nothing.
    pub trusted_hops: u8,
}

/// The key of digests of addresses.
#[derive(Clone)]
pub struct SourceSecret(Arc<Hmac<Sha256>>);

impl SourceSecret {
    /// A secret of at least 16 bytes.
    ///
    /// # Errors
    /// It is shorter.
    pub fn new(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < SOURCE_SECRET_BYTES_MIN {
            return Err("a source secret has at least 16 bytes");
        }
        let mac = Hmac::new_from_slice(bytes).map_err(|_| "not a key")?;
        Ok(Self(Arc::new(mac)))
    }

    /// The secret that is this key.
    pub(crate) fn of_key(key: &[u8; 32]) -> Self {
        // HMAC fills a short key up with zeros to the block of its hash.
        let mut block = [0; 64];
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Self(Arc::new(Hmac::new((&block).into())))
    }

    /// What the address is counted under. IPv6 counts by its network of 64 bits: a host has all of
    /// its addresses.
    pub(crate) fn digest(&self, address: IpAddr) -> String {
        let mut mac = Hmac::clone(&self.0);
        match address.to_canonical() {
            IpAddr::V4(address) => mac.update(&address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                mac.update(&Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).octets());
            }
        }
        let digest = mac.finalize().into_bytes();
        let (kept, _) = digest.split_at(DIGEST_BYTES);
        URL_SAFE_NO_PAD.encode(kept)
    }
}

impl fmt::Debug for SourceSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceSecret")
    }
}

/// What the source of a request is counted under.
pub(crate) fn subject(request: &HttpRequest, source: &SourceLimit) -> String {
    let peer = request.peer_addr().map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.ip());
    source.secret.digest(address(peer, request.headers(), source.trusted_hops))
}

/// The address that a request comes from.
///
/// The last entry of `X-Forwarded-For` was made by the proxy that called us, the one before it by the
/// proxy that called that one, and so on. What stands before those of our proxies was made by
/// strangers and counts for nothing. A header with fewer entries has not come through our proxies, or
/// not as we were told: then the address that called us counts, and so it does if the entry is no
/// address.
fn address(peer: IpAddr, headers: &HeaderMap, trusted_hops: u8) -> IpAddr {
    let Some(place) = usize::from(trusted_hops).checked_sub(1) else { return peer };
    let mut entries: Vec<&[u8]> = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR) {
        entries.extend(line.as_bytes().split(|byte| *byte == b','));
    }
    let entry = entries.into_iter().rev().nth(place);
    entry.and_then(parse_entry).unwrap_or(peer)
}

/// An address, by itself or with a port, IPv6 also in brackets.
fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?.trim();
    let unbracketed = || text.strip_prefix('[')?.strip_suffix(']');
    text.parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
        .or_else(|| unbracketed()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn found(lines: &[&'static str], trusted_hops: u8) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_static(line));
        }
        address(PEER, &headers, trusted_hops).to_string()
    }

    #[test]
    fn trusted_hops_are_counted_from_the_right_and_a_forged_entry_counts_for_nothing() {
        let lines = ["6.6.6.6, 203.0.113.9", "198.51.100.7"];
        assert_eq!(found(&lines, 0), "10.0.0.1");
        assert_eq!(found(&lines, 1), "198.51.100.7");
        assert_eq!(found(&lines, 2), "203.0.113.9");
        assert_eq!(found(&["1.1.1.1, 2.2.2.2", "203.0.113.9 ,198.51.100.7"], 2), "203.0.113.9");
    }

    #[test]
    fn who_did_not_come_through_our_proxies_is_the_address_that_called() {
        for (lines, hops) in
            [(&[][..], 1), (&["203.0.113.9"], 2), (&["unknown"], 1), (&["203.0.113.9, "], 1)]
        {
            assert_eq!(found(lines, hops), "10.0.0.1", "{lines:?}");
        }
    }

    #[test]
    fn an_entry_may_have_a_port_or_brackets() {
        assert_eq!(found(&["203.0.113.9:4711"], 1), "203.0.113.9");
        assert_eq!(found(&["[2001:db8::1]:4711"], 1), "2001:db8::1");
        assert_eq!(found(&["[2001:db8::1]"], 1), "2001:db8::1");
        assert_eq!(found(&["2001:db8::1"], 1), "2001:db8::1");
    }

    #[test]
    fn a_host_is_its_ipv4_address_or_its_ipv6_network() {
        let secret = SourceSecret::new(&[7; 32]).unwrap();
        let digest = |text: &str| secret.digest(text.parse().unwrap());
        assert_eq!(digest("2001:db8:1:2::1"), digest("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(digest("2001:db8:1:2::1"), digest("2001:db8:1:3::1"));
        assert_eq!(digest("203.0.113.9"), digest("::ffff:203.0.113.9"));
        assert_ne!(digest("203.0.113.9"), digest("203.0.113.10"));
    }

    #[test]
    fn a_digest_depends_on_the_secret_and_tells_nothing_of_the_address() {
        let (one, two) =
            (SourceSecret::new(&[1; 16]).unwrap(), SourceSecret::new(&[2; 16]).unwrap());
        let digest = one.digest(PEER);
        assert_ne!(digest, two.digest(PEER));
        assert_eq!(digest.len(), 22, "16 bytes in base64");
        assert!(SourceSecret::new(&[1; 15]).is_err());
        assert_eq!(format!("{one:?}"), "SourceSecret");
    }
}
