//! Where deliveries may go, seen from outside: the registries, and every spelling of an address.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in what it shares")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::destination::{AddressPolicy, DestinationUrl};
use ipnet::IpNet;

/// The blocks of the IANA IPv4 Special-Purpose Address Registry
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>), those within others too, and of the
/// multicast space.
const IPV4: &[&str] = &[
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.88.99.2/32",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
];

/// The blocks of the IANA IPv6 Special-Purpose Address Registry
/// (<https://www.iana.org/assignments/iana-ipv6-special-registry>) and of the multicast space, without the
/// two that are judged by the IPv4 address in them.
const IPV6: &[&str] = &[
    "::1/128",
    "::/128",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
];

/// The two, by their first 96 bits.
const BY_THE_IPV4_IN_THEM: [[u16; 6]; 2] = [[0, 0, 0, 0, 0, 0xffff], [0x64, 0xff9b, 0, 0, 0, 0]];

/// The first address, one in the middle, and the last.
fn samples(network: &str) -> [IpAddr; 3] {
    match network.parse::<IpNet>().unwrap() {
        IpNet::V4(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            [first, first + (last - first) / 2, last].map(|bits| Ipv4Addr::from_bits(bits).into())
        }
        IpNet::V6(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            [first, first + (last - first) / 2, last].map(|bits| Ipv6Addr::from_bits(bits).into())
        }
    }
}

#[test]
fn no_special_purpose_address_is_allowed() {
    let policy = AddressPolicy::default();
    for network in IPV4.iter().chain(IPV6) {
        for address in samples(network) {
            assert!(policy.check(address).is_err(), "{address} of {network}");
        }
    }
    for [a, b, c, d, e, f] in BY_THE_IPV4_IN_THEM {
        for network in IPV4 {
            for address in samples(network) {
                let IpAddr::V4(v4) = address else { unreachable!("of {network}") };
                let [.., high, low] = v4.to_ipv6_compatible().segments();
                let carrier = Ipv6Addr::new(a, b, c, d, e, f, high, low);
                assert!(policy.check(carrier.into()).is_err(), "{carrier} of {network}");
            }
        }
        let public = Ipv6Addr::new(a, b, c, d, e, f, 0x0808, 0x0808);
        assert_eq!(policy.check(public.into()), Ok(()), "{public}");
    }
}

