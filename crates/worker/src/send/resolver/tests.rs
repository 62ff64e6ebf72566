use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{join_all, pending};

use super::*;

const DEADLINE: Duration = Duration::from_millis(50);

fn answering(addresses: &[&str]) -> Arc<Lookups> {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    Lookups::new(Box::new(move |_| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    }))
}

fn hanging() -> Arc<Lookups> {
    Lookups::new(Box::new(|_| Box::pin(pending())))
}

fn resolver(lookups: &Arc<Lookups>, allow: &[&str]) -> Resolver {
    let allow_networks = allow.iter().map(|text| text.parse().unwrap()).collect();
    let policy = Arc::new(AddressPolicy { allow_networks });
    Resolver::new(Arc::clone(lookups), policy, None, DEADLINE, Duration::from_secs(5))
}

async fn resolve(resolver: &Resolver, name: &str) -> Result<Vec<String>, ResolveError> {
    let addresses = resolver.addresses(name.to_owned()).await?;
    Ok(addresses.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn a_name_yields_its_checked_addresses_in_order() {
    let lookups = answering(&["2606:4700:4700::1111", "1.1.1.1"]);
    let found = resolve(&resolver(&lookups, &[]), "a.example").await.unwrap();
    assert_eq!(found, ["2606:4700:4700::1111", "1.1.1.1"]);
    assert!(lookups.open().is_empty());
}

#[tokio::test]
async fn one_refused_address_refuses_the_name_and_is_named() {
    for bad in ["10.0.0.5", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe"] {
        let lookups = answering(&["1.1.1.1", bad]);
        let refused = resolve(&resolver(&lookups, &[]), "a.example").await.unwrap_err();
        assert!(matches!(refused, ResolveError::Refused { .. }));
        let text = refused.to_string();
        let bad: IpAddr = bad.parse().unwrap();
        assert!(text.contains(&bad.to_string()) && text.contains("a.example"), "{text}");
    }
    let lookups = answering(&["1.1.1.1", "10.0.0.5"]);
    assert!(resolve(&resolver(&lookups, &["10.0.0.0/8"]), "a.example").await.is_ok());
}

/// Case C079.
#[tokio::test]
async fn a_name_without_addresses_is_refused() {
    let refused = resolve(&resolver(&answering(&[]), &[]), "a.example").await.unwrap_err();
    let no_address = RefusedResolution::NoAddress;
    assert!(matches!(refused, ResolveError::Refused { refused, .. } if refused == no_address));
}

#[tokio::test]
async fn a_look_up_that_hangs_ends_at_its_deadline_within_the_connect_deadline() {
    let lookups = hanging();
    let error = resolve(&resolver(&lookups, &[]), "a.example").await.unwrap_err();
    assert!(matches!(error, ResolveError::TimedOut { deadline: DEADLINE, .. }), "{error}");
    let policy = Arc::new(AddressPolicy::default());
    let short = Resolver::new(lookups, policy, None, DEADLINE, Duration::from_millis(30));
    assert_eq!(short.deadline, Duration::from_millis(20));
}

#[tokio::test]
async fn a_failed_look_up_says_what_the_resolver_said() {
    let lookups = Lookups::new(Box::new(|_| {
        Box::pin(async { Err(io::Error::other("Name or service not known")) })
    }));
    let error = resolve(&resolver(&lookups, &[]), "a.example").await.unwrap_err();
    assert_eq!(error.to_string(), "a.example could not be resolved: Name or service not known");
}

#[tokio::test]
async fn requests_for_one_name_share_one_look_up() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let lookups = Lookups::new(Box::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(pending())
    }));
    let resolver = resolver(&lookups, &[]);
    let all = join_all((0..100).map(|_| resolve(&resolver, "a.example"))).await;
    assert!(all.iter().all(|answer| matches!(answer, Err(ResolveError::TimedOut { .. }))));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_look_up_that_panics_fails_and_leaves_no_trace() {
    let lookups = Lookups::new(Box::new(|_| Box::pin(async { panic!("a fault of ours") })));
    let error = resolve(&resolver(&lookups, &[]), "a.example").await.unwrap_err();
    assert!(matches!(error, ResolveError::Failed { .. }));
    assert!(lookups.open().is_empty());
}

#[tokio::test]
async fn the_number_of_open_look_ups_is_bounded() {
    let lookups = hanging();
    for n in 0..OPEN_MAX {
        drop(lookups.look_up(&format!("{n}.example")));
    }
    let error = resolve(&resolver(&lookups, &[]), "one-more.example").await.unwrap_err();
    assert!(error.to_string().contains("too many names"), "{error}");
}
