//! Forms: what a browser sends becomes a JSON object, in which every value is a list.

use std::borrow::Cow;

/// What a form may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormLimits {
    /// The most fields, repeated ones counted each time. 100 by default.
    pub fields_max: usize,
    /// The most bytes of a name. 200 by default.
    pub name_bytes_max: usize,
    /// The most bytes of a value. 64 KiB by default.
    pub value_bytes_max: usize,
}

impl Default for FormLimits {
    fn default() -> Self {
        Self { fields_max: 100, name_bytes_max: 200, value_bytes_max: 64 * 1024 }
    }
}

/// The fields of a form: names in the order in which each was first given, and the values of each in
/// their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    limits: FormLimits,
    count: usize,
    fields: Vec<(String, Vec<String>)>,
}

/// Why a form is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FormError {
    /// More fields than the limit.
    #[error("a form has at most {limit} fields")]
    FieldsTooMany {
        /// The most fields.
        limit: usize,
    },
    /// A field whose name is empty or missing.
    #[error("field {field} has no name")]
    NameMissing {
        /// Which field, counted from 1.
        field: usize,
    },
    /// A name that is longer than the limit.
    #[error("the name of a field has at most {limit} bytes, that of field {field} has {length}")]
    NameTooLong {
        /// Which field, counted from 1.
        field: usize,
        /// The length in bytes.
        length: usize,
        /// The most bytes.
        limit: usize,
    },
    /// A value that is longer than the limit.
    #[error("the value of a field has at most {limit} bytes, that of field {field} has {length}")]
    ValueTooLong {
        /// Which field, counted from 1.
        field: usize,
        /// The length in bytes.
        length: usize,
        /// The most bytes.
        limit: usize,
    },
    /// A name or value that is not UTF-8.
    #[error("the name or value of field {field} is not UTF-8")]
    NotUtf8 {
        /// Which field, counted from 1.
        field: usize,
    },
}

impl Form {
    /// A form without fields.
    #[must_use]
    pub fn new(limits: FormLimits) -> Self {
        Self { limits, count: 0, fields: Vec::new() }
    }

    /// Reads a body of `application/x-www-form-urlencoded` as a browser writes it (WHATWG URL,
    /// section 5.1), but takes nothing that is not UTF-8 once it is decoded, where a browser's own
    /// parser would put replacement characters.
    ///
    /// # Errors
    /// [`FormError`] for the first field that breaks a rule.
    pub fn parse_urlencoded(body: &[u8], limits: FormLimits) -> Result<Self, FormError> {
        let mut form = Self::new(limits);
        for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next());
            form.add(&decoded(name), &decoded(value.unwrap_or_default()))?;
        }
        Ok(form)
    }

    /// Adds a field.
    ///
    /// # Errors
    /// [`FormError`] if it breaks a rule.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), FormError> {
        let limits = self.limits;
        let field = self.count + 1;
        if field > limits.fields_max {
            return Err(FormError::FieldsTooMany { limit: limits.fields_max });
        }
        if name.is_empty() {
            return Err(FormError::NameMissing { field });
        }
        if name.len() > limits.name_bytes_max {
            let (length, limit) = (name.len(), limits.name_bytes_max);
            return Err(FormError::NameTooLong { field, length, limit });
        }
        if value.len() > limits.value_bytes_max {
            let (length, limit) = (value.len(), limits.value_bytes_max);
            return Err(FormError::ValueTooLong { field, length, limit });
        }
        let text = |bytes| str::from_utf8(bytes).map_err(|_| FormError::NotUtf8 { field });
        let (name, value) = (text(name)?, text(value)?.to_owned());
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value),
            None => self.fields.push((name.to_owned(), vec![value])),
        }
        self.count = field;
        Ok(())
    }

    /// The JSON object: a list of texts for each name.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let members = self.fields.iter().map(|(name, values)| {
            let values: Vec<String> = values.iter().map(|value| text(value)).collect();
            format!("{}:[{}]", text(name), values.join(","))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// Plus signs are spaces, `%` and two digits a byte. A `%` without them is itself.
