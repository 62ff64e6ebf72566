//! Any address against any allowed networks: nothing private is reached unless it is named.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::destination::{AddressPolicy, OnlyNetworks};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((address, text)) = bytes.split_first_chunk::<16>() else { return };
    let v6 = Ipv6Addr::from(*address);
    let policy = AddressPolicy::default();
    if policy.check(IpAddr::V6(v6)).is_ok() {
        let [.., a, b, c, d] = v6.octets();
        let last: IpAddr = Ipv4Addr::new(a, b, c, d).into();
        let is_global = v6.segments()[0] >> 13 == 1;
        assert!(is_global || policy.check(last).is_ok(), "{v6}");
        assert!(!v6.is_loopback() && !v6.is_unspecified() && !v6.is_multicast(), "{v6}");
        assert!(!v6.is_unique_local() && !v6.is_unicast_link_local(), "{v6}");
    }
    let [a, b, c, d, ..] = *address;
    let v4 = Ipv4Addr::new(a, b, c, d);
    if policy.check(v4.into()).is_ok() {
        assert!(!v4.is_private() && !v4.is_loopback() && !v4.is_link_local(), "{v4}");
        assert!(!v4.is_unspecified() && !v4.is_multicast() && !v4.is_broadcast(), "{v4}");
    }
    // An IPv4 address and its mapped form are one, for every policy.
    let networks = String::from_utf8_lossy(text);
    let networks: Vec<&str> = networks.split([',', '\n']).collect();
    let allow_networks = networks.iter().filter_map(|it| it.parse().ok()).collect();
    let widened = AddressPolicy { allow_networks };
    if widened.check(v4.into()).is_ok() {
        assert!(widened.check(v4.to_ipv6_mapped().into()).is_ok(), "{v4}");
    }
    if policy.check(v6.into()).is_ok() {
        assert!(widened.check(v6.into()).is_ok(), "{v6}");
    }
    if let Ok(only) = OnlyNetworks::parse(&networks) {
        assert_eq!(OnlyNetworks::parse(&only.to_texts()).as_ref(), Ok(&only));
        let mapped = v4.to_ipv6_mapped().into();
        assert!(only.check(v4.into()).is_err() || only.check(mapped).is_ok(), "{v4}");
    }
});