/// Spellings of an address, each with the address that it is read as. Cases C035, C036 and C037.
const SPELLINGS: &[(&str, &str)] = &[
    // Plain, in one number, short, octal, hexadecimal and mixed.
    ("127.0.0.1", "127.0.0.1"),
    ("2130706433", "127.0.0.1"),
    ("017700000001", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"),
    ("0X7F000001", "127.0.0.1"),
    ("0x00000000007f000001", "127.0.0.1"),
    ("127.1", "127.0.0.1"),
    ("127.0.1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("00177.00.00.01", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("0x7f.0x0.0x0.0x1", "127.0.0.1"),
    ("0x7f.0.01", "127.0.0.1"),
    ("127.0x1", "127.0.0.1"),
    ("0", "0.0.0.0"),
    ("0x", "0.0.0.0"),
    ("0.0", "0.0.0.0"),
    ("0251.254.169.254", "169.254.169.254"),
    ("0xa9fea9fe", "169.254.169.254"),
    ("2852039166", "169.254.169.254"),
    ("169.254.43518", "169.254.169.254"),
    ("0300.0250.1", "192.168.0.1"),
    ("10.1", "10.0.0.1"),
    // One full stop at the end.
    ("127.0.0.1.", "127.0.0.1"),
    ("127.1.", "127.0.0.1"),
    ("2130706433.", "127.0.0.1"),
    ("0x7f.1.", "127.0.0.1"),
    // Percent-encoded, also digits, and the full stops of IDNA.
    ("127%2e0%2E0%2e1", "127.0.0.1"),
    ("%31%32%37.0.0.1", "127.0.0.1"),
    ("%30x7f.1", "127.0.0.1"),
    ("127%E3%80%820%E3%80%820%E3%80%821", "127.0.0.1"),
    ("127\u{3002}0\u{3002}0\u{3002}1", "127.0.0.1"),
    ("127\u{ff0e}0\u{ff0e}0\u{ff0e}1", "127.0.0.1"),
    ("127\u{ff61}0\u{ff61}0\u{ff61}1", "127.0.0.1"),
    ("127.0.0.1\u{3002}", "127.0.0.1"),
    // Digits and letters that are mapped.
    ("\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}", "127.0.0.1"),
    ("\u{ff11}\u{ff12}\u{ff17}.0.0.1", "127.0.0.1"),
    ("\u{1d7cf}\u{1d7d0}\u{1d7d5}.0.0.1", "127.0.0.1"),
    ("0\u{ff58}7f.1", "127.0.0.1"),
    ("\u{b9}\u{b2}7.0.0.1", "127.0.0.1"),
    ("1\u{ad}27.0.0.1", "127.0.0.1"),
    // IPv6.
    ("[::1]", "::1"),
    ("[0:0:0:0:0:0:0:1]", "::1"),
    ("[0000:0000:0000:0000:0000:0000:0000:0001]", "::1"),
    ("[0::0:1]", "::1"),
    ("[::0.0.0.1]", "::1"),
    ("[::]", "::"),
    ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
    ("[::FFFF:7F00:1]", "::ffff:127.0.0.1"),
    ("[0:0:0:0:0:ffff:127.0.0.1]", "::ffff:127.0.0.1"),
    ("[::ffff:169.254.169.254]", "::ffff:169.254.169.254"),
    ("[::127.0.0.1]", "::7f00:1"),
    ("[::ffff:0:127.0.0.1]", "::ffff:0:7f00:1"),
    ("[64:ff9b::169.254.169.254]", "64:ff9b::a9fe:a9fe"),
    ("[64:ff9b:1::127.0.0.1]", "64:ff9b:1::7f00:1"),
    ("[2002:7f00:1::]", "2002:7f00:1::"),
    ("[2001:0:7f00:1::]", "2001:0:7f00:1::"),
    ("[2001:4860::5efe:10.0.0.1]", "2001:4860::5efe:a00:1"),
    ("[fe80::1]", "fe80::1"),
    ("[fd00:ec2::254]", "fd00:ec2::254"),
];

/// What is no address in any spelling that is taken.
const NOT_SPELLINGS: &[&str] = &[
    // Zone ids (RFC 6874) and brackets that are not brackets.
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[::1%251]",
    "[::1%2525]",
    "%5b::1%5d",
    "[::1",
    "::1",
    "[[::1]]",
    "[::1].",
    "[::1].example.com",
    "[127.0.0.1]",
    "[::ffff:127.1]",
    "[::ffff:0x7f.0.0.1]",
    "[::ffff:0177.0.0.1]",
    "[::1]\u{3002}",
    "[v1.x]",
    // More than 32 bits, more than four parts, no digits of the base.
    "4294967296",
    "0x100000000",
    "256.0.0.1",
    "127.0.0.0.1",
    "127.0.0.256",
    "127.16777216",
    "0x7g.1",
    "08.0.0.1",
    "127.0.0.09",
    "+127.0.0.1",
    "127.0.0.1..",
    ".127.0.0.1",
    "127..1",
    "127.0.0.1%00",
    "127.0.0.1%20",
    "127.0.0.1%0a",
];

#[test]
fn every_spelling_of_a_refused_address_is_that_address() {
    for (spelling, address) in SPELLINGS {
        let address: IpAddr = address.parse().unwrap();
        for url in [format!("http://{spelling}/"), format!("HTTPS://{spelling}:8080/a?b")] {
            let refused = DestinationUrl::parse(&url, &AddressPolicy::default()).unwrap_err();
            assert_eq!(refused.code(), "address_refused", "{url}: {refused}");
            let named = format!("the address {address} is refused: ");
            assert!(refused.to_string().starts_with(&named), "{url}: {refused}");
        }
        // What is allowed is kept in one spelling.
        let policy = AddressPolicy {
            allow_networks: ["0.0.0.0/0", "::/0"].map(|it| it.parse().unwrap()).to_vec(),
        };
        let kept = DestinationUrl::parse(&format!("http://{spelling}/"), &policy).unwrap();
        let host = match address {
            IpAddr::V4(_) => address.to_string(),
            // The URL standard writes all of IPv6 in hexadecimal.
            IpAddr::V6(_) => kept.as_url().host_str().unwrap().trim_matches(['[', ']']).to_owned(),
        };
        assert_eq!(host.parse::<IpAddr>().unwrap(), address, "{spelling}");
        assert_eq!(DestinationUrl::parse(kept.as_str(), &policy).as_ref(), Ok(&kept));
    }
}

#[test]
fn what_is_no_spelling_of_an_address_is_no_url() {
    // Also where every address is allowed.
    let policy = AddressPolicy {
        allow_networks: ["0.0.0.0/0", "::/0"].map(|it| it.parse().unwrap()).to_vec(),
    };
    for text in NOT_SPELLINGS {
        let refused = DestinationUrl::parse(&format!("http://{text}/"), &policy)
            .map(|url| url.to_string())
            .map_err(|error| error.code());
        let codes = [Err("url_malformed"), Err("url_host_not_dns")];
        assert!(codes.contains(&refused), "{text:?}: {refused:?}");
    }
}
