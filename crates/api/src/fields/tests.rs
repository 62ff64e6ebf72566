//! What a query and a body of fields are refused for.

use actix_web::ResponseError;
use actix_web::body::MessageBody;
use actix_web::test::TestRequest;

use super::*;

struct Never;

impl Fault for Never {
    fn code(&self) -> &'static str {
        "never"
    }

    fn message(&self) -> String {
        "never".to_owned()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands for a parser")]
fn text(value: &str) -> Result<String, Never> {
    Ok(value.to_owned())
}

fn refused(problem: &Problem) -> Vec<(String, String)> {
    let body = problem.error_response().into_body().try_into_bytes().unwrap();
    let document: Value = serde_json::from_slice(&body).unwrap();
    let errors = document["errors"].as_array().cloned().unwrap_or_default();
    let member = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
    errors.iter().map(|error| (member(error, "field"), member(error, "code"))).collect()
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let body = br#"{"a":1,"b":"x","b":"y","urll":"z","n":null}"#;
    let mut fields = Fields::of_body(body).unwrap();
    let a = fields.optional("a", text);
    let n = fields.optional("n", text);
    let c = fields.required("c", text);
    assert_eq!(fields.optional("b", text).as_deref(), Some("x"));
    assert_eq!((a, n, c), (None, None, None));
    let problem = fields.finish(Some(())).unwrap_err();
    let expected = [
        ("b", "field_repeated"),
        ("a", "field_not_text"),
        ("n", "field_not_text"),
        ("c", "field_missing"),
        ("urll", "field_unknown"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(f, c)| ((*f).to_owned(), (*c).to_owned())).collect();
    assert_eq!(refused(&problem), expected);
}

#[test]
fn a_body_that_is_no_json_is_told_apart_from_one_that_is_no_object() {
    for (body, code) in [
        (&b""[..], Code::JsonMalformed),
        (b"{\"a\":", Code::JsonMalformed),
        (b"{} {}", Code::JsonMalformed),
        (b"{\"a\":\"\xff\"}", Code::JsonMalformed),
        (b"[]", Code::BodyInvalid),
        (b"null", Code::BodyInvalid),
        (b"7", Code::BodyInvalid),
    ] {
        assert_eq!(Fields::of_body(body).unwrap_err().code(), code, "{body:?}");
    }
}

#[test]
fn the_application_is_read_apart_from_the_other_parameters() {
    let id = |uri| application_id(&TestRequest::with_uri(uri).to_http_request());
    assert_eq!(id("/?limit=1").unwrap(), None);
    let named = id("/?limit=1&application%5Fid=shop").unwrap();
    assert_eq!(named.as_ref().map(PublicId::as_str), Some("shop"));
    for (uri, rule) in [
        ("/?application_id=", "id_malformed"),
        ("/?application_id=Shop", "id_malformed"),
        ("/?application_id=a&application_id=a", "field_repeated"),
    ] {
        let problem = id(uri).unwrap_err();
        assert_eq!(problem.code(), Code::QueryInvalid);
        assert_eq!(refused(&problem), [("application_id".to_owned(), rule.to_owned())]);
    }
    let request = TestRequest::with_uri("/?application_id=shop").to_http_request();
    assert!(refuse_query(&request).is_ok());
}

#[test]
fn an_unknown_or_repeated_query_parameter_is_refused() {
    for uri in ["/?x=1", "/?x", "/?limit=1&limit=2", "/?Limit=1", "/?limit%20=1"] {
        let request = TestRequest::with_uri(uri).to_http_request();
        let mut fields = Fields::of_query(&request);
        let limit = fields.optional("limit", text);
        assert!(fields.finish(Some(limit)).is_err(), "{uri}");
    }
    for uri in ["/", "/?", "/?limit=1", "/?li%6dit=1&"] {
        let request = TestRequest::with_uri(uri).to_http_request();
        let mut fields = Fields::of_query(&request);
        let limit = fields.optional("limit", text);
        assert!(fields.finish(Some(limit)).is_ok(), "{uri}");
    }
}
