//! The senders' own examples. Where a sender documents none with all its parts, the signature was
//! computed with the library that is named, or with Python's `hmac`.

use super::*;

/// The example of the specification's libraries:
/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py>
pub(super) fn standard_webhooks() -> Signed {
    signed(
        r#"{"type":"standard_webhooks"}"#,
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        1_614_265_330,
        &[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ],
        br#"{"test": 2432232314}"#,
    )
}

/// Signed with the key of `crate::signing`, whose `v1a` has known answers of its own.
pub(super) fn standard_webhooks_v1a() -> Signed {
    let key = crate::signing::Ed25519SecretKey::from_slice(&(0..32).collect::<Vec<u8>>()).unwrap();
    let body = br#"{"b":1,"a":2}"#;
    let signature = crate::signing::sign_v1a(&key, "msg_test0001", 1_700_000_000, body);
    signed(
        r#"{"type":"standard_webhooks"}"#,
        "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
        1_700_000_000,
        &[
            ("webhook-id", "msg_test0001"),
            ("webhook-timestamp", "1700000000"),
            ("webhook-signature", &signature),
        ],
        body,
    )
}

/// <https://docs.svix.com/receiving/verifying-payloads/how>
pub(super) fn svix() -> Signed {
    let under = standard_webhooks();
    let headers = ["svix-id", "svix-timestamp", "svix-signature"];
    let headers = headers.into_iter().zip(under.headers).map(|(name, (_, value))| (name, value));
    Signed {
        scheme: scheme(r#"{"type":"svix"}"#),
        headers: headers.collect(),
        ..standard_webhooks()
    }
}

/// <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation>
pub(super) fn github() -> Signed {
    signed(
        r#"{"type":"github"}"#,
        "It's a Secret to Everybody",
        0,
        &[(
            "X-Hub-Signature-256",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        )],
        b"Hello, World!",
    )
}

/// <https://docs.stripe.com/webhooks#verify-manually> shows a header without its body and secret; this
/// one was computed with the `stripe` library for Python, 16.1.0.
pub(super) fn stripe() -> Signed {
    signed(
        r#"{"type":"stripe"}"#,
        "whsec_test_secret",
        1_492_774_577,
        &[("Stripe-Signature", STRIPE)],
        b"{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}",
    )
}

const STRIPE: &str =
    "t=1492774577,v1=c2f890decbc5ede7c5060bb9a6d31e0626a4342bacb9aeae2adb1bcea72f9812";

/// <https://docs.slack.dev/authentication/verifying-requests-from-slack>
pub(super) fn slack() -> Signed {
    signed(
        r#"{"type":"slack"}"#,
        "8f742231b10e8888abcd99yyyzzz85a5",
        1_531_420_618,
        &[
            ("X-Slack-Request-Timestamp", "1531420618"),
            (
                "X-Slack-Signature",
                "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            ),
        ],
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
          channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&\
          command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F\
          T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
          trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    )
}

/// <https://shopify.dev/docs/apps/build/webhooks/verify-deliveries> shows the rule and no example; this
/// one was computed with Python's `hmac`.
pub(super) fn shopify() -> Signed {
    signed(
        r#"{"type":"shopify"}"#,
        "hush",
        0,
        &[("X-Shopify-Hmac-SHA256", "D0UMXmhjwBRi4y66TmhJrDlhQABD7zI2fm3p6/QLMo8=")],
        br#"{"id":820982911946154508,"email":"jon@example.com"}"#,
    )
}

/// The example of Twilio's libraries, `RequestValidator`:
/// <https://github.com/twilio/twilio-python/blob/main/tests/unit/test_request_validator.py>
pub(super) fn twilio() -> Signed {
    let headers = [
        ("X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let target = "/myapp.php?foo=1&bar=2".to_owned();
    let base = r#"{"type":"twilio","public_base":"https://mycompany.com"}"#;
    let body = b"To=%2B18005551212&CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&\
                 From=%2B14158675309";
    Signed { target, ..signed(base, "12345", 0, &headers, body) }
}

/// The body of <https://www.twilio.com/docs/usage/webhooks/webhooks-security>, section on
/// `application/json`, signed with the `twilio` library for Python, 9.13.0.
pub(super) fn twilio_json() -> Signed {
    let digest = "5ccde7145dfb8f56479710896586cb9d5911809d83afbe34627818790db0aec9";
    let headers = [
        ("X-Twilio-Signature", "hPXmLwIy3Fgqv1i9KPmH/HhQ6zo="),
        ("Content-Type", "application/json"),
    ];
    let body = br#"{"CallSid":"CA1234567890ABCDE","Caller":"+12349013030"}"#;
    let base = r#"{"type":"twilio","public_base":"https://example.com"}"#;
    let target = format!("/myapp?bodySHA256={digest}");
    Signed { target, ..signed(base, "12345", 0, &headers, body) }
}

/// <https://developer.paddle.com/webhooks/signature-verification> shows a header without its body and
/// secret; this one was computed with Python's `hmac` for the time of that header.
pub(super) fn paddle() -> Signed {
    signed(
        r#"{"type":"paddle","tolerance":"5s"}"#,
        "pdl_ntfset_test_secret",
        1_671_552_777,
        &[(
            "Paddle-Signature",
            "ts=1671552777;h1=1e2f4e4f4a5d0d07f82ec92dc5794166ce3bc4d73468e341548e3b1004822db2",
        )],
        br#"{"event_id":"evt_01","event_type":"transaction.completed"}"#,
    )
}

/// Meta signs as GitHub does.
pub(super) fn meta() -> Signed {
    Signed { scheme: scheme(r#"{"type":"meta","verify_token":"meatyhamhock"}"#), ..github() }
}

/// Another sender's rule in settings: Twitch signs id, time and body. Here with a time in seconds;
/// computed with Python's `hmac`.
pub(super) fn hmac() -> Signed {
    signed(
        r#"{"type":"hmac","header":"X-Signature","encoding":"base64","algorithm":"sha512",
            "prefix":"v1=","signed":"{header:x-id}:{timestamp}:{body}",
            "timestamp_header":"X-Time","tolerance":"1m"}"#,
        "a shared secret",
        1_700_000_000,
        &[
            (
                "X-Signature",
                "v1=FiBbK9wXXlDUboqaim0ZTMOgUFoj/0qkD+XXkd8LmE9Us5F9YIamdhVEyrIs6ZQt+Vn499cMSFlcaecW0m5hIA==",
            ),
            ("X-Id", "evt-1"),
            ("X-Time", "1700000000"),
        ],
        b"caf\xe9",
    )
}

pub(super) fn api_key() -> Signed {
    let headers = [("Authorization", "Bearer correct horse battery staple")];
    let json = r#"{"type":"api_key","header":"Authorization","prefix":"Bearer "}"#;
    signed(json, "correct horse battery staple", 0, &headers, b"any")
}

/// <https://www.rfc-editor.org/rfc/rfc7617#section-2>
pub(super) fn basic_auth() -> Signed {
    let headers = [("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")];
    signed(r#"{"type":"basic_auth"}"#, "Aladdin:open sesame", 0, &headers, b"any")
}

#[test]
fn the_documented_example_of_every_sender_verifies() {
    for signed in one_of_each() {
        assert_eq!(signed.verify(), Ok(()), "{:?}", signed.scheme);
    }
}

#[test]
fn any_of_several_live_secrets_verifies_and_none_is_needed_twice() {
    for signed in one_of_each() {
        let other = match signed.scheme.kind() {
            SchemeKind::StandardWebhooks | SchemeKind::Svix => {
                "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
            }
            _ => "another:secret",
        };
        assert_eq!(signed.verify_with(&[other, signed.secret]), Ok(()));
        assert_eq!(signed.verify_with(&[signed.secret, other]), Ok(()));
        assert!(signed.verify_with(&[other]).is_err(), "{:?}", signed.scheme);
        assert_eq!(signed.verify_with(&[]).unwrap_err(), Refusal::NoSecret);
    }
}

#[test]
fn stale_and_not_yet_valid_requests_say_by_how_much() {
    let dated = one_of_each().into_iter().filter(|signed| signed.now != 0);
    let mut count = 0;
    for mut signed in dated {
        let tolerance = match signed.scheme.kind() {
            SchemeKind::Paddle => 5,
            SchemeKind::Hmac => 60,
            _ => 300,
        };
        let signed_at = signed.now;
        for (now, expected) in [
            (signed_at + tolerance, Ok(())),
            (signed_at - tolerance, Ok(())),
            (signed_at + tolerance + 7, Err(Refusal::Stale { by_seconds: 7 })),
            (signed_at - tolerance - 9, Err(Refusal::NotYetValid { by_seconds: 9 })),
        ] {
            signed.now = now;
            assert_eq!(signed.verify(), expected, "{:?}", signed.scheme);
        }
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn slack_is_verified_over_bytes_that_are_not_utf_8() {
    let headers = [
        ("X-Slack-Request-Timestamp", "1700000000"),
        (
            "X-Slack-Signature",
            "v0=fb3c24e3c8882f5e212d8f63f017d6b9eebbe44a294e3aadb97208b560eae6a5",
        ),
    ];
    let json = r#"{"type":"slack"}"#;
    let latin1 = signed(json, "slack_test_secret", 1_700_000_000, &headers, b"text=caf\xe9");
    assert_eq!(latin1.verify(), Ok(()));
    let replaced = Signed { body: "text=caf\u{fffd}".into(), ..latin1 };
    assert_eq!(replaced.verify(), Err(Refusal::Mismatch));
}

#[test]
fn a_github_form_is_verified_as_it_came_and_sha_1_alone_only_where_it_is_allowed() {
    let right = "sha256=df4adc73db74d8160cfd7ed32c9f84ee915ef296463e0ccdccdcb23f18699324";
    let body = b"payload=%7B%22zen%22%3A%22hi%22%7D";
    let sha1 = "sha1=88c8c4bba94b8a400c3d56db3e21907d1c20c85a";
    let with = |json: &str, headers: &[(&'static str, &str)]| {
        signed(json, "gh_test_secret", 0, headers, body).verify()
    };
    let (strict, legacy) = (r#"{"type":"github"}"#, r#"{"type":"github","legacy_sha1":true}"#);
    assert_eq!(with(strict, &[("x-hub-SIGNATURE-256", right)]), Ok(()));
    assert_eq!(with(strict, &[("X-Hub-Signature", sha1)]).unwrap_err().code(), "header_missing");
    assert_eq!(with(legacy, &[("X-Hub-Signature", sha1)]), Ok(()));
    // Where the newer one is there, it decides.
    let wrong = "sha256=0000000000000000000000000000000000000000000000000000000000000000";
    let both = [("X-Hub-Signature-256", wrong), ("X-Hub-Signature", sha1)];
    assert_eq!(with(legacy, &both), Err(Refusal::Mismatch));
    let both = [("X-Hub-Signature-256", right), ("X-Hub-Signature", "sha1=00")];
    assert_eq!(with(legacy, &both), Ok(()));
}

#[test]
fn a_twilio_url_is_the_configured_base_and_the_raw_target() {
    let form = "application/x-www-form-urlencoded";
    let headers = [("X-Twilio-Signature", "EuIBcJ5bINgDnmlm0o+L3YHn1Bg="), ("Content-Type", form)];
    let json = r#"{"type":"twilio","public_base":"https://hooks.example.com"}"#;
    let body = b"From=%2B15550000000&Body=hi";
    let target = "/in/twilio?Retry=1&Digits=1&Msg=Couldn%27t+find".to_owned();
    let right = Signed { target, ..signed(json, "tw_test_token", 0, &headers, body) };
    assert_eq!(right.verify(), Ok(()));
    for target in [
        "/in/twilio?Digits=1&Msg=Couldn%27t+find&Retry=1",
        "/in/twilio?Retry=1&Digits=1&Msg=Couldn%27t%20find",
        "/in/twilio?Retry=1&Digits=1&Msg=Couldn't+find",
    ] {
        let other = Signed { target: target.to_owned(), ..right.clone() };
        assert_eq!(other.verify(), Err(Refusal::Mismatch), "{target}");
    }
    // Headers that a proxy would set decide nothing.
    let mut forwarded = right.clone();
    forwarded.headers.push(("X-Forwarded-Host", "evil.example".to_owned()));
    forwarded.headers.push(("Host", "127.0.0.1:8080".to_owned()));
    assert_eq!(forwarded.verify(), Ok(()));
    // With the port and without it, whichever of both is configured.
    for base in ["https://hooks.example.com:443", "https://hooks.example.com/"] {
        let json = format!(r#"{{"type":"twilio","public_base":"{base}"}}"#);
        assert_eq!(Signed { scheme: scheme(&json), ..right.clone() }.verify(), Ok(()));
    }
    let json = r#"{"type":"twilio","public_base":"https://hooks.example.com:4433"}"#;
    let mut ported = Signed { scheme: scheme(json), ..right.clone() };
    assert_eq!(ported.verify(), Ok(()), "signed without the port");
    *ported.header("X-Twilio-Signature") = "omrf8MRMw9OIAowEe92cm+bnR7E=".to_owned();
    assert_eq!(ported.verify(), Ok(()), "signed with the port");
}

#[test]
fn twilio_fields_count_once_for_each_value_and_empty_ones_count() {
    let form = "application/x-www-form-urlencoded";
    let headers = [("X-Twilio-Signature", "qW+wo/TiqcgI+IzE5pTFNH54/xs="), ("Content-Type", form)];
    let json = r#"{"type":"twilio","public_base":"https://hooks.example.com"}"#;
    let body = b"MediaUrl=b&Empty=&MediaUrl=a&MediaUrl=b";
    assert_eq!(signed(json, "tw_test_token", 0, &headers, body).verify(), Ok(()));
}

#[test]
fn a_twilio_body_that_is_no_form_is_covered_by_its_digest_or_refused() {
    let right = twilio_json();
    let mut other = right.clone();
    other.body.push(b' ');
    assert_eq!(other.verify(), Err(Refusal::Mismatch));
    let uncovered = Signed { target: "/myapp".to_owned(), ..right.clone() };
    assert_eq!(uncovered.verify().unwrap_err().code(), "body_not_covered");
    let twice = Signed { target: format!("{}&bodySHA256=00", right.target), ..right };
    assert_eq!(twice.verify().unwrap_err().code(), "body_not_covered");
}
