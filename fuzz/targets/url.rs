//! Any text as the URL of an endpoint: what is taken has one reading, and leads to nothing that is refused.
#![no_main]

use std::net::IpAddr;

use domain::destination::{AddressPolicy, BLOCKED_PORTS, DestinationUrl, URL_BYTES_MAX};
use libfuzzer_sys::fuzz_target;
use url::Host;

fuzz_target!(|text: &str| {
    let policy = AddressPolicy::default();
    let Ok(url) = DestinationUrl::parse(text, &policy) else { return };
    assert_eq!(DestinationUrl::parse(url.as_str(), &policy).as_ref(), Ok(&url));
    assert!(url.as_str().len() <= URL_BYTES_MAX && url.as_str().is_ascii());
    assert!(!BLOCKED_PORTS.contains(&url.port()));
    let plain = url.as_url();
    assert!(plain.username().is_empty() && plain.password().is_none());
    assert!(plain.fragment().is_none());
    let name = match url.host() {
        Host::Ipv4(address) => return assert!(policy.check(IpAddr::V4(*address)).is_ok()),
        Host::Ipv6(address) => return assert!(policy.check(IpAddr::V6(*address)).is_ok()),
        Host::Domain(name) => name,
    };
    // What the system's resolver would take for an address by itself is never a name.
    assert!(name.parse::<IpAddr>().is_err());
    let last = name.rsplit('.').next().unwrap_or_default();
    assert!(!last.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
    assert!(name.contains('.') && !name.ends_with('.') && !name.ends_with(".localhost"), "{name}");
});
