//! Every kind of secret is made, and then looked for in all that the processes say: logs at their most
//! talkative, answers, the document, `Debug`. Only the answer that shows a secret once may hold it.

mod search;

use anyhow::Context as _;
use clap::Parser as _;
use domain::endpoint::CustomHeaders;
use domain::signing::{EndpointSecret, SigningSecret};
use integration_tests::http::{ApiClient, Reply};
use integration_tests::process::{Api, ChildProcess, Settings, Worker};
use integration_tests::receiver::{Receiver, always};
use integration_tests::{api_binary, worker_binary};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use serde_json::json;
use store::StoreOptions;
use store::sealing::{Sealer, SealingKey};

use self::search::Search;
use crate::service::{LONG, Service, submit};

/// Ours in all detail, and the libraries as far as anybody would ask them.
const TALKATIVE: &str = "debug,api=trace,domain=trace,process=trace,store=trace,worker=trace";

const SEALING_KEY: &[u8; 32] = b"leak test: seals, is never told!";
const SEALING_KEY_BASE64: &str = "bGVhayB0ZXN0OiBzZWFscywgaXMgbmV2ZXIgdG9sZCE=";
const SOURCE_SECRET: &str = "leak-test-source-secret-0123456789";
const HEADER_VALUE: &str = "Bearer leak-test-custom-header-value";
const SUPPLIED: &str = "whsec_bGVhay10ZXN0LXN1cHBsaWVkLXNlY3JldC0xIQ==";
const SUPPLIED_LATER: &str = "whsec_bGVhay10ZXN0LXN1cHBsaWVkLXNlY3JldC0yIQ==";
/// A seed and its public key: the example of RFC 8032, section 7.1, test 1.
const SUPPLIED_V1A: &str =
    "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==";
const PASSWORD: &str = "leak-test-database-password";
const URL_PASSWORD: &str = "leak-test-password-in-a-url";
const UNKNOWN_KEY: &str = "fp_live_leak0test0of0a0key0that0nobody0made";
const PAYLOAD: &str = "leak-test-what-a-customer-wrote";

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_ever_said_but_by_the_answer_that_shows_it_once() -> anyhow::Result<()> {
    let mut search = Search::default();
    for (name, text) in [
        ("the sealing key", SEALING_KEY_BASE64),
        ("the source secret", SOURCE_SECRET),
        ("a custom header", HEADER_VALUE),
        ("a supplied secret", SUPPLIED),
        ("a secret supplied later", SUPPLIED_LATER),
        ("a private key", SUPPLIED_V1A),
        ("the database's password", PASSWORD),
        ("a password in a URL", URL_PASSWORD),
        ("a wrong key", UNKNOWN_KEY),
        ("a payload", PAYLOAD),
    ] {
        search.secret(name, text);
    }
    let service = Service::start().await?;
    search.secret("the first key", service.key());
    let settings = Settings::new(&with_password(&service).await?)
        .with("FENCEPOST_SEALING_KEY", SEALING_KEY_BASE64)
        .with("FENCEPOST_SOURCE_SECRET", SOURCE_SECRET)
        .with("RUST_LOG", TALKATIVE);
    let mut api = Api::start(api_binary!(), &settings).await?;
    let mut worker = Worker::start(worker_binary!(), "worker", &settings).await?;
    let client = api.client(service.key())?;

    let receiver = Receiver::start(always(204))?;
    make_secrets(&client, &receiver, &mut search).await?;
    deliver(&client, &receiver).await?;
    ask_for_all(&api, &client, &mut search).await?;
    ask_for_what_is_refused(&client, &mut search).await?;
    stop(&mut api.process, "the api's log", &mut search).await?;
    stop(&mut worker.process, "the worker's log", &mut search).await?;

    // A worker that cannot open what is sealed has more to say.
    let other = settings.clone().with("FENCEPOST_SEALING_KEY", &format!("{SUPPLIED_SEED},"));
    search.secret("another sealing key", SUPPLIED_SEED);
    let mut worker = Worker::start(worker_binary!(), "other", &other).await?;
    let mut api = Api::start(api_binary!(), &other).await?;
    let client = api.client(service.key())?;
    submit(&client, "generated", "sealed", format!("{PAYLOAD:?}")).await?;
    search.said("headers that cannot be opened", client.get("/v1/endpoints").await?.to_string());
    stop(&mut worker.process, "the log of another worker", &mut search).await?;
    stop(&mut api.process, "the log of another api", &mut search).await?;

    end_at_the_start(&settings, &mut search).await?;
    debug(&service, &mut search).await?;
    drop_role(&service).await?;
    assert!(search.places() > 60, "{}", search.places());
    let findings = search.findings();
    assert!(findings.is_empty(), "{findings:#?}");
    Ok(())
}

