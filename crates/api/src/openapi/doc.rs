//! What a call says of itself, next to its handler.

use std::collections::BTreeSet;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, Ref, RefOr, Response, ResponseBuilder, ResponsesBuilder, Schema,
};
use utoipa::{PartialSchema, ToSchema};

use super::problems::{self, required};
use super::schema::{self, PublicId, integer, text};
use super::{API_KEY, schema::uuid};
use crate::list::{LIMIT_DEFAULT, LIMIT_MAX};
use crate::problem::Code;

const JSON: &str = "application/json";

/// What every call does that reads a body.
const OF_A_BODY: [Code; 4] =
    [Code::BodyTooLarge, Code::BodyTooSlow, Code::BodyIncomplete, Code::ContentEncodingUnsupported];

/// The description of a call.
#[derive(Clone)]
pub(crate) struct Doc {
    id: &'static str,
    summary: &'static str,
    about: Option<&'static str>,
    tag: &'static str,
    parameters: Vec<Parameter>,
    body: Option<RequestBody>,
    answers: Vec<(u16, Response)>,
    codes: BTreeSet<Code>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Doc {
    /// A call with this id and in these words.
    pub(crate) fn of(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            about: None,
            tag: "service",
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            codes: BTreeSet::new(),
            schemas: Vec::new(),
        }
    }

    /// With more words.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about: Some(about), ..self }
    }

    /// Among the calls of this name.
    pub(crate) fn tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// It may be given this query parameter.
    pub(crate) fn query(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(name, ParameterIn::Query, about, schema)
    }

    /// It may be given this header.
    pub(crate) fn header(self, name: &str, about: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        self.parameter(name, ParameterIn::Header, about, schema)
    }

    fn parameter(
        mut self,
        name: &str,
        place: ParameterIn,
        about: &str,
        schema: impl Into<RefOr<Schema>>,
    ) -> Self {
        self.parameters.push(parameter(name, place, about, schema.into()));
        self
    }

    /// It takes a JSON object.
    pub(crate) fn takes<T: ToSchema>(self) -> Self {
        self.takes_json::<T>(true)
    }

    /// It takes a JSON object, or no body.
    pub(crate) fn may_take<T: ToSchema>(self) -> Self {
        self.takes_json::<T>(false)
    }

    fn takes_json<T: ToSchema>(mut self, must: bool) -> Self {
        let schema = self.refer::<T>();
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let body = RequestBodyBuilder::new().content(JSON, content).required(Some(required(must)));
        self.codes.extend(OF_A_BODY);
        let more = [Code::ContentTypeUnsupported, Code::JsonMalformed, Code::BodyInvalid];
        self.codes.extend(more);
        Self { body: Some(body.build()), ..self }
    }

    /// It takes a body of these types.
    pub(crate) fn takes_any_of(
        mut self,
        about: &str,
        kinds: impl IntoIterator<Item = (&'static str, Schema)>,
    ) -> Self {
        let mut body = RequestBodyBuilder::new().description(Some(about));
        for (kind, schema) in kinds {
            body = body.content(kind, ContentBuilder::new().schema(Some(schema)).build());
        }
        self.codes.extend(OF_A_BODY);
        Self { body: Some(body.build()), ..self }
    }

    /// It answers this.
    pub(crate) fn answers<T: ToSchema>(mut self, status: u16, about: &str) -> Self {
        let schema = self.refer_to_answer::<T>();
        self.answer(status, about, Some((JSON, schema)))
    }

    /// It answers a list of these, with its next cursor.
    pub(crate) fn answers_list<T: ToSchema>(mut self, about: &str) -> Self {
        let items = self.refer_to_answer::<T>();
        let cursor = ObjectBuilder::new()
            .schema_type(schema::nullable(Type::String))
            .description(Some("Names the next part; null at the end."));
        let list = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("data", ArrayBuilder::new().items(items))
            .property("next_cursor", cursor)
            .required("data")
            .required("next_cursor");
        let name = format!("{}List", T::name());
        self.schemas.push((name.clone(), list.into()));
        self.codes.extend([Code::QueryInvalid, Code::CursorInvalid]);
        self.query(
            "limit",
            "How many, 50 by default.",
            integer(1, LIMIT_MAX.into()).default(Some(LIMIT_DEFAULT.into())),
        )
        .query(
            "cursor",
            "The `next_cursor` of the part before, with the same filter.",
            schema::cursor(),
        )
        .answer(200, about, Some((JSON, Ref::from_schema_name(name).into())))
    }

    /// It answers without a body.
    pub(crate) fn answers_nothing(self, status: u16, about: &str) -> Self {
        self.answer(status, about, None)
    }

    /// It answers something that is no JSON of ours.
    pub(crate) fn answers_other(
        self,
        status: u16,
        kind: &str,
        about: &str,
        schema: Schema,
    ) -> Self {
        self.answer(status, about, Some((kind, schema.into())))
    }

    fn answer(mut self, status: u16, about: &str, content: Option<(&str, RefOr<Schema>)>) -> Self {
        let mut response = ResponseBuilder::new().description(about);
        if let Some((kind, schema)) = content {
            response = response.content(kind, ContentBuilder::new().schema(Some(schema)).build());
        }
        self.answers.push((status, response.build()));
        self
    }

    /// Its last answer has this header.
    pub(crate) fn with_header(mut self, name: &str, about: &str) -> Self {
        let header = HeaderBuilder::new().schema(Some(text())).description(Some(about)).build();
        if let Some((_, answer)) = self.answers.last_mut() {
            answer.headers.insert(name.to_owned(), header.into());
        }
        self
    }

    /// It refuses for these reasons, beside those that follow from the table, body and list.
    pub(crate) fn refuses(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes.extend(codes);
        self
    }

    fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = T::name().into_owned();
        T::schemas(&mut self.schemas);
        self.schemas.push((name.clone(), T::schema()));
        Ref::from_schema_name(name).into()
    }

    fn refer_to_answer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let from = self.schemas.len();
        let reference = self.refer::<T>();
        for (_, schema) in self.schemas.iter_mut().skip(from) {
            require_nulls(schema);
        }
        reference
    }

    /// The schemas that it refers to.
    pub(super) fn schemas(&self) -> &[(String, RefOr<Schema>)] {
        &self.schemas
    }

    /// The whole description, with what follows from the table.
    pub(super) fn operation(&self, path: &str, least_role: Option<&str>) -> Operation {
        let mut codes = self.codes.clone();
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .description(self.about)
            .tag(self.tag)
            .request_body(self.body.clone());
        for (name, about, schema, code) in PATH_PARAMETERS {
            if path.contains(&format!("{{{name}}}")) {
                let parameter = parameter(name, ParameterIn::Path, about, schema().into());
                operation = operation.parameter(parameter);
                codes.insert(*code);
            }
        }
        if let Some(role) = least_role {
            let about = "The application that the call is about, `default` if it is not given. A \
                         key that is bound to one reaches no other.";
            let id = PublicId::schema();
            operation = operation
                .parameter(parameter("application_id", ParameterIn::Query, about, id))
                // For a scheme without scopes these are the roles that a call asks for.
                .security(SecurityRequirement::new(API_KEY, [role]));
            codes.extend([Code::KeyMissing, Code::KeyUnknown, Code::ApplicationNotFound]);
            codes.extend([Code::QueryInvalid, Code::DatabaseUnavailable, Code::Internal]);
            // Every key may read.
            if role != "read" {
                codes.insert(Code::RoleInsufficient);
            }
        }
        for parameter in &self.parameters {
            operation = operation.parameter(parameter.clone());
        }
        let mut responses = ResponsesBuilder::new();
        for (status, answer) in self.answers.iter().cloned().chain(problems::responses(&codes)) {
            responses = responses.response(status.to_string(), answer);
        }
        operation.responses(responses.build()).build()
    }
}

