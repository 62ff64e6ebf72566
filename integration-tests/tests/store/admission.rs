//! Admission: key, endpoint and budgets of a submission, settled by one statement (G6).

use std::sync::Arc;
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, PublicId};
use domain::label::Label;
use domain::rate_limit::RateLimit;
use integration_tests::race::race;
use store::admission::{Admission, AdmissionRequest, Budgets};
use store::api_key::{ApiKeyDigest, NewApiKey, Role};
use store::application::NewApplication;
use store::endpoint::Endpoint;
use store::rate_limit::{Limiter, Reservation};

use crate::fixture::Fixture;

on_both_stores! {
    each_budget_is_charged_for_those_whom_the_one_before_it_let_through,
    of_racing_requests_exactly_the_limit_is_admitted_and_each_is_counted,
    who_may_not_submit_is_told_why_and_is_charged_nothing,
    a_missing_endpoint_is_charged_to_source_and_key,
    an_application_is_the_keys_the_named_or_the_default_one,
    budgets_are_those_that_reservations_spend_too,
}

/// A window that does not end while a test runs, but for one run in a few ten thousands.
const DAY: Duration = Duration::from_hours(24);

fn limit(units: u32) -> anyhow::Result<RateLimit> {
    Ok(RateLimit::new(units, DAY)?)
}

async fn key(
    db: &Fixture,
    role: Role,
    application: Option<ApplicationKey>,
) -> anyhow::Result<NewApiKey> {
    let key = NewApiKey::generate("a key", role, application)?;
    db.store.create_api_key(&key).await?;
    Ok(key)
}

fn request(key: &NewApiKey, endpoint: &str, source: &str) -> anyhow::Result<AdmissionRequest> {
    Ok(AdmissionRequest {
        digest: key.digest(),
        application: None,
        endpoint: Some(PublicId::parse(endpoint)?),
        source: Some(source.to_owned()),
    })
}

/// An endpoint that takes so many a day.
async fn endpoint(db: &Fixture, units: u32) -> anyhow::Result<Endpoint> {
    let ingest_rate = limit(units)?;
    db.endpoint_with(|draft| draft.ingest_rate = ingest_rate).await
}

/// In a word, what a request was told.
fn told(admission: &Admission) -> &'static str {
    match admission {
        Admission::KeyUnknown => "key unknown",
        Admission::RoleInsufficient(_) => "role",
        Admission::ApplicationNotFound(_) => "application",
        Admission::EndpointNotFound(_) => "endpoint",
        Admission::Denied { limiter, .. } => limiter.as_str(),
        Admission::Admitted { .. } => "admitted",
    }
}

fn all_told(admissions: &[Admission]) -> Vec<&'static str> {
    admissions.iter().map(told).collect()
}

/// How much of a budget is spent by now.
async fn used(db: &Fixture, limiter: Limiter, subject: &str) -> anyhow::Result<u32> {
    let probe = Reservation { limiter, subject: subject.to_owned(), limit: limit(1)?, units: 1 };
    let answers = db.store.reserve(&[probe]).await?;
    Ok(answers[0].used - 1)
}

async fn each_budget_is_charged_for_those_whom_the_one_before_it_let_through(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = endpoint(&db, 2).await?;
    let key = key(&db, Role::Publish, None).await?;
    let budgets = Budgets { source: Some(limit(5)?), key: Some(limit(4)?) };
    let to = |source| request(&key, endpoint.id.as_str(), source);
    let mut asked = vec![to("b")?];
    asked.extend((0..6).map(|_| to("a")).collect::<Result<Vec<_>, _>>()?);
    let answers = db.store.admit(&asked, budgets).await?;
    let expected = ["admitted", "admitted", "endpoint", "endpoint", "key", "key", "source"];
    assert_eq!(all_told(&answers), expected, "first come, first served");
    let Admission::Denied { limit: told, window_ends_in, .. } = &answers[2] else {
        anyhow::bail!("{:?}", answers[2]);
    };
    assert_eq!(*told, limit(2)?, "the endpoint's own");
    assert!(*window_ends_in > Duration::ZERO && *window_ends_in <= DAY);
    assert_eq!(used(&db, Limiter::Source, "a").await?, 6);
    assert_eq!(used(&db, Limiter::Source, "b").await?, 1);
    assert_eq!(used(&db, Limiter::Key, &key.id.to_string()).await?, 6, "not the seventh");
    assert_eq!(used(&db, Limiter::Endpoint, &endpoint.key.to_string()).await?, 4);
    Ok(())
}

