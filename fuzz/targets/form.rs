//! Any body as a form: what is taken is within its limits and comes out as JSON.
#![no_main]

use domain::submission::content::{ContentType, Form, FormLimits, declared_json_parses};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let limits = FormLimits::default();
    if let Ok(form) = Form::parse_urlencoded(body, limits) {
        let json = form.to_json();
        assert_json(&json);
    }
    // The fields of a multipart body come one by one.
    let mut form = Form::new(limits);
    for field in body.split(|byte| *byte == b'\n') {
        let (name, value) = field.split_at(field.len() / 2);
        if form.add(name, value).is_err() {
            break;
        }
    }
    assert_json(&form.to_json());
});

fn assert_json(text: &str) {
    let declared = ContentType::json();
    assert_eq!(declared_json_parses(&declared, text.as_bytes()), Ok(()), "{text}");
}