/// What a parameter of a path names, and the code that says that it names nothing.
type PathParameter = (&'static str, &'static str, fn() -> ObjectBuilder, Code);

const PATH_PARAMETERS: &[PathParameter] = &[
    ("application_id", "The id of an application.", any_text, Code::EndpointNotFound),
    ("endpoint_id", "The id of an endpoint.", any_text, Code::EndpointNotFound),
    ("source_id", "The id of a source.", any_text, Code::SourceNotFound),
    ("submission_id", "The id of a submission.", uuid, Code::SubmissionNotFound),
    ("delivery_id", "The id of a delivery.", uuid, Code::DeliveryNotFound),
    ("key_id", "The id of a key, not the key itself.", uuid, Code::KeyNotFound),
    ("file", "A file of the page.", file_name, Code::NotFound),
];

/// What is no id names nothing, and is told so by the same answer.
fn any_text() -> ObjectBuilder {
    text().min_length(Some(1))
}

fn file_name() -> ObjectBuilder {
    any_text().examples(["swagger-ui.css"])
}

fn parameter(name: &str, place: ParameterIn, about: &str, schema: RefOr<Schema>) -> Parameter {
    let must = matches!(place, ParameterIn::Path);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required(must))
        .description(Some(about))
        .schema(Some(schema))
        .build()
}

/// An answer has all its members, and those that have no value are null. Only what is left out when it
/// has none is not required: that one is never null.
fn require_nulls(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            for (name, property) in &object.properties {
                if may_be_null(property) && !object.required.contains(name) {
                    object.required.push(name.clone());
                }
            }
        }
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(require_nulls),
        _ => {}
    }
}

fn may_be_null(property: &RefOr<Schema>) -> bool {
    let null = |kind: &SchemaType| match kind {
        SchemaType::Type(kind) => *kind == Type::Null,
        SchemaType::Array(kinds) => kinds.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match property {
        RefOr::T(Schema::Object(object)) => null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => null(&array.schema_type),
        RefOr::T(Schema::OneOf(one)) => one.items.iter().any(may_be_null),
        _ => false,
    }
}
