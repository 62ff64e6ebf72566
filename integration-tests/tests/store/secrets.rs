//! Secrets: rotated, and sealed again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::endpoint::{CustomHeaders, SigningSchemes};
use domain::signing::{
    EndpointSecret, LIVE_SECRETS_MAX, Overlap, RotationRefused, Scheme, SigningSecret,
};
use integration_tests::race::race;
use store::endpoint::{Endpoint, EndpointCreation};
use store::sealing::{Sealer, SealingKey};
use store::secret::{NewRotation, Owner, Rotated, Rotation, generate_ed25519, generate_secret};
use store::{Store, StoreOptions};

use crate::fixture::{Fixture, new_endpoint};

on_both_stores! {
    a_rotated_endpoint_signs_with_both_until_the_old_secret_ends,
    without_an_overlap_the_old_secrets_end_at_once,
    of_racing_rotations_each_is_stored_and_the_last_one_stays,
    a_rotation_that_read_before_another_committed_decides_again,
    the_tenth_live_secret_is_the_last_one_until_one_ends,
    the_schemes_in_use_are_rotated_and_no_other,
    a_public_key_is_that_of_the_newest_key,
    secrets_of_an_older_key_are_sealed_again_and_open_with_the_new_key_alone,
    what_no_key_opens_stays_as_it_was_and_is_named,
    headers_of_an_older_key_are_sealed_again_and_open_with_the_new_key_alone,
    resealing_beside_rotations_loses_no_secret,
}

fn rotation(endpoint: &Endpoint, hours: u64) -> anyhow::Result<NewRotation> {
    Ok(NewRotation {
        endpoint: endpoint.key,
        secret: generate_secret()?,
        ed25519: generate_ed25519()?,
        given: None,
        overlap: Overlap::new(Duration::from_hours(hours))?,
    })
}

async fn rotate(db: &Fixture, new: &NewRotation) -> anyhow::Result<Rotated> {
    match db.store.rotate_secrets(new).await? {
        Rotation::Rotated(rotated) => Ok(rotated),
        other => bail!("{other:?}"),
    }
}

/// The bytes of the live secrets in the order in which they sign.
async fn live(store: &Arc<dyn Store>, endpoint: &Endpoint) -> anyhow::Result<Vec<Vec<u8>>> {
    let targets = store.read_targets(&[endpoint.key]).await?;
    let target = targets.first().context("a target")?;
    let secrets = target.secrets.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
    Ok(secrets.iter().map(|secret| secret.expose_bytes().to_vec()).collect())
}

fn bytes(secret: &SigningSecret) -> Vec<u8> {
    secret.expose_bytes().to_vec()
}

async fn a_rotated_endpoint_signs_with_both_until_the_old_secret_ends(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let old = live(&db.store, &endpoint).await?;
    db.age_secrets().await?;
    let new = rotation(&endpoint, 24)?;
    let rotated = rotate(&db, &new).await?;
    assert_eq!((rotated.schemes, rotated.version), (SigningSchemes::V1, 2));
    let ends = rotated.retires_at.context("the old secret ends")? - endpoint.created_at;
    assert!((23..26).contains(&ends.whole_hours()), "{ends}");
    assert_eq!(live(&db.store, &endpoint).await?, [vec![bytes(&new.secret)], old].concat());

    // A second rotation does not make the first one's overlap longer.
    let newest = rotation(&endpoint, 168)?;
    let again = rotate(&db, &newest).await?;
    assert!(again.retires_at > rotated.retires_at);
    assert_eq!(live(&db.store, &endpoint).await?.len(), 3);
    db.age_secrets().await?;
    let left = [bytes(&newest.secret), bytes(&new.secret)];
    assert_eq!(live(&db.store, &endpoint).await?, left);
    let found = db.store.find_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?;
    assert_eq!(found.map(|e| e.version), Some(3));
    Ok(())
}

