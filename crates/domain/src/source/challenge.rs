//! Requests that bring no event and only ask whether the right one is at home.

use std::borrow::Cow;

use super::{InboundRequest, JsonPointer, Scheme};

/// The most bytes of a challenge that are given back.
pub const CHALLENGE_BYTES_MAX: usize = 1_024;

/// What a verified `POST` of the scheme asks to have back, if it brings no event.
///
/// Slack, `url_verification`: <https://docs.slack.dev/reference/events/url_verification>.
#[must_use]
pub fn of_post(scheme: &Scheme, request: &InboundRequest<'_>) -> Option<String> {
    let Scheme::Slack(_) = scheme else { return None };
    let text = |pointer| JsonPointer::parse(pointer).ok()?.scalar(request.body);
    let challenge = text("/challenge").filter(|text| text.len() <= CHALLENGE_BYTES_MAX)?;
    (text("/type")? == "url_verification").then_some(challenge)
}

/// What a `GET` of the scheme asks to have back, if it shows the token of the source.
///
/// Meta, `hub.challenge`: <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>.
#[must_use]
pub fn of_get(scheme: &Scheme, target: &str) -> Option<String> {
    let Scheme::Meta(meta) = scheme else { return None };
    let (_, query) = target.split_once('?')?;
    let pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        url::form_urlencoded::parse(query.as_bytes()).collect();
    let value = |name: &str| {
        let mut named = pairs.iter().filter(|(other, _)| other == name);
        named.next().filter(|_| named.next().is_none()).map(|(_, value)| value.as_ref())
    };
    let challenge = value("hub.challenge").filter(|text| {
        // It is given back as plain text, and never anything that a browser would run.
        (1..=CHALLENGE_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric())
    })?;
    let asked =
        value("hub.mode")? == "subscribe" && meta.verify_token.is(value("hub.verify_token")?);
    asked.then(|| challenge.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_gets_back_what_it_asks_with_and_an_event_is_no_question() {
        let slack = Scheme::from_json(r#"{"type":"slack"}"#).unwrap();
        let of = |body: &[u8]| of_post(&slack, &InboundRequest { target: "/", headers: &[], body });
        let asked = br#"{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}"#;
        assert_eq!(of(asked).unwrap(), "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P");
        assert_eq!(of(br#"{"type":"event_callback","challenge":"x"}"#), None);
        assert_eq!(of(b"payload=x"), None);
        let github = Scheme::from_json(r#"{"type":"github"}"#).unwrap();
        let request = InboundRequest { target: "/", headers: &[], body: asked };
        assert_eq!(of_post(&github, &request), None);
    }

    #[test]
    fn meta_gets_back_what_it_asks_with_if_it_shows_the_token() {
        let meta = Scheme::from_json(r#"{"type":"meta","verify_token":"meatyhamhock"}"#).unwrap();
        let kept = Scheme::from_json(&meta.to_json()).unwrap();
        assert!(!meta.to_json().contains("meatyhamhock"));
        let of = |query: &str| of_get(&kept, &format!("/in/meta?{query}"));
        let asked = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock";
        assert_eq!(of(asked).as_deref(), Some("1158201444"));
        for bad in [
            "hub.mode=subscribe&hub.challenge=1&hub.verify_token=wrong",
            "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=meatyhamhock",
            "hub.mode=subscribe&hub.verify_token=meatyhamhock",
            "hub.mode=subscribe&hub.challenge=%3Cscript%3E&hub.verify_token=meatyhamhock",
            "hub.mode=subscribe&hub.challenge=1&hub.challenge=2&hub.verify_token=meatyhamhock",
            "",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
