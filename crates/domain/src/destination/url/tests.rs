//! URLs that are taken, in their canonical form, and those that are refused.

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