async fn without_an_overlap_the_old_secrets_end_at_once(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    rotate(&db, &rotation(&endpoint, 24)?).await?;
    let new = rotation(&endpoint, 0)?;
    let rotated = rotate(&db, &new).await?;
    assert!(rotated.retires_at.is_some());
    assert_eq!(live(&db.store, &endpoint).await?, [bytes(&new.secret)]);
    db.delete(&endpoint).await?;
    assert_eq!(db.store.rotate_secrets(&new).await?, Rotation::Missing);
    Ok(())
}

async fn of_racing_rotations_each_is_stored_and_the_last_one_stays(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    // Without an overlap each ends all before it, so that one is left if they are serialized.
    let rivals = (0..8).map(|_| rotation(&endpoint, 0)).collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(rivals, move |_, new| {
        let store = Arc::clone(&store);
        async move {
            match store.rotate_secrets(&new).await? {
                Rotation::Rotated(rotated) => Ok((rotated.version, bytes(&new.secret))),
                other => bail!("{other:?}"),
            }
        }
    })
    .await?;
    let versions: BTreeSet<i64> = answers.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (2..=9).collect(), "each made a version of its own");
    let last = answers.iter().max_by_key(|(version, _)| *version).context("an answer")?;
    assert_eq!(live(&db.store, &endpoint).await?, std::slice::from_ref(&last.1));
    assert_eq!(db.count("endpoint_secrets").await?, 2 + 8, "each that was answered is stored");
    Ok(())
}

