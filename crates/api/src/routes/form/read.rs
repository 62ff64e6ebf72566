//! Reads a form of either content type that browsers send.
//!
//! The body is in memory by then, within its limit, so nothing here waits or grows beyond it.

use std::convert::Infallible;

use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use actix_web::web::Bytes;
use domain::submission::ContentType;
use domain::submission::content::{Form, FormError, FormLimits};
use futures_util::FutureExt;
use multer::{Field, Multipart};

use super::{Repeated, single};
use crate::problem::{Code, Problem};

pub(super) fn form(headers: &HeaderMap, body: &Bytes, limits: FormLimits) -> Result<Form, Problem> {
    let content_type = content_type(headers)?;
    let essence = content_type.essence().to_ascii_lowercase();
    refuse_other_charset(content_type.as_str())?;
    match essence.as_str() {
        "application/x-www-form-urlencoded" => {
            Form::parse_urlencoded(body, limits).map_err(refused)
        }
        "multipart/form-data" => multipart(&content_type, body, limits),
        _ => Err(Problem::new(Code::FormTypeUnsupported)),
    }
}

fn content_type(headers: &HeaderMap) -> Result<ContentType, Problem> {
    let unsupported = || Problem::new(Code::FormTypeUnsupported);
    match single(headers, CONTENT_TYPE.as_str()) {
        Ok(Some(value)) => ContentType::parse(value.as_bytes()).map_err(|_| unsupported()),
        Ok(None) | Err(Repeated) => Err(unsupported()),
    }
}

/// A charset is a parameter that may be absent, and is UTF-8 otherwise.
fn refuse_other_charset(content_type: &str) -> Result<(), Problem> {
    let parsed: Result<mime::Mime, _> = content_type.parse();
    let Ok(parsed) = parsed else { return Err(Problem::new(Code::FormTypeUnsupported)) };
    match parsed.get_param(mime::CHARSET) {
        Some(charset) if charset != mime::UTF_8 => Err(Problem::new(Code::FormCharsetUnsupported)),
        _ => Ok(()),
    }
}

fn multipart(
    content_type: &ContentType,
    body: &Bytes,
    limits: FormLimits,
) -> Result<Form, Problem> {
    let boundary = multer::parse_boundary(content_type.as_str());
    let boundary = boundary.map_err(|_| malformed("its content type has no boundary"))?;
    let body = body.clone();
    let stream = futures_util::stream::once(async move { Ok::<_, Infallible>(body) });
    // All of it is there: a parser that waits for more has met a body that ends too soon.
    parts(Multipart::new(stream, boundary), limits)
        .now_or_never()
        .unwrap_or_else(|| Err(malformed("it ends too soon")))
}

async fn parts(mut multipart: Multipart<'_>, limits: FormLimits) -> Result<Form, Problem> {
    let mut form = Form::new(limits);
    let broken =
        |error: multer::Error| malformed("its parts cannot be read").caused_by(error.to_string());
    while let Some(part) = multipart.next_field().await.map_err(broken)? {
        refuse_other_than_text(&part)?;
        let name = part.name().unwrap_or_default().as_bytes().to_vec();
        let value = part.bytes().await.map_err(broken)?;
        form.add(&name, &value).map_err(refused)?;
    }
    Ok(form)
}

/// A part is a text if it names no file, and has no content type or `text/plain` in UTF-8.
fn refuse_other_than_text(part: &Field<'_>) -> Result<(), Problem> {
    let header = |name: &str| part.headers().get(name).map(AsRef::<[u8]>::as_ref);
    if header("content-disposition").is_some_and(names_a_file) {
        return Err(Problem::new(Code::FormFileRefused));
    }
    // Parts are not encoded (RFC 7578, section 4.7).
    if header("content-transfer-encoding").is_some() {
        return Err(malformed("a part has a transfer encoding"));
    }
    let Some(content_type) = header("content-type") else { return Ok(()) };
    let text = str::from_utf8(content_type).map_err(|_| Problem::new(Code::FormFileRefused))?;
    match text.parse::<mime::Mime>() {
        Ok(parsed) if parsed.essence_str() == mime::TEXT_PLAIN => refuse_other_charset(text),
        _ => Err(Problem::new(Code::FormFileRefused)),
    }
}

/// Whether a parameter `filename`, or `filename*`, stands outside of the quotes.
fn names_a_file(disposition: &[u8]) -> bool {
    let (mut outside, mut quoted, mut escaped) = (Vec::new(), false, false);
    for byte in disposition {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            other => outside.push(other.to_ascii_lowercase()),
        }
    }
    outside
        .split(|byte| *byte == b';')
        .any(|parameter| parameter.trim_ascii_start().starts_with(b"filename"))
}

fn malformed(what: &'static str) -> Problem {
    Problem::new(Code::FormMalformed).detail(what)
}

