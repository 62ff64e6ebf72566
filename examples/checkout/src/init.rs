//! `checkout init`: the tables, a stock, and the endpoint that is told of reservations.
//!
//! The application's migrations and those of Fencepost run beside each other, each with a book of its
//! own. Doing it again changes nothing.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::endpoint::{CustomHeaders, EndpointSettings};
use domain::id::PublicId;
use domain::signing::SigningSecret;
use sqlx::PgPool;
use store::endpoint::{EndpointCreation, NewEndpoint};
use store::postgres::PostgresStore;
use store::sealing::{Sealer, SealingKey};
use store::{Store, StoreOptions};

use crate::answer::Answer;
use crate::command_line::DEFAULT_SKU;
use crate::{ENDPOINT_ID, input};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is in stock, unless it is there already.
    #[arg(long, default_value_t = 3)]
    stock: u32,
    /// Where reservations are told.
    #[arg(long, default_value = "http://127.0.0.1:9000/checkout")]
    url: String,
    /// What the secret is sealed with, base64 of 32 bytes: the worker needs the same. One is made, and
    /// told, if none is given.
    #[arg(long, env = "FENCEPOST_SEALING_KEY", hide_env_values = true)]
    sealing_key: Option<String>,
}

pub(crate) async fn run(url: &str, args: &Args) -> anyhow::Result<Answer> {
    // A receiver on this machine is allowed here; the worker has its own policy when it sends.
    let policy = AddressPolicy { allow_networks: vec!["127.0.0.0/8".parse()?] };
    let destination = match DestinationUrl::parse(&args.url, &policy) {
        Ok(destination) => destination,
        Err(error) => return Ok(Answer::Invalid { field: "url", message: error.to_string() }),
    };
    let pool = crate::connect(url).await?;
    store::migrate(url).await.context("the schema of Fencepost was not migrated")?;
    sqlx::migrate!().run(&pool).await.context("the tables were not made")?;
    stock(&pool, i64::from(args.stock).min(input::QUANTITY_MAX)).await?;
    create_endpoint(pool, destination, args.sealing_key.as_deref()).await
}

async fn stock(pool: &PgPool, available: i64) -> anyhow::Result<()> {
    sqlx::query(
        "-- checkout::init::stock
        INSERT INTO stock (sku, available) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(DEFAULT_SKU)
    .bind(available)
    .execute(pool)
    .await?;
    Ok(())
}

/// The store runs over the application's own pool.
async fn create_endpoint(
    pool: PgPool,
    url: DestinationUrl,
    given: Option<&str>,
) -> anyhow::Result<Answer> {
    let sealing_key = match given {
        Some(text) => SealingKey::from_slice(&STANDARD.decode(text).context("--sealing-key")?)?,
        None => SealingKey::generate()?,
    };
    let made = given.is_none().then(|| STANDARD.encode(sealing_key.expose()));
    let options = StoreOptions::new(Sealer::new(sealing_key, Vec::new()));
    let store = PostgresStore::over(pool, options);
    let secret = store::secret::generate_secret()?;
    let told = secret.reveal();
    let created = store.create_endpoint(&new_endpoint(url, secret)?).await?;
    let created = matches!(created, EndpointCreation::Created(_));
    Ok(Answer::Initialized {
        endpoint_id: ENDPOINT_ID,
        secret: created.then_some(told),
        sealing_key: made.filter(|_| created),
    })
}

fn new_endpoint(url: DestinationUrl, secret: SigningSecret) -> anyhow::Result<NewEndpoint> {
    Ok(NewEndpoint {
        key: store::new_id::endpoint_key(),
        application: DEFAULT_APPLICATION_KEY,
        id: PublicId::parse(ENDPOINT_ID)?,
        url,
        name: None,
        event_types: None,
        headers: CustomHeaders::default(),
        enabled: true,
        settings: EndpointSettings::default(),
        secret,
        ed25519: store::secret::generate_ed25519()?,
    })
}
