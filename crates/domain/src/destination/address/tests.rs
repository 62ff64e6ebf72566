//! Addresses that are refused, and what networks allow.

use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn allowing(networks: &[&str]) -> AddressPolicy {
    AddressPolicy { allow_networks: networks.iter().map(|text| text.parse().unwrap()).collect() }
}

fn reason(text: &str) -> &'static str {
    AddressPolicy::default().check(ip(text)).map_or_else(|refused| refused.reason, |()| "allowed")
}

#[test]
fn every_special_address_is_refused_with_its_reason() {
    for (address, expected) in [
        ("0.0.0.0", "this network"),
        ("0.1.2.3", "this network"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("100.100.100.200", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.169.254", "link-local"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "IETF protocol assignments"),
        ("192.0.0.192", "IETF protocol assignments"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4 relay anycast"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "limited broadcast"),
        ("168.63.129.16", "Azure platform service"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::2", "IPv4-compatible"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "link-local"),
        ("::ffff:0:127.0.0.1", "not global unicast"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b:0:0:0:1:808:808", "not global unicast"),
        ("64:ff9b:1::7f00:1", "local-use NAT64"),
        ("64:ff9b:1::808:808", "local-use NAT64"),
        ("100::1", "discard-only"),
        ("100:0:0:1::1", "dummy prefix"),
        ("2001:0:7f00:1::", "Teredo"),
        ("2001:0:808:808:0:0:80ff:fffe", "Teredo"),
        ("2001:2::1", "benchmarking"),
        ("2001:20::1", "IETF protocol assignments"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::", "6to4"),
        ("2002:808:808::", "6to4"),
        ("3fff::1", "documentation"),
        ("5f00::1", "segment routing"),
        ("fc00::1", "unique local"),
        ("fd00:ec2::254", "unique local"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("1fff::1", "not global unicast"),
        ("4000::1", "not global unicast"),
    ] {
        assert_eq!(reason(address), expected, "{address}");
    }
}

#[test]
fn the_neighbours_of_every_range_are_allowed() {
    for address in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2000::1",
        "2001:200::1",
        "2001:db7::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700:4700::1111",
        "3ffe::1",
    ] {
        assert_eq!(reason(address), "allowed", "{address}");
    }
}

#[test]
fn the_refusal_names_the_address_as_given_and_the_reason() {
    let refused = AddressPolicy::default().check(ip("64:ff9b::a9fe:a9fe")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the address 64:ff9b::a9fe:a9fe is refused: link-local (RFC 3927)"
    );
}

#[test]
fn an_allowed_network_wins_in_every_form_of_the_same_address() {
    let policy = allowing(&["127.0.0.0/8", "fd12:3456::/32"]);
    for address in ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd12:3456::1"]
    {
        assert_eq!(policy.check(ip(address)), Ok(()), "{address}");
    }
    for address in ["10.0.0.1", "::1", "::127.0.0.1", "2002:7f00:1::", "fd12:3457::1"] {
        assert!(policy.check(ip(address)).is_err(), "{address}");
    }
    assert_eq!(allowing(&["::ffff:10.0.0.0/104"]).check(ip("::ffff:10.1.1.1")), Ok(()));
}

#[test]
fn an_allowed_carrier_opens_nothing_that_it_carries() {
    let all = ["64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96"];
    let private = [
        "64:ff9b::a00:1",
        "64:ff9b:1::a00:1",
        "64:ff9b:1:fffe::a00:1",
        "2002:a00:1::1",
        "2001:0:808:808::f5ff:fffe",
        "::10.0.0.1",
        "2001:4860:1::5efe:10.0.0.1",
        "2001:4860:1::200:5efe:a00:1",
    ];
    let public = [
        "64:ff9b::808:808",
        "64:ff9b:1::808:808",
        "2002:808:808::1",
        "2001:0:a00:1::f7f7:f7f7",
        "::8.8.8.8",
        "2001:4860:1::5efe:8.8.8.8",
    ];
    let (carriers, both) = (allowing(&all), allowing(&[&all[..], &["10.0.0.0/8"]].concat()));
    for address in private {
        assert!(carriers.check(ip(address)).is_err(), "{address}");
        assert_eq!(both.check(ip(address)), Ok(()), "{address}");
    }
    for address in public {
        assert_eq!(carriers.check(ip(address)), Ok(()), "{address}");
    }
    // They are not taken for IPv4 addresses.
    assert_eq!(allowing(&["::1/128", "::/128"]).check(ip("::1")), Ok(()));
}

/// Case C079.
#[test]
fn a_name_without_addresses_is_refused() {
    assert_eq!(AddressPolicy::default().check_resolved(&[]), Err(RefusedResolution::NoAddress));
    assert!(allowing(&["0.0.0.0/0", "::/0"]).check_resolved(&[]).is_err());
}

#[test]
fn one_refused_address_among_good_ones_refuses_the_name() {
    let policy = AddressPolicy::default();
    assert_eq!(policy.check_resolved(&[ip("8.8.8.8"), ip("2606:4700:4700::1111")]), Ok(()));
    let refused = policy.check_resolved(&[ip("8.8.8.8"), ip("::1")]).unwrap_err();
    assert!(matches!(refused, RefusedResolution::Address(a) if a.address == ip("::1")));
}

proptest! {
    #[test]
    fn every_form_of_an_ipv4_address_gets_the_same_answer(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from_bits(bits);
        let [.., high, low] = v4.to_ipv6_mapped().segments();
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
        let answer = |address: IpAddr| {
            AddressPolicy::default().check(address).map_err(|refused| refused.reason)
        };
        prop_assert_eq!(answer(v4.into()), answer(v4.to_ipv6_mapped().into()));
        prop_assert_eq!(answer(v4.into()), answer(nat64.into()));
    }

    #[test]
    fn no_ipv6_address_outside_global_unicast_is_allowed(bits in any::<u128>()) {
        let v6 = Ipv6Addr::from_bits(bits);
        let allowed = AddressPolicy::default().check(v6.into()).is_ok();
        prop_assert!(!allowed || GLOBAL_UNICAST.contains(&v6) || v6.to_canonical().is_ipv4()
            || NAT64.contains(&v6));
    }
}
