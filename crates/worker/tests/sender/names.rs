//! Names that resolve to what a test says, while the connections are real.
//!
//! 127.0.0.1 stands for a public address, since the policy allows it alone; 127.0.0.2 for a private one.

use std::net::{IpAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::delivery::{Failure, Outcome};
use domain::destination::{AddressPolicy, OnlyNetworks};
use futures_util::future::BoxFuture;
use worker::send::Sender;

use super::receiver::{
    AT, FullQueue, PATIENCE, Receiver, Step, payload, sender_allowing, target, target_with,
};

const OK: Outcome = Outcome::Answered { status: 200, retry_after: None };
const REFUSED: Outcome = Outcome::Unanswered(Failure::AddressRefused);
const PUBLIC: &str = "127.0.0.1";
const PRIVATE: &str = "127.0.0.2";

fn ok(then: &str) -> Step {
    Step::write(format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{then}\r\n"))
}

/// A sender whose look-ups are answered one after the other, the last answer again and again; and how
/// many there were.
fn sender(allow: &[&str], answers: &[&[&str]]) -> (Sender, Arc<AtomicUsize>) {
    let parse = |text: &&str| text.parse::<IpAddr>().unwrap();
    let answers: Vec<Vec<IpAddr>> =
        answers.iter().map(|answer| answer.iter().map(parse).collect()).collect();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let resolution = move |_| -> BoxFuture<'static, _> {
        let index = counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        let answer = answers[index].clone();
        Box::pin(async { Ok(answer) })
    };
    let allow_networks = allow.iter().map(|text| text.parse().unwrap()).collect();
    let policy = AddressPolicy { allow_networks };
    let sender = Sender::resolving(policy, Duration::from_secs(3), Box::new(resolution)).unwrap();
    (sender, count)
}

/// A listener on the private address and the receiver's port, which nobody may connect to.
fn private(port: u16) -> StdListener {
    let listener = StdListener::bind((PRIVATE, port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// The one look-up that is checked is the one whose address is connected to.
#[tokio::test]
async fn a_name_that_turns_private_after_the_check_leads_nowhere() {
    let mut receiver = Receiver::playing([ok("connection: close\r\n")]).await;
    let private = private(receiver.port);
    let (sender, lookups) = sender(&[PUBLIC_ONLY], &[&[PUBLIC], &[PRIVATE]]);
    let target = target(&format!("http://rebind.example:{}/", receiver.port));

    let first = sender.send(&target, &payload(), AT).await;
    assert_eq!(first.outcome, OK, "{:?}", first.evidence.detail);
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    for _ in 0..3 {
        let refused = sender.send(&target, &payload(), AT).await;
        assert_eq!(refused.outcome, REFUSED);
        assert!(refused.evidence.detail.unwrap().contains(PRIVATE));
    }
    assert_eq!(receiver.requests().len(), 1);
    assert!(private.accept().is_err(), "the private address saw a connection");
}

const PUBLIC_ONLY: &str = "127.0.0.1/32";

/// A name that says something else each time is connected to where it was vetted, or not at all.
#[tokio::test]
async fn a_name_that_changes_with_every_question_never_reaches_the_private_address() {
    let mut receiver = Receiver::playing([ok("connection: close\r\n")]).await;
    let private = private(receiver.port);
    let answers: Vec<&[&str]> = (0..20)
        .map(|n| match n % 3 {
            0 => &[PUBLIC][..],
            1 => &[PRIVATE],
            _ => &[PUBLIC, PRIVATE],
        })
        .collect();
    let (sender, lookups) = sender(&[PUBLIC_ONLY], &answers);
    let target = target(&format!("http://rebind.example:{}/", receiver.port));
    for n in 0..20 {
        let tried = sender.send(&target, &payload(), AT).await;
        let expected = if n % 3 == 0 { OK } else { REFUSED };
        assert_eq!(tried.outcome, expected, "{n}: {:?}", tried.evidence.detail);
        assert_eq!(lookups.load(Ordering::SeqCst), n + 1);
    }
    assert_eq!(receiver.requests().len(), 7);
    assert!(private.accept().is_err(), "the private address saw a connection");
}

/// Case C035: what a look-up says is judged like what is written in a URL.
#[tokio::test]
async fn a_name_with_an_address_that_carries_a_private_one_is_refused() {
    for address in [
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "2001:0:7f00:1::",
        "2001:4860::5efe:10.0.0.1",
        "0.0.0.0",
        "100.64.0.1",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ] {
        let (sender, _) = sender(&[], &[&["8.8.8.8", address]]);
        let tried = sender.send(&target("http://hooks.example/"), &payload(), AT).await;
        assert_eq!(tried.outcome, REFUSED, "{address}");
        assert!(tried.evidence.detail.unwrap().contains("hooks.example"), "{address}");
    }
}

/// Case C037: a name of a stranger that resolves to this machine.
#[tokio::test]
async fn a_public_name_for_this_machine_is_refused() {
    let mut receiver = Receiver::playing([ok("")]).await;
    let (sender, _) = sender(&[], &[&[PUBLIC]]);
    let url = format!("http://127.0.0.1.nip.io:{}/", receiver.port);
    assert_eq!(sender.send(&target(&url), &payload(), AT).await.outcome, REFUSED);
    assert_eq!(receiver.requests().len(), 0);
}

/// Case C079.
#[tokio::test]
async fn without_an_address_there_is_no_connection_by_other_means() {
    for name in ["hooks.example", "localhost", "intranet", "printer.local"] {
        let mut receiver = Receiver::playing([ok("")]).await;
        let (sender, lookups) = sender(&["127.0.0.0/8"], &[&[]]);
        let url = format!("http://{name}:{}/", receiver.port);
        let tried = sender.send(&target(&url), &payload(), AT).await;
        assert_eq!(tried.outcome, Outcome::Unanswered(Failure::DnsFailed), "{name}");
        assert_eq!((lookups.load(Ordering::SeqCst), receiver.requests().len()), (1, 0), "{name}");
    }
    // A local name is not even looked up where no network is open.
    let (sender, lookups) = sender(&[], &[&["8.8.8.8"]]);
    for name in ["intranet", "printer.local", "localhost"] {
        let tried = sender.send(&target(&format!("http://{name}/")), &payload(), AT).await;
        assert_eq!(tried.outcome, REFUSED, "{name}");
    }
    assert_eq!(lookups.load(Ordering::SeqCst), 0);
}

/// Case C077. The receiver is at the last of the addresses, all of which are checked.
#[tokio::test]
async fn dead_addresses_before_a_good_one_do_not_lose_the_attempt() {
    let mut receiver = Receiver::playing([ok("connection: close\r\n")]).await;
    let five_dead = ["127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", PUBLIC];
    let refused_six = ["::1", PUBLIC];
    let (sender, _) = sender(&["127.0.0.0/8", "::1/128"], &[&five_dead, &refused_six]);
    let target = target(&format!("http://hooks.example:{}/", receiver.port));
    for _ in 0..2 {
        let tried = sender.send(&target, &payload(), AT).await;
        assert_eq!(tried.outcome, OK, "{:?}", tried.evidence.detail);
    }
    assert_eq!(receiver.requests().len(), 2);
}

/// Case C077: an address that says nothing, of the family that is tried first.
#[tokio::test]
async fn a_silent_address_of_one_family_does_not_eat_the_connect_deadline() {
    let mut receiver = Receiver::playing([ok("")]).await;
    // A machine may have no IPv6; then the address is refused at once.
    let silent = FullQueue::on(&format!("[::1]:{}", receiver.port)).await.ok();
    let (sender, _) = sender(&["127.0.0.0/8", "::1/128"], &[&["::1", PUBLIC]]);
    let url = format!("http://hooks.example:{}/", receiver.port);
    let target = target_with(&url, |draft| draft.connect_deadline = PATIENCE / 4);
    let tried = sender.send(&target, &payload(), AT).await;
    assert_eq!(tried.outcome, OK, "{:?}", tried.evidence.detail);
    assert_eq!(receiver.requests().len(), 1);
    drop(silent);
}

/// The networks of an endpoint hold for what its name resolves to, and for connections that another
/// endpoint has opened.
#[tokio::test]
async fn an_endpoint_goes_to_its_own_networks_alone() {
    let mut receiver = Receiver::playing([ok("")]).await;
    let (sender, _) = sender(&["127.0.0.0/8"], &[&[PUBLIC]]);
    let url = format!("http://hooks.example:{}/", receiver.port);
    let only = |networks: &[&str]| {
        let networks = OnlyNetworks::parse(networks).unwrap();
        target_with(&url, |draft| draft.only_networks = Some(networks))
    };
    for (target, expected) in [
        (target(&url), OK),
        (only(&["127.0.0.2/32", "8.8.8.0/24"]), REFUSED),
        (only(&["127.0.0.0/8"]), OK),
        (only(&["127.0.0.2/32", "8.8.8.0/24"]), REFUSED),
    ] {
        let tried = sender.send(&target, &payload(), AT).await;
        assert_eq!(tried.outcome, expected, "{:?}", tried.evidence.detail);
    }
    assert_eq!(receiver.requests().len(), 2);
    // They do not open what the deployment keeps shut.
    let tried = sender_allowing(&[]).send(&only(&["0.0.0.0/0"]), &payload(), AT).await;
    assert_ne!(tried.outcome, OK);
    let literal = target_with(&receiver.url(), |draft| {
        draft.only_networks = Some(OnlyNetworks::parse(&["127.0.0.0/8"]).unwrap());
    });
    assert_eq!(sender_allowing(&[]).send(&literal, &payload(), AT).await.outcome, REFUSED);
}
