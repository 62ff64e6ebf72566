//! The secrets of sources: rotated, and sealed again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::signing::Overlap;
use domain::source::{SchemeKind, SourceSecret};
use integration_tests::race::race;
use store::sealing::{Sealer, SealingKey};
use store::secret::Owner;
use store::source::{NewSourceSecret, SOURCE_SECRETS_MAX, Source, SourceCreation, SourceRotation};
use store::{Store, StoreOptions};

use super::{new_source, source};
use crate::fixture::Fixture;

on_both_stores! {
    of_racing_rotations_of_a_source_each_is_stored_and_all_verify,
    a_source_has_at_most_ten_live_secrets_and_none_of_the_old_without_an_overlap,
    secrets_of_sources_are_sealed_again_and_open_with_the_new_key_alone,
}

fn rotation(source: &Source, text: &str, hours: u64) -> anyhow::Result<NewSourceSecret> {
    Ok(NewSourceSecret {
        source: source.key,
        secret: SourceSecret::parse(SchemeKind::Github, text)?,
        overlap: Overlap::new(Duration::from_hours(hours))?,
    })
}

async fn live(store: &Arc<dyn Store>, source: &Source) -> anyhow::Result<BTreeSet<String>> {
    let gateway = store.read_gateway(DEFAULT_APPLICATION_KEY, &source.id).await?;
    let secrets = gateway.context("a source")?.secrets.map_err(|why| anyhow::anyhow!(why))?;
    Ok(secrets.iter().map(|secret| secret.expose().to_owned()).collect())
}

async fn of_racing_rotations_of_a_source_each_is_stored_and_all_verify(
    db: Fixture,
) -> anyhow::Result<()> {
    let created = source(&db, &db.endpoint().await?, "gh").await?;
    let new: Vec<NewSourceSecret> = (0..6)
        .map(|n| rotation(&created, &format!("secret {n}"), 1))
        .collect::<anyhow::Result<_>>()?;
    let rotated = race(new, |_, new| {
        let store = Arc::clone(&db.store);
        async move { Ok(store.rotate_source_secret(&new).await?) }
    });
    let versions: BTreeSet<i64> = rotated
        .await?
        .iter()
        .filter_map(|it| match it {
            SourceRotation::Rotated { version, .. } => Some(*version),
            _ => None,
        })
        .collect();
    assert_eq!(versions, (2..8).collect());
    let mut expected: BTreeSet<String> = (0..6).map(|n| format!("secret {n}")).collect();
    expected.insert("the first secret".to_owned());
    assert_eq!(live(&db.store, &created).await?, expected);

    // All but the newest end with the next one: none was overlooked by a rotation beside it.
    db.store.rotate_source_secret(&rotation(&created, "alone", 0)?).await?;
    assert_eq!(live(&db.store, &created).await?, BTreeSet::from(["alone".to_owned()]));
    Ok(())
}

async fn a_source_has_at_most_ten_live_secrets_and_none_of_the_old_without_an_overlap(
    db: Fixture,
) -> anyhow::Result<()> {
    let created = source(&db, &db.endpoint().await?, "gh").await?;
    for n in 1..SOURCE_SECRETS_MAX {
        let rotation = rotation(&created, &format!("s{n}"), 1)?;
        let rotated = db.store.rotate_source_secret(&rotation).await?;
        ensure!(matches!(rotated, SourceRotation::Rotated { .. }));
    }
    let eleventh = db.store.rotate_source_secret(&rotation(&created, "too many", 1)?).await?;
    assert_eq!(eleventh, SourceRotation::TooManyLive);
    assert_eq!(live(&db.store, &created).await?.len(), 10);
    db.store.rotate_source_secret(&rotation(&created, "alone", 0)?).await?;
    assert_eq!(live(&db.store, &created).await?, BTreeSet::from(["alone".to_owned()]));
    db.store.delete_source(DEFAULT_APPLICATION_KEY, &created.id).await?;
    let gone = db.store.rotate_source_secret(&rotation(&created, "late", 1)?).await?;
    assert_eq!(gone, SourceRotation::Missing);
    Ok(())
}

async fn secrets_of_sources_are_sealed_again_and_open_with_the_new_key_alone(
    db: Fixture,
) -> anyhow::Result<()> {
    let (old, new) = (SealingKey::generate()?, SealingKey::generate()?);
    let open = async |current: &SealingKey, older: &[SealingKey]| {
        let sealer = Sealer::new(current.clone(), older.to_vec());
        store::open(db.url(), StoreOptions::new(sealer)).await
    };
    let endpoint = db.endpoint().await?;
    let before = open(&old, &[]).await?;
    let SourceCreation::Created(source) =
        before.create_source(&new_source(&endpoint, "gh")?).await?
    else {
        bail!("not created")
    };
    ensure!(live(&open(&new, &[]).await?, &source).await.is_err(), "another key opens nothing");
    let unopened = open(&new, &[]).await?.reseal_source_secrets(None, 9).await?.unopened;
    assert_eq!(unopened[0].owner, Owner::Source(source.key));
    let both = open(&new, std::slice::from_ref(&old)).await?;
    assert_eq!(both.reseal_source_secrets(None, 9).await?.resealed, 1);
    let expected = BTreeSet::from(["the first secret".to_owned()]);
    assert_eq!(live(&open(&new, &[]).await?, &source).await?, expected);
    assert_eq!(both.reseal_source_secrets(None, 9).await?.last, None, "what is done is done");
    Ok(())
}