pub(crate) fn decoded(encoded: &[u8]) -> Cow<'_, [u8]> {
    if !encoded.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return Cow::Borrowed(encoded);
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'+', _) => (b' ', after),
            (b'%', [high, low, beyond @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, beyond),
                _ => (b'%', after),
            },
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Cow::Owned(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(body: impl AsRef<[u8]>) -> String {
        Form::parse_urlencoded(body.as_ref(), FormLimits::default()).unwrap().to_json()
    }

    fn refused(body: impl AsRef<[u8]>) -> FormError {
        Form::parse_urlencoded(body.as_ref(), FormLimits::default()).unwrap_err()
    }

    #[test]
    fn every_value_is_a_list_and_the_order_is_kept() {
        assert_eq!(
            json("z=1&a=2&z=3&m=&z=1"),
            r#"{"z":["1","3","1"],"a":["2"],"m":[""]}"#,
            "names as they first came, values as they came"
        );
        assert_eq!(json("flag&&x=1=2&"), r#"{"flag":[""],"x":["1=2"]}"#);
        assert_eq!(json(""), "{}");
    }

    #[test]
    fn escapes_are_decoded_and_a_lone_percent_sign_is_itself() {
        assert_eq!(json("a+b=c%20d%2Be"), r#"{"a b":["c d+e"]}"#);
        assert_eq!(json("a=100%&b=%zz&c=%4"), r#"{"a":["100%"],"b":["%zz"],"c":["%4"]}"#);
        assert_eq!(json("a%3Db=%26"), r#"{"a=b":["&"]}"#);
    }

    /// Case C017, for forms: letters beyond ASCII, an emoji and a line separator.
    #[test]
    fn any_text_passes_unchanged_and_what_is_no_text_is_refused() {
        let text = "ñ 😊 \u{2028}\u{0} \"\\";
        let percent: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let read: serde_json::Value = serde_json::from_str(&json(format!("t={percent}"))).unwrap();
        assert_eq!(read["t"][0], text);
        assert_eq!(json("t=ñ 😊"), r#"{"t":["ñ 😊"]}"#);
        for bad in ["a=caf%E9", "caf%E9=a"] {
            assert_eq!(refused(bad), FormError::NotUtf8 { field: 1 });
        }
        assert_eq!(refused(b"a=1&b=\xff"), FormError::NotUtf8 { field: 2 });
    }

    #[test]
    fn each_limit_is_its_own_error_and_the_limit_itself_passes() {
        let many = |n: usize| vec!["a=1"; n].join("&");
        json(many(100));
        assert_eq!(refused(many(101)), FormError::FieldsTooMany { limit: 100 });
        json(format!("{}=1", "n".repeat(200)));
        let long = FormError::NameTooLong { field: 1, length: 201, limit: 200 };
        assert_eq!(refused(format!("{}=1", "n".repeat(201))), long);
        json(format!("a={}", "v".repeat(65_536)));
        let long = FormError::ValueTooLong { field: 1, length: 65_537, limit: 65_536 };
        assert_eq!(refused(format!("a={}", "v".repeat(65_537))), long);
        assert_eq!(refused("a=1&=2"), FormError::NameMissing { field: 2 });
    }

    proptest! {
        /// What the library of the URL standard writes is read back.
        #[test]
        fn what_a_browser_writes_is_read_back(
            fields in proptest::collection::vec(("[^&]{1,8}", ".{0,12}"), 0..20),
        ) {
            let mut written = url::form_urlencoded::Serializer::new(String::new());
            let mut form = Form::new(FormLimits::default());
            for (name, value) in &fields {
                written.append_pair(name, value);
                form.add(name.as_bytes(), value.as_bytes()).unwrap();
            }
            let written = written.finish();
            let read = Form::parse_urlencoded(written.as_bytes(), FormLimits::default());
            prop_assert_eq!(read, Ok(form.clone()));
            prop_assert!(serde_json::from_str::<serde_json::Value>(&form.to_json()).is_ok());
        }

        #[test]
        fn no_body_makes_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Form::parse_urlencoded(&body, FormLimits::default());
        }
    }
}
