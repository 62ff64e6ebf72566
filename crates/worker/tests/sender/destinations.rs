//! Where requests go, and where they do not.

use std::process::Command;

use domain::delivery::{Failure, Outcome};

use super::receiver::{AT, Receiver, Step, payload, sender, sender_allowing, target};

fn ok() -> Step {
    Step::write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
}

/// Cases C036 and C037: the receiver would answer, and sees nothing.
#[tokio::test]
async fn an_address_that_is_not_allowed_sees_no_connection() {
    let mut receiver = Receiver::playing([ok()]).await;
    let port = receiver.port;
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "localhost",
        "LOCALHOST",
        "foo.localhost",
        "ip6-localhost",
        "169.254.169.254",
        "[::1]",
    ] {
        let url = format!("http://{host}:{port}/");
        let tried = sender_allowing(&[]).send(&target(&url), &payload(), AT).await;
        let refused = Outcome::Unanswered(Failure::AddressRefused);
        assert_eq!(tried.outcome, refused, "{host}: {:?}", tried.evidence.detail);
        assert!(tried.evidence.detail.is_some(), "{host}");
    }
    assert_eq!(receiver.requests().len(), 0);
}

/// The name passes the check on names, and is refused on the address that it has.
#[tokio::test]
async fn a_name_is_refused_at_the_connection_if_one_of_its_addresses_is() {
    let mut receiver = Receiver::playing([ok()]).await;
    let url = format!("http://{}:{}/", this_host(), receiver.port);
    let tried = sender_allowing(&["2001:db8::/32"]).send(&target(&url), &payload(), AT).await;
    let detail = tried.evidence.detail.unwrap();
    // Where this machine has no name of its own, the look-up fails; it is never connected to.
    let refused = [Failure::AddressRefused, Failure::DnsFailed].map(Outcome::Unanswered);
    assert!(refused.contains(&tried.outcome), "{:?}: {detail}", tried.outcome);
    assert_eq!(receiver.requests().len(), 0);
}

fn this_host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    if name.is_empty() { "nowhere".to_owned() } else { name }
}

#[tokio::test]
async fn an_allowed_name_is_connected_to_at_its_address_and_keeps_its_host() {
    let mut receiver = Receiver::playing([ok()]).await;
    let url = format!("http://localhost:{}/", receiver.port);
    let tried = sender().send(&target(&url), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Answered { status: 200, retry_after: None });
    let request = String::from_utf8_lossy(&receiver.requests().remove(0)).into_owned();
    assert!(request.contains(&format!("host: localhost:{}\r\n", receiver.port)), "{request}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_a_failure_of_its_own() {
    // `.invalid` never resolves (RFC 6761, section 6.4).
    let tried = sender().send(&target("http://fencepost.invalid/"), &payload(), AT).await;
    assert_eq!(tried.outcome, Outcome::Unanswered(Failure::DnsFailed));
    assert!(tried.evidence.detail.unwrap().contains("fencepost.invalid"));
}

/// Case C040. The environment belongs to a process, so this test runs itself again in another one.
#[tokio::test]
async fn proxies_named_in_the_environment_are_ignored() {
    const CHILD: &str = "FENCEPOST_TEST_RECEIVER_URL";
    if let Ok(url) = std::env::var(CHILD) {
        let tried = sender().send(&target(&url), &payload(), AT).await;
        assert_eq!(tried.outcome, Outcome::Answered { status: 200, retry_after: None });
        return;
    }
    let mut receiver = Receiver::playing([ok()]).await;
    let mut proxy = Receiver::playing([ok()]).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "sender::destinations::proxies_named_in_the_environment_are_ignored"])
        .env(CHILD, receiver.url());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        child.env(name, format!("http://127.0.0.1:{}", proxy.port));
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(receiver.requests().len(), 1);
    assert_eq!(proxy.requests().len(), 0);
}
