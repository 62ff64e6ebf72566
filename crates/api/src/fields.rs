//! The named values of a query or a body.
//!
//! A route takes the fields that it knows, each with its parser of the domain. What is left over is
//! unknown, and unknown fields are refused: a misspelt optional field would otherwise be lost without
//! a word. All that is wrong is told at once.

mod members;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use actix_web::HttpRequest;
use domain::destination::DestinationError;
use domain::endpoint::{CaCertificatesError, SettingsError};
use domain::id::{PublicId, PublicIdError};
use domain::label::LabelError;
use domain::signing::{EndpointSecretError, SecretError};
use serde_json::Value;
use serde_json::error::Category;

use self::members::Members;
use crate::problem::{Code, Extension, FieldError, Problem};

/// Why the value of a field is refused.
pub(crate) trait Fault {
    /// Which rule it breaks: stable.
    fn code(&self) -> &'static str;
    /// The rule in words, naming its limit.
    fn message(&self) -> String;
}

/// A refusal in a form of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: &'static str,
    message: Cow<'static, str>,
}

impl Refusal {
    /// That rule is broken.
    pub(crate) fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }

    /// The rule that a parser names.
    pub(crate) fn of(fault: &impl Fault) -> Self {
        Self::new(fault.code(), fault.message())
    }
}

/// The fields that a request gave and nobody has taken yet, and what is wrong so far.
#[derive(Debug)]
pub(crate) struct Fields {
    code: Code,
    given: BTreeMap<String, Value>,
    errors: Vec<FieldError>,
}

impl Fields {
    /// The parameters of a request's query, without the one that says whom the call is about.
    pub(crate) fn of_query(request: &HttpRequest) -> Self {
        Self::of_parameters(request, |name| name != APPLICATION_ID)
    }

    fn of_parameters(request: &HttpRequest, wanted: impl Fn(&str) -> bool) -> Self {
        let pairs = url::form_urlencoded::parse(request.query_string().as_bytes());
        let pairs = pairs.filter(|(name, _)| wanted(name));
        let texts = pairs.map(|(name, text)| (name.into_owned(), Value::String(text.into_owned())));
        Self::of_pairs(Code::QueryInvalid, texts)
    }

    /// The members of a body, which must be one JSON object.
    pub(crate) fn of_body(body: &[u8]) -> Result<Self, Problem> {
        let members: Members = serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            match error.classify() {
                Category::Data => Problem::new(Code::BodyInvalid).detail("send one JSON object"),
                Category::Syntax | Category::Eof | Category::Io => {
                    malformed_json(line, column, &error.to_string())
                }
            }
        })?;
        let mut repeated = Vec::new();
        let pairs = members.0.into_iter().map(|(name, member)| {
            repeated.extend(member.repeated.map(|inner| (name.clone(), inner)));
            (name, member.value)
        });
        let mut fields = Self::of_pairs(Code::BodyInvalid, pairs);
        for (name, inner) in repeated {
            fields.refuse(name, "field_repeated", format!("has `{inner}` more than once"));
        }
        Ok(fields)
    }

    fn of_pairs(code: Code, pairs: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut fields = Self { code, given: BTreeMap::new(), errors: Vec::new() };
        for (name, value) in pairs {
            match fields.given.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(entry) => {
                    let name = entry.key().clone();
                    fields.refuse(name, "field_repeated", "is given more than once");
                }
            }
        }
        fields
    }

    /// Takes a text that may be absent. `None` also if it is refused.
    pub(crate) fn optional<T, F: Fault>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, F>,
    ) -> Option<T> {
        let value = self.given.remove(name)?;
        let Value::String(text) = value else {
            self.refuse(name, "field_not_text", "must be a string");
            return None;
        };
        match parse(&text) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.refuse(name, fault.code(), fault.message());
                None
            }
        }
    }

    /// Takes a text that must be there. `None` if it is absent or refused.
    pub(crate) fn required<T, F: Fault>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, F>,
    ) -> Option<T> {
        if !self.given.contains_key(name) {
            self.refuse(name, "field_missing", "is required");
        }
        self.optional(name, parse)
    }

    /// Takes a value that may be absent, but not null. `None` also if it is refused.
    pub(crate) fn value<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Refusal>,
    ) -> Option<T> {
        let taken = self.nullable(name, parse)?;
        if taken.is_none() {
            self.refuse(name, "field_not_nullable", "must not be null");
        }
        taken
    }

    /// Takes a value that may be absent, or null, which is the inner `None`. The outer one also if it
    /// is refused.
    #[expect(clippy::option_option, reason = "absent, null and given are three things")]
    pub(crate) fn nullable<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Refusal>,
    ) -> Option<Option<T>> {
        match self.given.remove(name)? {
            Value::Null => Some(None),
            value => match parse(&value) {
                Ok(value) => Some(Some(value)),
                Err(Refusal { code, message }) => {
                    self.refuse(name, code, message);
                    None
                }
            },
        }
    }

    /// Refuses a field that answers show and a request must not give.
    pub(crate) fn refuse_read_only(&mut self, name: &'static str, why: &'static str) {
        if self.given.remove(name).is_some() {
            self.refuse(name, "field_read_only", why);
        }
    }

    /// What was made of the fields, unless something is wrong with them or some are left over.
    pub(crate) fn finish<T>(mut self, made: Option<T>) -> Result<T, Problem> {
        for name in std::mem::take(&mut self.given).into_keys() {
            self.refuse(name, "field_unknown", "is not known here");
        }
        match made {
            Some(made) if self.errors.is_empty() => Ok(made),
            _ => Err(Problem::of_fields(self.code, self.errors)),
        }
    }

    /// Whether something is wrong with that field.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        self.errors.iter().any(|error| error.field == name)
    }

    /// Notes what is wrong with a field.
    pub(crate) fn refuse(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.errors.push(FieldError::new(name, code, message));
    }
}

/// The parameter that every call with a key takes. It is read where the caller is.
pub(crate) const APPLICATION_ID: &str = "application_id";

/// The application that a request's query names, if any.
pub(crate) fn application_id(request: &HttpRequest) -> Result<Option<PublicId>, Problem> {
    let mut fields = Fields::of_parameters(request, |name| name == APPLICATION_ID);
    let id = fields.optional(APPLICATION_ID, PublicId::parse);
    fields.finish(Some(id))
}

/// Refuses every query parameter but `application_id`.
pub(crate) fn refuse_query(request: &HttpRequest) -> Result<(), Problem> {
    Fields::of_query(request).finish(Some(()))
}

/// The problem of a body that is declared to be JSON and is not.
pub(crate) fn malformed_json(line: usize, column: usize, message: &str) -> Problem {
    Problem::new(Code::JsonMalformed)
        .detail(message.to_owned())
        .extended(Extension::Position { line, column })
}

impl Fault for DestinationError {
    fn code(&self) -> &'static str {
        DestinationError::code(self)
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for PublicIdError {
    fn code(&self) -> &'static str {
        "id_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for LabelError {
    fn code(&self) -> &'static str {
        "name_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for SettingsError {
    fn code(&self) -> &'static str {
        "setting_out_of_range"
    }

    fn message(&self) -> String {
        self.message.clone()
    }
}

impl Fault for CaCertificatesError {
    fn code(&self) -> &'static str {
        CaCertificatesError::code(self)
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for SecretError {
    fn code(&self) -> &'static str {
        "secret_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

impl Fault for EndpointSecretError {
    fn code(&self) -> &'static str {
        "secret_malformed"
    }

    fn message(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests;
