//! One request to a receiver, under one deadline.
//!
//! The deadline covers everything: the look-up of the name, the connection, TLS, writing, the
//! response's head and its body. Within it:
//!
//! * A request goes only to an address that the policy allows, checked for every request: a literal
//!   one here, those of a name in the resolver, which hands the client the checked addresses and
//!   nothing else. Host and SNI stay the name's.
//! * There is one request. Redirects are not followed, nothing is sent again, proxies named in the
//!   environment are ignored.
//! * Once the head of a response is there, the outcome is that status. What the body does (drips,
//!   breaks off, never ends) is evidence.
//! * Nothing that a receiver sends is unbounded in memory, decompressed or able to fail the recording.

mod client;
mod failure;
mod request;
mod resolver;
mod response;
mod roots;

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Failure, Outcome};
use domain::destination::{AddressPolicy, DestinationError, DestinationUrl, OnlyNetworks};
use store::delivery::Evidence;
use store::endpoint::Target;
use store::submission::Payload;
use time::OffsetDateTime;
use tokio::time::{Instant, timeout_at};
use url::Host;

use self::client::{Clients, Terms};
use self::resolver::Lookups;

pub use self::resolver::Resolution;

/// How much earlier than the whole-call deadline connecting ends at the latest, so that a connection
/// that never stood is told from an answer that never came: only the latter means overload.
const CONNECT_ENDS_BEFORE: Duration = Duration::from_millis(10);

/// Sends requests. One for the whole process, shared by all tasks.
#[derive(Debug)]
pub struct Sender {
    clients: Clients,
    policy: AddressPolicy,
}

/// What one try yielded.
#[derive(Debug)]
pub struct Tried {
    /// What the domain decides on.
    pub outcome: Outcome,
    /// What people may want to see, within its bounds.
    pub evidence: Evidence,
}

/// Why there was no response, with its words for people.
#[derive(Debug)]
struct Unanswered {
    failure: Failure,
    detail: String,
}

impl Unanswered {
    fn new(failure: Failure, detail: impl Into<String>) -> Self {
        Self { failure, detail: detail.into() }
    }
}

impl Sender {
    /// A sender that goes only where the policy allows. `dns_deadline` bounds the look-up of a name
    /// within the connect deadline.
    ///
    /// # Errors
    /// The root certificates of this machine cannot be read.
    pub fn new(policy: AddressPolicy, dns_deadline: Duration) -> anyhow::Result<Self> {
        Self::with_lookups(policy, dns_deadline, Lookups::of_the_system())
    }

    /// The same, with names resolved in another way than the system's.
    ///
    /// # Errors
    /// The root certificates of this machine cannot be read.
    pub fn resolving(
        policy: AddressPolicy,
        dns_deadline: Duration,
        resolution: Resolution,
    ) -> anyhow::Result<Self> {
        Self::with_lookups(policy, dns_deadline, Lookups::new(resolution))
    }

    fn with_lookups(
        policy: AddressPolicy,
        dns_deadline: Duration,
        lookups: Arc<Lookups>,
    ) -> anyhow::Result<Self> {
        Ok(Self { clients: Clients::new(policy.clone(), dns_deadline, lookups)?, policy })
    }

    /// Sends one request, signed at the instant `at`. It ends within the endpoint's deadline.
    pub async fn send(&self, target: &Target, payload: &Payload, at: OffsetDateTime) -> Tried {
        let mut evidence = Evidence { url: target.url.clone(), ..Evidence::default() };
        let outcome = match self.exchange(target, payload, at, &mut evidence).await {
            Ok(outcome) => outcome,
            Err(Unanswered { failure, detail }) => {
                evidence.detail = Some(detail);
                Outcome::Unanswered(failure)
            }
        };
        Tried { outcome, evidence: evidence.bounded() }
    }