/// 16 contestants with 10 requests each, for two endpoints in either order.
async fn of_racing_requests_exactly_the_limit_is_admitted_and_each_is_counted(
    db: Fixture,
) -> anyhow::Result<()> {
    let (one, two) = (endpoint(&db, 50).await?, endpoint(&db, 30).await?);
    let key = key(&db, Role::Publish, None).await?;
    let budgets = Budgets { source: Some(limit(150)?), key: None };
    let store = Arc::clone(&db.store);
    let (first, second) = (one.id.clone(), two.id.clone());
    let answers = race(0..16_u32, move |place, _| {
        let store = Arc::clone(&store);
        let mut ids = [first.as_str(), second.as_str()];
        if place % 2 == 1 {
            ids.reverse();
        }
        let asked: anyhow::Result<Vec<_>> =
            (0..10).map(|n| request(&key, ids[n % 2], "a")).collect();
        async move { Ok(store.admit(&asked?, budgets).await?) }
    })
    .await?;
    let answers: Vec<Admission> = answers.into_iter().flatten().collect();
    let count = |word| answers.iter().filter(|answer| told(answer) == word).count();
    assert_eq!((count("source"), count("admitted"), count("endpoint")), (10, 80, 70));
    for (endpoint, limit) in [(&one, 50), (&two, 30)] {
        let admitted = answers.iter().filter(
            |answer| matches!(answer, Admission::Admitted { endpoint: to, .. } if *to == endpoint.key),
        );
        assert_eq!(admitted.count(), limit, "exactly the limit");
    }
    let spent = [&one, &two].map(|endpoint| endpoint.key.to_string());
    let of_endpoints = used(&db, Limiter::Endpoint, &spent[0]).await?
        + used(&db, Limiter::Endpoint, &spent[1]).await?;
    assert_eq!((used(&db, Limiter::Source, "a").await?, of_endpoints), (160, 150));
    Ok(())
}

async fn who_may_not_submit_is_told_why_and_is_charged_nothing(db: Fixture) -> anyhow::Result<()> {
    let endpoint = endpoint(&db, 5).await?;
    let id = endpoint.id.as_str();
    let (reader, revoked) =
        (key(&db, Role::Read, None).await?, key(&db, Role::Publish, None).await?);
    db.store.revoke_api_key(None, revoked.id).await?;
    let admin = key(&db, Role::Admin, None).await?;
    let stranger = AdmissionRequest {
        digest: ApiKeyDigest::of("fp_live_nobodys"),
        ..request(&reader, id, "a")?
    };
    let elsewhere = AdmissionRequest {
        application: Some(PublicId::parse("nobodys")?),
        ..request(&admin, id, "a")?
    };
    let asked = [stranger, request(&revoked, id, "a")?, request(&reader, id, "a")?, elsewhere];
    let budgets = Budgets { source: Some(limit(5)?), key: Some(limit(5)?) };
    let answers = db.store.admit(&asked, budgets).await?;
    assert_eq!(all_told(&answers), ["key unknown", "key unknown", "role", "application"]);
    assert_eq!(db.count("rate_limit_counters").await?, 0);
    let answers = db.store.admit(&[request(&admin, id, "a")?], budgets).await?;
    assert_eq!(all_told(&answers), ["admitted"]);
    assert_eq!(db.count("rate_limit_counters").await?, 3);
    Ok(())
}

