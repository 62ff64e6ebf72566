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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<DestinationUrl, DestinationError> {
        DestinationUrl::parse(text, &AddressPolicy::default())
    }

    fn parse_allowing(text: &str, network: &str) -> Result<DestinationUrl, DestinationError> {
        let policy = AddressPolicy { allow_networks: vec![network.parse().unwrap()] };
        DestinationUrl::parse(text, &policy)
    }

    fn code(text: &str) -> &'static str {
        parse(text).map_or_else(|refused| refused.code(), |_| "accepted")
    }

    #[test]
    fn the_canonical_form_is_what_is_kept() {
        for (given, canonical, port) in [
            ("https://example.com", "https://example.com/", 443),
            ("HTTPS://EXAMPLE.com:443/Hook?a=B", "https://example.com/Hook?a=B", 443),
            ("http://example.com:8080/a/../b", "http://example.com:8080/b", 8080),
            ("http://example.com:080/", "http://example.com/", 80),
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC", 443),
            ("https://a_b.example.com/x@y", "https://a_b.example.com/x@y", 443),
            (
                "https://example.com/?to=http://10.0.0.1/",
                "https://example.com/?to=http://10.0.0.1/",
                443,
            ),
            ("http://0x08.8.8.8/", "http://8.8.8.8/", 80),
            ("http://[2606:4700:4700:0::1111]:81/", "http://[2606:4700:4700::1111]:81/", 81),
            ("https://127.0.0.1.nip.io/", "https://127.0.0.1.nip.io/", 443),
        ] {
            let url = parse(given).unwrap();
            assert_eq!(url.as_str(), canonical);
            assert_eq!(url.to_string(), canonical);
            assert_eq!(url.port(), port, "{given}");
            assert_eq!(url.is_https(), canonical.starts_with("https:"), "{given}");
        }
    }

    /// Cases C035, C036 and C037.
    #[test]
    fn a_refused_address_is_found_in_every_spelling() {
        for text in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0X7F000001/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://0/",
            "http://127.0.0.1./",
            "http://127%2e0%2e0%2e1/",
            "http://%31%32%37.0.0.1/",
            "http://127。0。0。1/",
            "http://①②⑦.⓪.⓪.①/",
            "http://１２７.０.０.１/",
            "http://0251.254.169.254/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::1]/",
            "http://[::1]:8080/hook",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[::127.0.0.1]/",
            "http://[2001:0:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "https://10.1.2.3/",
            "https://100.64.0.1/",
        ] {
            assert_eq!(code(text), "address_refused", "{text}");
        }
    }

    #[test]
    fn local_names_are_refused() {
        for text in [
            "http://localhost/",
            "http://LOCALHOST/",
            "http://ＬＯＣＡＬＨＯＳＴ/",
            "http://foo.localhost/",
            "http://a.b.localhost:8080/",
            "http://ip6-localhost/",
            "http://ip6-loopback/",
            "http://localhost.localdomain/",
            "http://printer.local/",
            "http://metadata.google.internal/",
            "http://intranet/",
            "http://com/",
        ] {
            assert_eq!(code(text), "url_host_local", "{text}");
        }
        assert_eq!(code("http://localhost.example.com/"), "accepted");
        assert_eq!(code("http://notlocalhost.example/"), "accepted");
        assert_eq!(code("http://local.example/"), "accepted");
    }

    #[test]
    fn a_name_that_is_no_dns_name_is_refused() {
        for text in [
            "http://localhost./",
            "http://example.com./",
            "http://example..com/",
            "http://.example.com/",
            "http://exa$mple.com/",
            "http://exa*mple.com/",
            &format!("http://{}.com/", "a".repeat(64)),
            &format!("http://{}com/", "a.".repeat(126)),
        ] {
            assert_eq!(code(text), "url_host_not_dns", "{text}");
        }
    }

    /// Case C043.
    #[test]
    fn what_two_parsers_could_read_differently_is_refused() {
        for (text, expected) in [
            ("http://example.com\\@127.0.0.1/", "url_forbidden_character"),
            ("http:\\\\example.com/", "url_forbidden_character"),
            ("http://127.0.0.1\t.example.com/", "url_forbidden_character"),
            ("http://exam\nple.com/", "url_forbidden_character"),
            ("http://exa mple.com", "url_forbidden_character"),
            (" http://example.com/", "url_forbidden_character"),
            ("http://example.com/\u{a0}", "url_forbidden_character"),
            ("http://example.com/\u{0}", "url_forbidden_character"),
            ("http://example.com/\u{85}", "url_forbidden_character"),
            ("http://127.0.0.1#@example.com/", "url_fragment"),
            ("https://example.com/#", "url_fragment"),
            ("http://example.com@127.0.0.1/", "url_userinfo"),
            ("https://user:pw@example.com/", "url_userinfo"),
            ("https://@example.com/", "url_userinfo"),
            ("https://a@b@example.com?x", "url_userinfo"),
            ("http:///127.0.0.1/", "url_malformed"),
            ("http://", "url_malformed"),
            ("http://?x", "url_malformed"),
            ("http://:80/", "url_malformed"),
            ("http://example.com:65536/", "url_malformed"),
            ("http://example.com:-1/", "url_malformed"),
            ("http://example.com:8o/", "url_malformed"),
            ("http://[::1%2525]/", "url_malformed"),
            ("http://[fe80::1%25eth0]/", "url_malformed"),
            ("http://1.2.3.4.5/", "url_malformed"),
            ("http://256.0.0.1/", "url_malformed"),
            ("http://exa%20mple.com/", "url_malformed"),
            ("http://exa%00mple.com/", "url_malformed"),
            ("http://\u{ad}/", "url_malformed"),
            ("HTTP:127.0.0.1", "url_not_http"),
            ("http:/example.com", "url_not_http"),
            ("//example.com/", "url_not_http"),
            ("example.com", "url_not_http"),
            ("", "url_not_http"),
            ("unix:/var/run/docker.sock", "url_not_http"),
            ("file:///etc/passwd", "url_not_http"),
            ("ws://example.com/", "url_not_http"),
            ("gopher://127.0.0.1:6379/_x", "url_not_http"),
            ("javascript://example.com/", "url_not_http"),
            ("http://example.com:0/", "url_port_blocked"),
            ("http://example.com:22/", "url_port_blocked"),
            ("http://example.com:022/", "url_port_blocked"),
            ("http://example.com:25/", "url_port_blocked"),
            ("http://example.com:6379/", "url_port_blocked"),
            ("http://example.com:5432/", "url_port_blocked"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_policy_opens_literals_and_local_names() {
        assert!(parse_allowing("http://127.0.0.1:8080/", "127.0.0.0/8").is_ok());
        assert!(parse_allowing("http://2130706433/", "127.0.0.0/8").is_ok());
        assert!(parse_allowing("http://localhost/", "127.0.0.0/8").is_ok());
        assert!(parse_allowing("http://app.localhost/", "::1/128").is_ok());
        assert!(parse_allowing("http://receiver:8080/", "172.16.0.0/12").is_ok());
        assert!(parse_allowing("http://hooks.corp.internal/", "10.0.0.0/8").is_ok());
        assert!(parse_allowing("http://localhost/", "10.0.0.0/8").is_err());
        assert!(parse_allowing("http://10.0.0.1/", "127.0.0.0/8").is_err());
        assert!(parse_allowing("http://127.0.0.1:22/", "127.0.0.0/8").is_err());
        assert!(parse_allowing("http://localhost./", "127.0.0.0/8").is_err());
    }

    #[test]
    fn the_limit_holds_for_the_given_and_for_the_canonical_text() {
        let of_length = |bytes: usize| format!("https://example.com/{}", "a".repeat(bytes - 20));
        assert!(parse(&of_length(URL_BYTES_MAX)).is_ok());
        assert_eq!(
            parse(&of_length(URL_BYTES_MAX + 1)),
            Err(DestinationError::TooLong { bytes: URL_BYTES_MAX + 1 })
        );
        let grows = format!("https://example.com/{}", "é".repeat(400));
        assert!(grows.len() < URL_BYTES_MAX);
        assert_eq!(parse(&grows), Err(DestinationError::TooLong { bytes: 2420 }));
    }

    #[test]
    fn messages_name_the_reason_and_the_limit() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            message("http://2130706433/"),
            "the address 127.0.0.1 is refused: loopback (RFC 1122)"
        );
        assert_eq!(message("http://Intranet/"), "the host `intranet` is a local name");
        assert!(message(&"x".repeat(3000)).contains("2048 bytes, this one 3000"));
    }

    #[test]
    fn the_blocked_ports_are_in_order() {
        assert!(BLOCKED_PORTS.is_sorted());
        for open in [80, 443, 8000, 8080, 8443, 9200] {
            assert!(BLOCKED_PORTS.binary_search(&open).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_what_is_accepted_is_stable(
            text in "(https?://)?[a-zA-Z0-9.:/@#?%\\[\\]\\\\ é。-]{0,40}"
        ) {
            if let Ok(url) = parse(&text) {
                prop_assert_eq!(parse(url.as_str()), Ok(url));
            }
        }
    }
}