    async fn exchange(
        &self,
        target: &Target,
        payload: &Payload,
        at: OffsetDateTime,
        evidence: &mut Evidence,
    ) -> Result<Outcome, Unanswered> {
        let began = Instant::now();
        let deadline = target.settings.deadline();
        let ends_at = began + deadline;

        let settings = &target.settings;
        let url = destination(&target.url, &self.policy, settings.only_networks())?;
        let request = request::build(url.as_url().clone(), target, payload, at)?;
        let connect_deadline =
            target.settings.connect_deadline().min(deadline.saturating_sub(CONNECT_ENDS_BEFORE));
        let terms = Terms {
            connect_deadline,
            only_networks: settings.only_networks().cloned(),
            ca_certificates: settings.ca_certificates().cloned(),
        };
        let client = self.clients.get(&terms, began)?;

        let response = match timeout_at(ends_at, client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failure::of(&error, connect_deadline)),
            Err(_) => {
                let detail = format!("no response within {deadline:?}");
                return Err(Unanswered::new(Failure::TimedOut, detail));
            }
        };
        let outcome = response::outcome(&response, at + began.elapsed());
        evidence.location = response::location(&response);
        response::read_body(response, ends_at, evidence).await;
        Ok(outcome)
    }
}

/// The stored URL, checked once more: the policy may be another than when it was stored.
fn destination(
    url: &str,
    policy: &AddressPolicy,
    only: Option<&OnlyNetworks>,
) -> Result<DestinationUrl, Unanswered> {
    let narrowed = |url: DestinationUrl| match (only, url.host()) {
        (Some(only), Host::Ipv4(address)) => Ok(only.check((*address).into()).map(|()| url)?),
        (Some(only), Host::Ipv6(address)) => Ok(only.check((*address).into()).map(|()| url)?),
        _ => Ok(url),
    };
    DestinationUrl::parse(url, policy).and_then(narrowed).map_err(|error| {
        let failure = match error {
            DestinationError::AddressRefused(_) | DestinationError::LocalName { .. } => {
                Failure::AddressRefused
            }
            _ => Failure::Unsendable,
        };
        Unanswered::new(failure, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_of_this_process_is_applied_to_the_stored_url() {
        let public = AddressPolicy::default();
        for (url, failure) in [
            ("http://127.0.0.1/", Failure::AddressRefused),
            ("http://2130706433/", Failure::AddressRefused),
            ("http://[::ffff:7f00:1]/", Failure::AddressRefused),
            ("http://localhost/", Failure::AddressRefused),
            ("http://intranet/", Failure::AddressRefused),
            ("http://example.com:22/", Failure::Unsendable),
            ("not a url", Failure::Unsendable),
        ] {
            assert_eq!(destination(url, &public, None).unwrap_err().failure, failure, "{url}");
        }
        let refused = destination("http://10.1.2.3/", &public, None).unwrap_err();
        assert!(refused.detail.contains("10.1.2.3"), "{}", refused.detail);
        let allowing = AddressPolicy { allow_networks: vec!["10.0.0.0/8".parse().unwrap()] };
        assert!(destination("http://10.1.2.3/", &allowing, None).is_ok());
    }

    #[test]
    fn the_networks_of_an_endpoint_narrow_the_policy_and_never_widen_it() {
        let policy = AddressPolicy { allow_networks: vec!["10.0.0.0/8".parse().unwrap()] };
        let only = OnlyNetworks::parse(&["10.1.0.0/16", "192.168.0.0/16", "::/0"]).unwrap();
        for (url, may) in [
            ("http://10.1.2.3/", true),
            ("http://[::ffff:10.1.2.3]/", true),
            ("http://10.2.2.3/", false),
            ("http://8.8.8.8/", false),
            ("http://192.168.1.1/", false),
            ("http://[2606:4700:4700::1111]/", true),
            ("http://[::1]/", false),
        ] {
            let refused = destination(url, &policy, Some(&only)).map_err(|it| it.failure).err();
            assert_eq!(refused, (!may).then_some(Failure::AddressRefused), "{url}");
        }
    }
}