fn refused(error: FormError) -> Problem {
    let code = match error {
        FormError::FieldsTooMany { .. } => Code::FormFieldsTooMany,
        FormError::NameMissing { .. } => Code::FormNameMissing,
        FormError::NameTooLong { .. } => Code::FormNameTooLong,
        FormError::ValueTooLong { .. } => Code::FormValueTooLong,
        FormError::NotUtf8 { .. } => Code::FormEncodingInvalid,
    };
    Problem::new(code).detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn read(content_type: &str, body: impl Into<Bytes>) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
        form(&headers, &body.into(), FormLimits::default())
            .map(|form| form.to_json())
            .map_err(|problem| problem.code().as_str())
    }

    fn read_parts(parts: &[&str]) -> Result<String, &'static str> {
        let mut body = String::new();
        for part in parts {
            body.push_str("--b\r\n");
            body.push_str(part);
            body.push_str("\r\n");
        }
        body.push_str("--b--\r\n");
        read("multipart/form-data; boundary=b", body)
    }

    fn field(name: &str, value: &str) -> String {
        format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}")
    }

    #[test]
    fn text_parts_become_lists_in_order() {
        let parts = [field("z", "1"), field("a", "ñ 😊\r\nline"), field("z", "")];
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert_eq!(read_parts(&parts).unwrap(), r#"{"z":["1",""],"a":["ñ 😊\r\nline"]}"#);
        let typed = "Content-Disposition: form-data; name=x\r\n\
                     Content-Type: text/plain; charset=UTF-8\r\n\r\n1";
        assert_eq!(read_parts(&[typed]).unwrap(), r#"{"x":["1"]}"#);
    }

    #[test]
    fn a_part_that_is_a_file_is_refused_however_it_says_so() {
        for head in [
            "Content-Disposition: form-data; name=\"x\"; filename=\"a.txt\"",
            "Content-Disposition: form-data; name=\"x\"; filename=\"\"",
            "Content-Disposition: form-data; FileName=a; name=x",
            "Content-Disposition: form-data; name=\"x\"; filename*=UTF-8''a.txt",
            "Content-Disposition: form-data; name=\"x\"\r\nContent-Type: application/json",
            "Content-Disposition: form-data; name=\"x\"\r\nContent-Type: application/octet-stream",
        ] {
            assert_eq!(
                read_parts(&[&format!("{head}\r\n\r\n1")]),
                Err("form_file_refused"),
                "{head}"
            );
        }
        assert!(read_parts(&[&field("filename", "; filename=x")]).is_ok(), "only a name");
        assert!(read_parts(&[&field("a; filename=b", "")]).is_ok(), "only a name");
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for body in
            ["", "--b", "--b\r\n", "--b--", "no boundary at all", "--b\r\nx", "--b\r\n\r\n1"]
        {
            let answer = read("multipart/form-data; boundary=b", body);
            assert!(matches!(answer, Err("form_malformed") | Ok(_)), "{body:?}: {answer:?}");
        }
        assert_eq!(read("multipart/form-data; boundary=b", "--b\r\nx"), Err("form_malformed"));
        assert_eq!(read("multipart/form-data", "--b--"), Err("form_malformed"));
        let unnamed = "Content-Disposition: form-data\r\n\r\n1";
        assert_eq!(read_parts(&[unnamed]), Err("form_name_missing"));
        let encoded = "Content-Disposition: form-data; name=x\r\n\
                       Content-Transfer-Encoding: base64\r\n\r\nMQ==";
        assert_eq!(read_parts(&[encoded]), Err("form_malformed"));
    }

    #[test]
    fn other_types_and_charsets_are_refused() {
        for other in ["application/json", "text/plain", "multipart/mixed; boundary=b", "form"] {
            assert_eq!(read(other, "a=1"), Err("form_type_unsupported"), "{other}");
        }
        let urlencoded = "application/x-www-form-urlencoded";
        for (parameter, answer) in [
            ("", Ok(r#"{"a":["1"]}"#.to_owned())),
            ("; charset=utf-8", Ok(r#"{"a":["1"]}"#.to_owned())),
            ("; charset=\"UTF-8\"", Ok(r#"{"a":["1"]}"#.to_owned())),
            ("; charset=iso-8859-1", Err("form_charset_unsupported")),
        ] {
            assert_eq!(read(&format!("{urlencoded}{parameter}"), "a=1"), answer, "{parameter}");
        }
        assert_eq!(read(urlencoded, "a=%E9"), Err("form_encoding_invalid"));
        let latin = b"--b\r\nContent-Disposition: form-data; name=x\r\n\r\ncaf\xe9\r\n--b--";
        let latin = Bytes::from_static(latin);
        assert_eq!(read("multipart/form-data; boundary=b", latin), Err("form_encoding_invalid"));
    }

    #[test]
    fn the_limits_hold_for_parts_too() {
        let many = vec![field("a", "1"); 101];
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(read_parts(&many[1..]).is_ok());
        assert_eq!(read_parts(&many), Err("form_fields_too_many"));
        assert_eq!(read_parts(&[&field(&"n".repeat(201), "")]), Err("form_name_too_long"));
        assert_eq!(read_parts(&[&field("a", &"v".repeat(65_537))]), Err("form_value_too_long"));
    }
}