const SUPPLIED_SEED: &str = "YSBzZWFsaW5nIGtleSB0aGF0IG9wZW5zIG5vdGhpbmc=";

/// The name of the role is the database's, which is the test's alone.
fn role(service: &Service) -> String {
    format!("{}_leak", service.database.name())
}

/// The database's address with a password in it.
async fn with_password(service: &Service) -> anyhow::Result<String> {
    let role = role(service);
    let create = format!("create role {role} login superuser password '{PASSWORD}'");
    let mut connection = service.database.connect().await?;
    sqlx::query(sqlx::AssertSqlSafe(create)).execute(&mut connection).await?;
    let mut url = url::Url::parse(service.database.url())?;
    let set = url.set_username(&role).and_then(|()| url.set_password(Some(PASSWORD)));
    anyhow::ensure!(set.is_ok(), "the address takes no password");
    Ok(url.into())
}

async fn drop_role(service: &Service) -> anyhow::Result<()> {
    let mut connection = service.database.connect().await?;
    let drop = format!("drop role {}", role(service));
    sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&mut connection).await?;
    Ok(())
}

/// Every answer that shows a secret.
async fn make_secrets(
    client: &ApiClient,
    receiver: &Receiver,
    search: &mut Search,
) -> anyhow::Result<()> {
    let headers = json!({"authorization": HEADER_VALUE});
    for (path, body, member) in [
        ("/v1/keys", json!({"name": "k", "role": "read"}), "key"),
        (
            "/v1/endpoints",
            json!({"id": "generated", "url": receiver.url("/a"), "headers": headers, "signing": "both"}),
            "secret",
        ),
        ("/v1/endpoints/generated/secrets/rotate", json!({"overlap": "7d"}), "secret"),
    ] {
        let answer = client.post_json(path, &body).await?;
        search.shown(path, &String::from_utf8_lossy(&answer.body), member)?;
    }
    let body = json!({"url": receiver.url("/b")}).to_string();
    let json_type = [(CONTENT_TYPE, "application/json")];
    let path = "/v1/endpoints/generated";
    let answer = client.send(Method::PATCH, path, &json_type, Some(body.into())).await?;
    search.shown("another URL", &String::from_utf8_lossy(&answer.body), "secret")?;

    // What a caller supplies is repeated once, so that all creations and rotations answer alike.
    let body =
        json!({"id": "supplied", "url": receiver.url("/c"), "secret": SUPPLIED, "signing": "both"});
    let answer = client.post_json("/v1/endpoints", &body).await?;
    search.shown("supplied", &String::from_utf8_lossy(&answer.body), "secret")?;
    let path = "/v1/endpoints/supplied/secrets/rotate";
    let answer = client.post_json(path, &json!({"secret": SUPPLIED_LATER})).await?;
    search.shown("supplied later", &String::from_utf8_lossy(&answer.body), "secret")?;
    let answer = client.post_json(path, &json!({"secret": SUPPLIED_V1A})).await?;
    search.said(path, ok(&answer)?);
    Ok(())
}

fn ok(answer: &Reply) -> anyhow::Result<String> {
    anyhow::ensure!(answer.status.is_success(), "{answer}");
    Ok(answer.to_string())
}

async fn deliver(client: &ApiClient, receiver: &Receiver) -> anyhow::Result<()> {
    for endpoint in ["generated", "supplied"] {
        submit(client, endpoint, "key-1", format!("{PAYLOAD:?}")).await?;
    }
    let requests = receiver.wait_for_requests(2, LONG).await?;
    let sent = requests.iter().any(|it| it.header("authorization") == Some(HEADER_VALUE));
    anyhow::ensure!(sent, "the secrets of this test are in use");
    Ok(())
}

