//! HTTP, Rust and SQL say the same of the same input.

use std::borrow::Cow;

use anyhow::Context as _;
use domain::submission::content::declared_json_parses;
use domain::submission::{ContentType, EventType, IdempotencyKey};
use integration_tests::api_binary;
use integration_tests::http::ApiClient;
use integration_tests::process::{Api, Settings};
use reqwest::header::{CONTENT_TYPE, HeaderName};
use serde_json::Value;
use sqlx::postgres::PgDatabaseError;
use sqlx::{PgConnection, Row as _};
use store::api_key::{NewApiKey, Role};
use store::sealing::{Sealer, SealingKey};
use store::{Store as _, StoreOptions};

use crate::shop::Shop;
use crate::sql_function::orders;

/// Content type, event type, key, payload. What HTTP would trim from a header is left out.
type Input = (Option<&'static str>, Option<&'static str>, Option<&'static str>, Vec<u8>);

const JSON: Option<&str> = Some("application/json");

fn inputs() -> Vec<Input> {
    let nested = |levels: usize| [b"[".repeat(levels), b"]".repeat(levels)].concat();
    let quoted = [&b"[\""[..], &b"[".repeat(300), b"\"]"].concat();
    let long = |length: usize| Some(&*Box::leak("k".repeat(length).into_boxed_str()));
    let mut inputs: Vec<Input> = vec![
        (None, None, None, b"\x00\xff".to_vec()),
        (None, Some("a.b"), Some("plain"), Vec::new()),
        (JSON, Some("Invoice.paid-2"), Some("json"), b"{\"a\": 1}".to_vec()),
        (JSON, None, Some("\"quoted\""), b" [1e400,-0.0] \r\n".to_vec()),
        (JSON, None, long(255), b"\"\\ud800 \\u0000\"".to_vec()),
        (JSON, None, long(256), b"1".to_vec()),
        (None, None, Some("a b"), b"1".to_vec()),
        (None, long(128), None, b"1".to_vec()),
        (None, long(129), None, b"1".to_vec()),
        (None, Some("a..b"), None, b"1".to_vec()),
        (None, Some("a/b"), None, b"1".to_vec()),
        (None, None, None, vec![b'x'; 262_144]),
        (None, None, None, vec![b'x'; 262_145]),
        (JSON, None, None, nested(128)),
        (JSON, None, None, nested(129)),
        (JSON, None, None, nested(100_000)),
        (JSON, None, None, quoted),
    ];
    for content_type in [
        "Text/Plain; Charset=UTF-8",
        "text/plain;",
        "a/b;c=\"x; y=\\\"z\\\\\"",
        "json",
        "a/b;c =d",
        "a/b, c/d",
        "APPLICATION/Problem+JSON ; a=b",
        "application/jsonp",
        "text/json",
    ] {
        inputs.push((Some(content_type), None, None, b"{".to_vec()));
    }
    for payload in [
        &b""[..],
        b" ",
        b"{} {}",
        b"{'a':1}",
        b"NaN",
        b"[01]",
        b"\xEF\xBB\xBF{}",
        b"\"\xE9\"",
        b"+1",
        b"\xED\xA0\x80",
        b"\"\n\"",
        b"\"\\x\"",
        b"\"\\u12\"",
        b"{\"a\":1,\"a\":2}",
        b"[1,]",
        b"tru",
        b"\"\x7f\"",
        b"1.",
        b"-",
        b"\"\x00\"",
        b"123456789012345678901234567890",
    ] {
        inputs.push((JSON, None, None, payload.to_vec()));
    }
    inputs
}

/// Whether it was replayed, or the most specific code of the refusal.
async fn by_http(client: &ApiClient, input: &Input) -> anyhow::Result<Result<bool, String>> {
    let (content_type, event_type, key, payload) = input;
    let mut headers = Vec::new();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (HeaderName::from_static("fencepost-event-type"), event_type),
        (HeaderName::from_static("idempotency-key"), key),
    ] {
        headers.extend(value.map(|value| (name, value)));
    }
    let reply =
        client.post("/v1/endpoints/checkout/submissions", &headers, payload.clone()).await?;
    let answer: Value = reply.json()?;
    if reply.status == reqwest::StatusCode::ACCEPTED {
        return Ok(Ok(answer["replayed"] == true));
    }
    let specific = answer["errors"][0]["code"].as_str().or(answer["code"].as_str());
    Ok(Err(specific.context("a refusal without a code")?.to_owned()))
}

async fn by_sql(session: &mut PgConnection, input: &Input) -> anyhow::Result<Result<bool, String>> {
    let (content_type, event_type, key, payload) = input;
    let call = sqlx::query("select * from fencepost.submit('checkout', $1::bytea, $2, $3, $4)");
    let answer =
        call.bind(payload).bind(content_type).bind(event_type).bind(key).fetch_one(session).await;
    match answer {
        Ok(row) => Ok(Ok(row.try_get("replayed")?)),
        Err(error) => Ok(Err(code(&error)?)),
    }
}

fn code(error: &sqlx::Error) -> anyhow::Result<String> {
    let error = error.as_database_error().context("not refused by the database")?;
    let detail = error.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::detail);
    let code = detail.and_then(|detail| detail.strip_prefix("code: "));
    Ok(code.with_context(|| error.to_string())?.to_owned())
}

