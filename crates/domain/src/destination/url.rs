//! The URL of an endpoint: read once, canonical, and free of every known double reading.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use url::{Host, Url};

use super::{AddressPolicy, RefusedAddress};

/// The most bytes of a URL, as given and in canonical form: 2,048.
pub const URL_BYTES_MAX: usize = 2048;

/// Ports that are never delivered to, in ascending order.
///
/// They are the bad ports of the WHATWG Fetch standard ("Port blocking"), where a service of
/// another protocol could take an HTTP request for its own commands, and the usual ports of file
/// shares, databases, caches, brokers and remote desktops.
#[rustfmt::skip]
pub const BLOCKED_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873,
    989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 3306, 3389, 3659, 4045, 4190,
    5060, 5061, 5432, 5672, 5900, 6000, 6379, 6380, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
    9042, 9092, 10080, 11211, 27017,
];

/// Names that mean the machine itself: `localhost` and its subdomains (RFC 6761 section 6.3), and
/// the two names that Debian's `/etc/hosts` gives to `::1`.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "ip6-localhost", "ip6-loopback"];

/// Top-level names that never leave a local network: multicast DNS (RFC 6762), the private-use name
/// that ICANN reserved in 2024, and a name that resolvers append.
///
/// `home.arpa` (RFC 8375) is not listed: it resolves to private addresses, which are refused then.
const LOCAL_SUFFIXES: [&str; 3] = [".local", ".internal", ".localdomain"];

/// An `http` or `https` URL that a delivery may be sent to, in canonical form.
///
/// Canonical means: as the WHATWG URL standard serializes it, the host in lower case and as UTS #46
/// maps it, IP addresses in their one spelling, no default port. The checker and the sender use
/// this one value, so they cannot read the text differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationUrl {
    url: Url,
    host: Host,
    port: u16,
}

/// Why a text is not a URL that deliveries may be sent to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DestinationError {
    /// Longer than [`URL_BYTES_MAX`], as given or in canonical form.
    #[error("a URL has at most {URL_BYTES_MAX} bytes, this one {bytes}")]
    TooLong {
        /// The length in bytes; of the canonical form, if only that is too long.
        bytes: usize,
    },
    /// Holds whitespace, a control character or a backslash, which parsers treat differently.
    #[error("a URL holds no whitespace, control characters or backslashes")]
    ForbiddenCharacter,
    /// Does not start with `http://` or `https://`.
    #[error("a URL starts with `http://` or `https://`")]
    NotHttp,
    /// The authority holds an `@`: a user name or password (deprecated in RFC 3986 section 3.2.1).
    #[error("a URL holds no user name or password")]
    Userinfo,
    /// Holds a `#`. A fragment is never sent (RFC 9110 section 4.2.5).
    #[error("a URL holds no fragment (`#`)")]
    Fragment,
    /// The WHATWG URL parser refuses it.
    #[error("not a valid URL: {reason}")]
    Malformed {
        /// What the parser found, in its own words.
        reason: &'static str,
    },
    /// The port is one of [`BLOCKED_PORTS`].
    #[error("the port {port} is not delivered to, it belongs to another protocol")]
    BlockedPort {
        /// The port of the URL.
        port: u16,
    },
    /// The host is neither an address nor a DNS name (RFC 1123 section 2.1, underscores allowed).
    #[error(
        "a host is an IP address or labels of 1 to 63 letters, digits, `-` and `_`, separated by \
         single full stops, at most 253 characters in all"
    )]
    HostNotDns,
    /// The host is a name of this machine or of a local network.
    #[error("the host `{host}` is a local name")]
    LocalName {
        /// The canonical host.
        host: String,
    },
    /// The host is an IP address that the policy refuses.
    #[error(transparent)]
    AddressRefused(#[from] RefusedAddress),
}

impl DestinationError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "url_too_long",
            Self::ForbiddenCharacter => "url_forbidden_character",
            Self::NotHttp => "url_not_http",
            Self::Userinfo => "url_userinfo",
            Self::Fragment => "url_fragment",
            Self::Malformed { .. } => "url_malformed",
            Self::BlockedPort { .. } => "url_port_blocked",
            Self::HostNotDns => "url_host_not_dns",
            Self::LocalName { .. } => "url_host_local",
            Self::AddressRefused(_) => "address_refused",
        }
    }
}