/// What is answered without any secret.
async fn ask_for_all(api: &Api, client: &ApiClient, search: &mut Search) -> anyhow::Result<()> {
    for path in [
        "/v1/keys",
        "/v1/endpoints",
        "/v1/endpoints/generated",
        "/v1/endpoints/supplied",
        "/v1/submissions",
        "/v1/deliveries",
        "/v1/applications",
        "/openapi.json",
        "/docs",
        "/docs/swagger-initializer.js",
    ] {
        search.said(path, ok(&client.get(path).await?)?);
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        let private = ApiClient::new(&api.private_url, "none")?;
        search.said(path, private.get(path).await?.to_string());
    }
    Ok(())
}

/// Requests that are refused because of a secret in them, or beside one.
async fn ask_for_what_is_refused(client: &ApiClient, search: &mut Search) -> anyhow::Result<()> {
    let url = "https://example.com/hook";
    let broken = |secret: &str| format!("{secret}!");
    for (path, body) in [
        ("/v1/endpoints", json!({"url": format!("https://user:{URL_PASSWORD}@example.com/")})),
        ("/v1/endpoints", json!({"url": format!("ftp://user:{URL_PASSWORD}@example.com/")})),
        ("/v1/endpoints", json!({"url": url, "secret": broken(SUPPLIED)})),
        ("/v1/endpoints", json!({"url": url, "secret": SUPPLIED_V1A})),
        ("/v1/endpoints", json!({"url": url, "secret": [SUPPLIED]})),
        ("/v1/endpoints", json!({"url": url, "headers": {"a": format!("{HEADER_VALUE}\u{1}")}})),
        ("/v1/endpoints", json!({"url": url, "headers": {"host": HEADER_VALUE}})),
        ("/v1/endpoints", json!({"url": url, "headers": {"a": [HEADER_VALUE]}})),
        ("/v1/endpoints", json!({"url": url, "headers": HEADER_VALUE})),
        ("/v1/endpoints", json!({"id": "supplied", "url": url, "secret": SUPPLIED})),
        ("/v1/endpoints/generated/secrets/rotate", json!({"secret": broken(SUPPLIED_LATER)})),
        ("/v1/endpoints/generated/secrets/rotate", json!({"secret": broken(SUPPLIED_V1A)})),
        ("/v1/endpoints/nothing/secrets/rotate", json!({"secret": SUPPLIED})),
        ("/v1/keys", json!({"name": UNKNOWN_KEY, "role": UNKNOWN_KEY})),
    ] {
        search.said(path, refused(&client.post_json(path, &body).await?)?);
    }
    let json_type = [(CONTENT_TYPE, "application/json")];
    let cut = format!(r#"{{"url":"{url}","secret":"{SUPPLIED}"#);
    search.said("cut", refused(&client.post("/v1/endpoints", &json_type, cut).await?)?);
    let path = "/v1/endpoints/generated/submissions";
    let cut = format!(r#"{{"a":"{PAYLOAD}"#);
    search.said("a payload", refused(&client.post(path, &json_type, cut).await?)?);
    let key = [(HeaderName::from_static("idempotency-key"), "\u{e9}")];
    search.said("a key", refused(&client.post(path, &key, PAYLOAD).await?)?);

    let stranger = client.with_key(Some(UNKNOWN_KEY));
    search.said("a wrong key", refused(&stranger.get("/v1/endpoints").await?)?);
    for query in ["limit", "cursor", "application_id", "key"] {
        let path = format!("/v1/endpoints?{query}={UNKNOWN_KEY}");
        search.said(&path.replace(UNKNOWN_KEY, ""), refused(&client.get(&path).await?)?);
    }
    for path in ["endpoints", "submissions", "deliveries"] {
        let answer = client.get(&format!("/v1/{path}/{UNKNOWN_KEY}")).await?;
        search.said(path, refused(&answer)?);
    }
    Ok(())
}

fn refused(answer: &Reply) -> anyhow::Result<String> {
    anyhow::ensure!(answer.status.is_client_error(), "{answer}");
    Ok(answer.to_string())
}

/// Ends a process in order, and keeps all that it has said.
async fn stop(process: &mut ChildProcess, place: &str, search: &mut Search) -> anyhow::Result<()> {
    process.terminate().await?;
    process.wait_exit(LONG).await?;
    keep(process, place, search)
}

fn keep(process: &ChildProcess, place: &str, search: &mut Search) -> anyhow::Result<()> {
    let lines = process.lines();
    anyhow::ensure!(!lines.is_empty() && lines.len() < 2_000, "{place}: {} lines", lines.len());
    search.said(place, lines.join("\n"));
    Ok(())
}

/// Processes that refuse to start, or only show their settings.
async fn end_at_the_start(settings: &Settings, search: &mut Search) -> anyhow::Result<()> {
    let (nowhere, cut) = (format!("postgres://u:{PASSWORD}@127.0.0.1:1"), SOURCE_SECRET.get(..15));
    let cut = cut.context("a secret that is too short")?;
    search.secret("a short source secret", cut);
    let wrong_key = SEALING_KEY_BASE64.replace('=', "!");
    search.secret("a wrong sealing key", wrong_key.trim_end_matches('!'));
    for (place, arguments, settings) in [
        ("the settings", &["--print-config"][..], settings.clone()),
        ("the help", &["--help"], settings.clone()),
        ("an unknown flag", &["--unknown"], settings.clone()),
        ("a short secret", &[], settings.clone().with("FENCEPOST_SOURCE_SECRET", cut)),
        ("a wrong sealing key", &[], settings.clone().with("FENCEPOST_SEALING_KEY", &wrong_key)),
        (
            "a wrong scheme",
            &[],
            settings.clone().with("DATABASE_URL", &nowhere.replace("postgres", "mysql")),
        ),
        ("a wrong address", &[], settings.clone().with("DATABASE_URL", &format!("{nowhere}x/a"))),
    ] {
        for binary in [api_binary!(), worker_binary!()] {
            if binary == worker_binary!() && place == "a short secret" {
                continue;
            }
            let mut process = ChildProcess::start(place, binary, arguments, &settings)?;
            process.wait_exit(LONG).await?;
            keep(&process, place, search)?;
        }
    }
    Ok(())
}

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    database: process::DatabaseArgs,
    #[command(flatten)]
    sealing: process::SealingArgs,
    #[command(flatten)]
    api: api::Args,
}

/// What `Debug` shows of whatever carries a secret.
async fn debug(service: &Service, search: &mut Search) -> anyhow::Result<()> {
    let line = Line::try_parse_from([
        "leak",
        "--database-url",
        &format!("postgres://u:{PASSWORD}@127.0.0.1:1/db"),
        "--sealing-key",
        SEALING_KEY_BASE64,
        "--source-secret",
        SOURCE_SECRET,
    ])?;
    let key = SealingKey::from_slice(SEALING_KEY)?;
    let sealer = Sealer::new(key.clone(), vec![key.clone()]);
    let options = StoreOptions::new(sealer.clone());
    let store = store::open(&line.database.database_url, options.clone()).await?;
    let down = format!("{:?}", store.check().await.err().context("nothing listens there")?);
    let new_key = store::api_key::NewApiKey::generate("k", store::api_key::Role::Read, None)?;
    search.secret("a new key", new_key.reveal());
    let headers = CustomHeaders::parse([("authorization".to_owned(), HEADER_VALUE.into())])?;
    let v1: SigningSecret = SigningSecret::parse(SUPPLIED)?;
    let v1a = EndpointSecret::parse(SUPPLIED_V1A)?;
    let id = domain::id::PublicId::parse("supplied")?;
    let application = domain::application::DEFAULT_APPLICATION_KEY;
    let endpoint = service.store.find_endpoint(application, &id);
    let endpoint = endpoint.await?.context("an endpoint")?;
    let rotation = store::secret::NewRotation {
        endpoint: endpoint.key,
        secret: v1.clone(),
        ed25519: match &v1a {
            EndpointSecret::V1a(key) => key.clone(),
            EndpointSecret::V1(_) => anyhow::bail!("a key for v1a"),
        },
        given: None,
        overlap: domain::signing::Overlap::default(),
    };
    let settings = line.api.settings(&sealer);
    let shown: [(&str, &dyn std::fmt::Debug); 14] = [
        ("arguments", &line),
        ("settings", &settings),
        ("sealing key", &key),
        ("sealer", &sealer),
        ("options", &options),
        ("store", &store),
        ("store in use", &service.store),
        ("error", &down),
        ("key", &new_key),
        ("headers", &headers),
        ("secret", &v1),
        ("private key", &v1a),
        ("endpoint", &endpoint),
        ("rotation", &rotation),
    ];
    for (name, value) in shown {
        search.said(&format!("Debug of {name}"), format!("{value:?} {value:#?}"));
    }
    Ok(())
}