async fn a_rotation_that_read_before_another_committed_decides_again(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..3 {
        rotate(&db, &rotation(&endpoint, 24)?).await?;
    }
    // Four are live, so six more may be added: of eight at once two must see the sixth.
    let rivals = (0..8).map(|_| rotation(&endpoint, 24)).collect::<anyhow::Result<Vec<_>>>()?;
    let store = Arc::clone(&db.store);
    let answers = race(rivals, move |_, new| {
        let store = Arc::clone(&store);
        async move { Ok((store.rotate_secrets(&new).await?, bytes(&new.secret))) }
    })
    .await?;
    let signing: BTreeSet<_> = live(&db.store, &endpoint).await?.into_iter().collect();
    assert_eq!(signing.len(), 10);
    let mut refused = 0;
    for (answer, secret) in answers {
        match answer {
            Rotation::Rotated(_) => assert!(signing.contains(&secret), "answered, so it signs"),
            answer => {
                assert_eq!(answer, Rotation::Refused(RotationRefused::TooManyLive));
                assert!(!signing.contains(&secret), "refused, so it does not sign");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 2);
    Ok(())
}

async fn the_tenth_live_secret_is_the_last_one_until_one_ends(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 1..LIVE_SECRETS_MAX {
        rotate(&db, &rotation(&endpoint, 24)?).await?;
    }
    let new = rotation(&endpoint, 24)?;
    let refused = Rotation::Refused(RotationRefused::TooManyLive);
    assert_eq!(db.store.rotate_secrets(&new).await?, refused);
    db.age_secrets().await?;
    rotate(&db, &new).await?;
    assert_eq!(live(&db.store, &endpoint).await?.len(), 2);
    Ok(())
}

async fn the_schemes_in_use_are_rotated_and_no_other(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let by_v1 = rotation(&endpoint, 24)?;
    rotate(&db, &by_v1).await?;
    let kept = db.store.read_public_key(endpoint.key).await?;
    assert_ne!(kept, Some(by_v1.ed25519.public_key()), "it was not in use");

    db.sign_by(&endpoint, SigningSchemes::Both).await?;
    let both = rotation(&endpoint, 24)?;
    assert_eq!(rotate(&db, &both).await?.schemes, SigningSchemes::Both);
    let secrets = db.store.read_targets(&[endpoint.key]).await?.swap_remove(0).secrets;
    let secrets = secrets.map_err(|why| anyhow::anyhow!("{why}"))?;
    let schemes: Vec<_> = secrets.iter().map(EndpointSecret::scheme).collect();
    let newest: Vec<_> = schemes.iter().copied().take(2).collect();
    assert_eq!((newest, schemes.len()), (Scheme::ALL.to_vec(), 5), "{schemes:?}");

    db.sign_by(&endpoint, SigningSchemes::V1a).await?;
    let given = NewRotation { given: Some(Scheme::V1), ..rotation(&endpoint, 24)? };
    let refused = Rotation::Refused(RotationRefused::SchemeUnused);
    assert_eq!(db.store.rotate_secrets(&given).await?, refused);
    let v1a = NewRotation { given: Some(Scheme::V1a), ..given };
    assert_eq!(rotate(&db, &v1a).await?.schemes, SigningSchemes::V1a);
    let signing = live(&db.store, &endpoint).await?;
    assert_eq!((signing.len(), signing[0].as_slice()), (3, v1a.ed25519.expose_seed().as_slice()));
    Ok(())
}

async fn a_public_key_is_that_of_the_newest_key(db: Fixture) -> anyhow::Result<()> {
    let mut new = new_endpoint()?;
    new.ed25519 = generate_ed25519()?;
    let EndpointCreation::Created(endpoint) = db.store.create_endpoint(&new).await? else {
        bail!("not created")
    };
    let read = db.store.read_public_key(endpoint.key).await?;
    assert_eq!(read, Some(new.ed25519.public_key()), "before the scheme is switched on");
    db.sign_by(&endpoint, SigningSchemes::V1a).await?;
    let newer = rotation(&endpoint, 24)?;
    rotate(&db, &newer).await?;
    let read = db.store.read_public_key(endpoint.key).await?;
    assert_eq!(read, Some(newer.ed25519.public_key()));
    let stranger = store::new_id::endpoint_key();
    assert_eq!(db.store.read_public_key(stranger).await?, None);
    Ok(())
}

async fn open_with(db: &Fixture, keys: &[&SealingKey]) -> anyhow::Result<Arc<dyn Store>> {
    let (current, older) = keys.split_first().context("a key")?;
    let older = older.iter().map(|key| (*key).clone()).collect();
    Ok(store::open(db.url(), StoreOptions::new(Sealer::new((*current).clone(), older))).await?)
}

async fn create(store: &Arc<dyn Store>) -> anyhow::Result<Endpoint> {
    match store.create_endpoint(&new_endpoint()?).await? {
        EndpointCreation::Created(endpoint) => Ok(endpoint),
        EndpointCreation::IdTaken => bail!("a fresh id was taken"),
    }
}

async fn secrets_of_an_older_key_are_sealed_again_and_open_with_the_new_key_alone(
    db: Fixture,
) -> anyhow::Result<()> {
    let (a, b) = (SealingKey::generate()?, SealingKey::generate()?);
    let old = open_with(&db, &[&a]).await?;
    let endpoints = [create(&old).await?, create(&old).await?, create(&old).await?];
    let both = open_with(&db, &[&b, &a]).await?;
    let newest = create(&both).await?;

    // Two at a time: three endpoints have six secrets, and the newest one's are left out.
    let (mut after, mut resealed, mut batches) = (None, 0, 0);
    loop {
        let batch = both.reseal_secrets(after, 2).await?;
        assert!(batch.unopened.is_empty() && batch.overtaken == 0, "{batch:?}");
        let Some(last) = batch.last else { break };
        (after, resealed, batches) = (Some(last), resealed + batch.resealed, batches + 1);
    }
    assert_eq!((resealed, batches), (6, 3));

    let new = open_with(&db, &[&b]).await?;
    for endpoint in endpoints.iter().chain([&newest]) {
        assert_eq!(live(&new, endpoint).await?, [[7; 24]]);
        assert!(new.read_public_key(endpoint.key).await?.is_some());
        assert!(live(&old, endpoint).await.is_err(), "the old key opens nothing any more");
    }
    let again = both.reseal_secrets(None, 100).await?;
    assert_eq!((again.last, again.resealed), (None, 0), "what is done is done");
    Ok(())
}

async fn what_no_key_opens_stays_as_it_was_and_is_named(db: Fixture) -> anyhow::Result<()> {
    let [a, b, c] = [SealingKey::generate()?, SealingKey::generate()?, SealingKey::generate()?];
    let (lost, kept) = (open_with(&db, &[&a]).await?, open_with(&db, &[&b]).await?);
    let (unreadable, readable) = (create(&lost).await?, create(&kept).await?);
    let store = open_with(&db, &[&c, &b]).await?;
    let batch = store.reseal_secrets(None, 100).await?;
    assert_eq!((batch.resealed, batch.unopened.len()), (2, 2));
    for unopened in &batch.unopened {
        assert_eq!(unopened.owner, Owner::Endpoint(unreadable.key));
        assert!(unopened.why.contains(a.id()), "{}", unopened.why);
    }
    assert_eq!(live(&lost, &unreadable).await?, [[7; 24]]);
    assert_eq!(live(&open_with(&db, &[&c]).await?, &readable).await?, [[7; 24]]);
    Ok(())
}

async fn headers_of_an_older_key_are_sealed_again_and_open_with_the_new_key_alone(
    db: Fixture,
) -> anyhow::Result<()> {
    let (a, b) = (SealingKey::generate()?, SealingKey::generate()?);
    let old = open_with(&db, &[&a]).await?;
    let mut with_headers = new_endpoint()?;
    let pair = ("X-Api-Key".to_owned(), secrecy::SecretString::from("hunter2"));
    with_headers.headers = CustomHeaders::parse([pair])?;
    old.create_endpoint(&with_headers).await?;
    create(&old).await?;

    let both = open_with(&db, &[&b, &a]).await?;
    let batch = both.reseal_headers(None, 100).await?;
    assert_eq!((batch.resealed, batch.overtaken, batch.unopened.len()), (1, 0, 0));
    both.reseal_secrets(None, 100).await?;
    let new = open_with(&db, &[&b]).await?;
    let target = new.read_targets(&[with_headers.key]).await?.pop().context("a target")?;
    let headers = target.headers.map_err(anyhow::Error::msg)?;
    assert_eq!(headers.expose().collect::<Vec<_>>(), [("x-api-key", "hunter2")]);
    assert_eq!(both.reseal_headers(None, 100).await?.last, None, "what is done is done");
    Ok(())
}

async fn resealing_beside_rotations_loses_no_secret(db: Fixture) -> anyhow::Result<()> {
    let (a, b) = (SealingKey::generate()?, SealingKey::generate()?);
    let endpoint = create(&open_with(&db, &[&a]).await?).await?;
    let both = open_with(&db, &[&b, &a]).await?;
    let rotations = (0..4).map(|_| rotation(&endpoint, 24)).collect::<anyhow::Result<Vec<_>>>()?;
    let contestants = rotations.into_iter().map(Some).chain([None, None]);
    let store = Arc::clone(&both);
    let rotated = race(contestants, move |_, new| {
        let store = Arc::clone(&store);
        async move {
            let Some(new) = new else {
                return Ok(store.reseal_secrets(None, 100).await.map(|_| None)?);
            };
            let answer = store.rotate_secrets(&new).await?;
            assert!(matches!(answer, Rotation::Rotated(_)), "{answer:?}");
            Ok(Some(bytes(&new.secret)))
        }
    })
    .await?;
    both.reseal_secrets(None, 100).await?;
    let signing: BTreeSet<_> =
        live(&open_with(&db, &[&b]).await?, &endpoint).await?.into_iter().collect();
    let mut expected: BTreeSet<_> = rotated.into_iter().flatten().collect();
    expected.insert(vec![7; 24]);
    assert_eq!(signing, expected);
    Ok(())
}