impl DestinationUrl {
    /// Reads a URL of at most [`URL_BYTES_MAX`] bytes and checks everything that needs no resolver.
    ///
    /// A host that is an address, in any spelling, is checked by `policy`. A loopback name passes
    /// if the policy allows `127.0.0.1` or `::1`. A single-label name and one under `.local`,
    /// `.internal` or `.localdomain` pass if the policy allows any network, since their owner has
    /// then opened a private network on purpose. A name that ends in a full stop is refused. In
    /// every case the addresses that a name resolves to are still to be checked.
    ///
    /// # Errors
    /// The first [`DestinationError`] that applies.
    pub fn parse(text: &str, policy: &AddressPolicy) -> Result<Self, DestinationError> {
        check_text(text)?;
        let url = Url::parse(text).map_err(malformed)?;
        let bytes = url.as_str().len();
        if bytes > URL_BYTES_MAX {
            return Err(DestinationError::TooLong { bytes });
        }
        let host = url.host().ok_or(malformed(url::ParseError::EmptyHost))?.to_owned();
        let port = url.port_or_known_default().ok_or(DestinationError::NotHttp)?;
        if BLOCKED_PORTS.binary_search(&port).is_ok() {
            return Err(DestinationError::BlockedPort { port });
        }
        match &host {
            Host::Ipv4(address) => policy.check(IpAddr::V4(*address))?,
            Host::Ipv6(address) => policy.check(IpAddr::V6(*address))?,
            Host::Domain(name) => check_name(name, policy)?,
        }
        Ok(Self { url, host, port })
    }

    /// The canonical text, at most [`URL_BYTES_MAX`] bytes of ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The URL itself: what was checked is what is sent to, without a second parser.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The host: an address, or a DNS name in lower case that is still to be resolved and checked.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, 1 to 65,535: as given, or 80 for `http` and 443 for `https`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl fmt::Display for DestinationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the WHATWG parser would silently mend: it drops tabs and newlines, turns backslashes into
/// slashes, and takes `http:host` and `http:///host` for `http://host`.
fn check_text(text: &str) -> Result<(), DestinationError> {
    if text.len() > URL_BYTES_MAX {
        return Err(DestinationError::TooLong { bytes: text.len() });
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(DestinationError::ForbiddenCharacter);
    }
    let (scheme, rest) = text.split_once("://").ok_or(DestinationError::NotHttp)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(DestinationError::NotHttp);
    }
    if rest.contains('#') {
        return Err(DestinationError::Fragment);
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(malformed(url::ParseError::EmptyHost));
    }
    if authority.contains('@') {
        return Err(DestinationError::Userinfo);
    }
    Ok(())
}

fn check_name(name: &str, policy: &AddressPolicy) -> Result<(), DestinationError> {
    let allowed = |address: IpAddr| policy.check(address).is_ok();
    let under = |suffix: &str| name == suffix || name.ends_with(&format!(".{suffix}"));
    if !is_dns_name(name) {
        return Err(DestinationError::HostNotDns);
    }
    let passes = if LOOPBACK_NAMES.iter().any(|suffix| under(suffix)) {
        allowed(Ipv4Addr::LOCALHOST.into()) || allowed(Ipv6Addr::LOCALHOST.into())
    } else if !name.contains('.') || LOCAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
        !policy.allow_networks.is_empty()
    } else {
        true
    };
    if passes { Ok(()) } else { Err(DestinationError::LocalName { host: name.to_owned() }) }
}

/// RFC 1035 section 2.3.4 for the lengths. Underscores are in use although host names have none.
fn is_dns_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
}

fn malformed(error: url::ParseError) -> DestinationError {
    let reason = match error {
        url::ParseError::EmptyHost => "the host is empty",
        url::ParseError::IdnaError => "the host is not a valid international domain name",
        url::ParseError::InvalidPort => "the port is not a number from 1 to 65535",
        url::ParseError::InvalidIpv4Address => "the host is not a valid IPv4 address",
        url::ParseError::InvalidIpv6Address => "the host is not a valid IPv6 address",
        url::ParseError::InvalidDomainCharacter => "the host holds a character that no name has",
        _ => "it does not follow the URL standard",
    };
    DestinationError::Malformed { reason }
}

#[cfg(test)]
mod tests;