/// Each is sent both ways, in both orders; with a key the second way replays the first.
#[tokio::test(flavor = "multi_thread")]
async fn http_and_sql_give_the_same_verdict_and_replay_each_other() -> anyhow::Result<()> {
    let shop = Shop::without_receiver().await?;
    let mut session = shop.database.connect().await?;
    sqlx::query("update fencepost.endpoints set ingest_rate = 1000000")
        .execute(&mut session)
        .await?;
    let sealer = Sealer::new(SealingKey::generate()?, Vec::new());
    let store =
        store::postgres::PostgresStore::open(shop.database.url(), StoreOptions::new(sealer))?;
    let key = NewApiKey::generate("test", Role::Admin, None)?;
    store.create_api_key(&key).await?;
    let api = Api::start(api_binary!(), &Settings::new(shop.database.url())).await?;
    let client = api.client(key.reveal())?;

    for http_first in [true, false] {
        for input in inputs() {
            let (first, second) = if http_first {
                (by_http(&client, &input).await?, by_sql(&mut session, &input).await?)
            } else {
                (by_sql(&mut session, &input).await?, by_http(&client, &input).await?)
            };
            let shown = (input.0, input.1, input.2, input.3.len());
            let replays = first.is_ok() && input.2.is_some();
            assert_eq!(second, first.map(|_| replays), "{shown:?}, http first: {http_first}");
        }
        sqlx::query("delete from fencepost.idempotency_keys").execute(&mut session).await?;
    }
    Ok(())
}

/// The code of the first thing that the domain refuses.
fn by_domain(input: &(String, String, String, Vec<u8>)) -> Option<&'static str> {
    let (content_type, event_type, key, payload) = input;
    if let Err(error) = IdempotencyKey::parse(key.as_bytes()) {
        return Some(error.code());
    }
    if let Err(error) = EventType::parse(event_type) {
        return Some(error.code());
    }
    match ContentType::parse(content_type.as_bytes()) {
        Err(error) => Some(error.code()),
        Ok(parsed) => declared_json_parses(&parsed, payload).err().map(|_| "json_malformed"),
    }
}

fn random_text(random: &mut fastrand::Rng, alphabet: &[&str], parts: usize) -> String {
    (0..random.usize(..=parts)).filter_map(|_| random.choice(alphabet)).copied().collect()
}

/// Made of the pieces that grammars are about, most of them nearly right.
fn random_input(random: &mut fastrand::Rng) -> (String, String, String, Vec<u8>) {
    const TYPE: &[&str] =
        &["a", "/", ";", "=", "\"", "\\", " ", "\t", "+json", "é", "\n", ",", "b=c", "text/plain"];
    const EVENT: &[&str] = &["a", ".", "-", "_", "9", "Z", " ", "é", "\n"];
    const KEY: &[&str] = &["a", "!", "~", " ", "é", "\u{7f}", "\t", "\""];
    const VALUE: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"",
        "\\",
        "1",
        "-",
        "0",
        ".5",
        "e",
        "+",
        "true",
        "null",
        " ",
        "\n",
        "\t",
        "\\u00e9",
        "\\ud8",
        "é",
        "\u{1}",
        "[1]",
        "{\"a\":1}",
        "\u{feff}",
        "\u{b}",
    ];
    let chance = random.u8(..4);
    let pick = |wanted: u8, made: String, right: &str| {
        if chance == wanted { made } else { right.to_owned() }
    };
    let content_type = pick(0, random_text(random, TYPE, 8), "application/json");
    let event_type = pick(1, random_text(random, EVENT, 6), "a.b");
    let key = pick(2, random_text(random, KEY, 4), "k");
    let payload = pick(3, random_text(random, VALUE, 7), "{}").into_bytes();
    (content_type, event_type, key, payload)
}

#[tokio::test]
async fn sql_and_the_domain_agree_on_whatever_is_made_up() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut acceptable = 0;
    for _ in 0..2_000 {
        let input = random_input(&mut random);
        let (content_type, event_type, key, payload) = &input;
        let checked = sqlx::query("select fencepost.check_submission($1, $2, $3, $4)::text")
            .bind(payload)
            .bind(content_type)
            .bind(event_type)
            .bind(key)
            .execute(&mut session)
            .await;
        let told = checked.err().map(|error| code(&error)).transpose()?;
        let expected = by_domain(&input);
        acceptable += usize::from(expected.is_none());
        let shown = (content_type, event_type, key, String::from_utf8_lossy(payload));
        assert_eq!(told.as_deref(), expected, "{shown:?} with seed {seed}");
    }
    assert!(acceptable > 100, "nearly all were refused: {acceptable}");
    Ok(())
}

#[tokio::test]
async fn sql_and_the_domain_make_one_fingerprint() -> anyhow::Result<()> {
    let (_database, mut session) = orders().await?;
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..200_u128 {
        let scope = uuid::Uuid::from_u128(number);
        let event_type = random_text(&mut random, &["a", ".", "é"], 6);
        let event_type = random.bool().then_some(event_type);
        let content_type = random_text(&mut random, &["a", "/", "é"], 6);
        let payload: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(50).collect();
        let expected = domain::submission::Fingerprint::of(
            &scope,
            event_type.as_deref(),
            &content_type,
            &payload,
        );
        let made: Vec<u8> =
            sqlx::query_scalar("select fencepost.submission_fingerprint($1, $2, $3, $4)")
                .bind(scope)
                .bind(event_type.as_deref().map(Cow::Borrowed))
                .bind(&content_type)
                .bind(&payload)
                .fetch_one(&mut session)
                .await?;
        assert_eq!(made, expected.as_bytes());
    }
    Ok(())
}