async fn a_missing_endpoint_is_charged_to_source_and_key(db: Fixture) -> anyhow::Result<()> {
    let key = key(&db, Role::Publish, None).await?;
    let deleted = endpoint(&db, 5).await?;
    db.delete(&deleted).await?;
    let malformed = AdmissionRequest { endpoint: None, ..request(&key, "any", "a")? };
    let asked =
        [request(&key, "missing", "a")?, malformed, request(&key, deleted.id.as_str(), "a")?];
    let budgets = Budgets { source: Some(limit(5)?), key: Some(limit(5)?) };
    let answers = db.store.admit(&asked, budgets).await?;
    assert_eq!(all_told(&answers), ["endpoint"; 3]);
    assert!(answers.iter().all(|answer| matches!(answer, Admission::EndpointNotFound(_))));
    assert_eq!(used(&db, Limiter::Source, "a").await?, 3);
    assert_eq!(used(&db, Limiter::Key, &key.id.to_string()).await?, 3);
    assert_eq!(used(&db, Limiter::Endpoint, &deleted.key.to_string()).await?, 0);
    let answers = db.store.admit(&[request(&key, "missing", "a")?], Budgets::default()).await?;
    assert_eq!(all_told(&answers), ["endpoint"]);
    assert_eq!(used(&db, Limiter::Source, "a").await?, 4, "without a limit nothing is counted");
    Ok(())
}

async fn an_application_is_the_keys_the_named_or_the_default_one(
    db: Fixture,
) -> anyhow::Result<()> {
    let tenant = NewApplication {
        key: store::new_id::application_key(),
        id: PublicId::parse("tenant")?,
        name: Label::parse("a tenant")?,
    };
    db.store.create_application(&tenant).await?;
    let mut theirs = crate::fixture::new_endpoint()?;
    theirs.application = tenant.key;
    db.store.create_endpoint(&theirs).await?;
    let ours = endpoint(&db, 100).await?;
    let (all, bound) =
        (key(&db, Role::Publish, None).await?, key(&db, Role::Publish, Some(tenant.key)).await?);
    let named = |key: &NewApiKey, application: &str, endpoint: &str| -> anyhow::Result<_> {
        let application = Some(PublicId::parse(application)?);
        Ok(AdmissionRequest { application, ..request(key, endpoint, "a")? })
    };
    let (our, their) = (ours.id.as_str(), theirs.id.as_str());
    let asked = [
        request(&all, our, "a")?,
        request(&all, their, "a")?,
        named(&all, "tenant", their)?,
        named(&all, "tenant", our)?,
        named(&all, "default", our)?,
        request(&bound, their, "a")?,
        request(&bound, our, "a")?,
        named(&bound, "tenant", their)?,
        named(&bound, "default", our)?,
    ];
    let answers = db.store.admit(&asked, Budgets::default()).await?;
    let expected = [
        "admitted",
        "endpoint",
        "admitted",
        "endpoint",
        "admitted",
        "admitted",
        "endpoint",
        "admitted",
        "application",
    ];
    assert_eq!(all_told(&answers), expected);
    let whose = |place: usize| match &answers[place] {
        Admission::Admitted { application, .. } => Some(*application),
        _ => None,
    };
    assert_eq!((whose(0), whose(2)), (Some(DEFAULT_APPLICATION_KEY), Some(tenant.key)));
    db.delete_application(tenant.key).await?;
    let answers = db.store.admit(&asked[2..6], Budgets::default()).await?;
    assert_eq!(all_told(&answers), ["application", "application", "admitted", "key unknown"]);
    Ok(())
}

async fn budgets_are_those_that_reservations_spend_too(db: Fixture) -> anyhow::Result<()> {
    let endpoint = endpoint(&db, 3).await?;
    let key = key(&db, Role::Publish, None).await?;
    let of = |limiter, subject: String, units| -> anyhow::Result<_> {
        Ok(Reservation { limiter, subject, limit: limit(3)?, units })
    };
    let form = of(Limiter::Endpoint, endpoint.key.to_string(), 2)?;
    db.store.reserve(&[form]).await?;
    let asked =
        [request(&key, endpoint.id.as_str(), "a")?, request(&key, endpoint.id.as_str(), "a")?];
    let answers = db.store.admit(&asked, Budgets::default()).await?;
    assert_eq!(all_told(&answers), ["admitted", "endpoint"]);
    Ok(())
}
