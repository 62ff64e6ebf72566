//! The one table of problem codes. A code is added and never changed: programs depend on it.

use actix_web::http::StatusCode;

macro_rules! codes {
    ($($variant:ident, $code:literal, $status:ident, $summary:literal;)*) => {
        /// What kind of problem it is, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Code {
            $(#[doc = $summary] $variant,)*
        }

        impl Code {
            /// Every code, for the document and tests.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in answers.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The status that it is answered with.
            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// What it means, for people.
            pub(crate) fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }
        }
    };
}

#[rustfmt::skip]
codes! {
    // The request as such.
    NotFound, "not_found", NOT_FOUND, "nothing has this path";
    MethodNotAllowed, "method_not_allowed", METHOD_NOT_ALLOWED, "the path does not take this method, see `Allow`";
    QueryInvalid, "query_invalid", UNPROCESSABLE_ENTITY, "query parameters are unknown or break a rule, see `errors`";

    CursorInvalid, "cursor_invalid", UNPROCESSABLE_ENTITY, "the cursor is of another list, filter or application: send it with the parameters that it was answered for";

    // Who calls.
    KeyMissing, "key_missing", UNAUTHORIZED, "send one API key as `Authorization: Bearer fp_live_…`";
    KeyUnknown, "key_unknown", UNAUTHORIZED, "the API key does not exist or was revoked";
    RoleInsufficient, "role_insufficient", FORBIDDEN, "the role of this API key does not allow the call";

    KeyBound, "key_bound", FORBIDDEN, "this API key is bound to one application, the call needs one that is not";

    // Applications and keys.
    ApplicationNotFound, "application_not_found", NOT_FOUND, "no application has this id, or none that this API key may reach";
    ApplicationIdTaken, "application_id_taken", CONFLICT, "an application has, or once had, this id";
    KeyNotFound, "key_not_found", NOT_FOUND, "no API key has this id";
    KeyLastAdmin, "key_last_admin", CONFLICT, "the last admin key of all applications stays: create another one first";

    // How much.
    RateLimited, "rate_limited", TOO_MANY_REQUESTS, "the budget that `scope` names is spent: wait as long as `Retry-After` says";

    // Bodies.
    BodyTooLarge, "body_too_large", PAYLOAD_TOO_LARGE, "the body has more bytes than `limit_bytes`";
    BodyTooSlow, "body_too_slow", REQUEST_TIMEOUT, "the body did not arrive in time";
    BodyIncomplete, "body_incomplete", BAD_REQUEST, "the body ended before its declared end";
    BodyInvalid, "body_invalid", UNPROCESSABLE_ENTITY, "fields of the body are missing, unknown or break a rule, see `errors`";
    JsonMalformed, "json_malformed", UNPROCESSABLE_ENTITY, "the body is declared to be JSON and is not";
    ContentTypeMalformed, "content_type_malformed", UNSUPPORTED_MEDIA_TYPE, "the content type is not a media type, see `errors`";
    ContentTypeUnsupported, "content_type_unsupported", UNSUPPORTED_MEDIA_TYPE, "send the body as `application/json`";
    ContentEncodingUnsupported, "content_encoding_unsupported", UNSUPPORTED_MEDIA_TYPE, "send the body without `Content-Encoding`: its bytes are kept as they are";

    // Endpoints.
    EndpointNotFound, "endpoint_not_found", NOT_FOUND, "no endpoint has this id";
    EndpointIdTaken, "endpoint_id_taken", CONFLICT, "an endpoint has, or once had, this id";
    SecretSchemeUnused, "secret_scheme_unused", UNPROCESSABLE_ENTITY, "the secret is for a scheme that the endpoint does not sign by, see its `signing`";
    TooManyLiveSecrets, "too_many_live_secrets", CONFLICT, "ten secrets are live: wait until one ends, or rotate with an `overlap` of `0s`";
    EndpointDisabled, "endpoint_disabled", CONFLICT, "the endpoint is disabled";

    // Sources.
    SourceNotFound, "source_not_found", NOT_FOUND, "no source has this id";
    SourceIdTaken, "source_id_taken", CONFLICT, "a source has, or once had, this id";
    SignatureInvalid, "signature_invalid", UNAUTHORIZED, "the request does not prove that it comes from this source";
    EventInProgress, "event_in_progress", SERVICE_UNAVAILABLE, "another copy of this event is being stored, send it again";

    // Submissions.
    SubmissionNotFound, "submission_not_found", NOT_FOUND, "no submission has this id";
    IdempotencyKeyInvalid, "idempotency_key_invalid", BAD_REQUEST, "`Idempotency-Key` breaks a rule, see `errors`";
    IdempotencyKeyReused, "idempotency_key_reused", UNPROCESSABLE_ENTITY, "this idempotency key was used for other content";
    IdempotencyKeyInProgress, "idempotency_key_in_progress", CONFLICT, "another request with this idempotency key is being decided, send it again";
    PayloadErased, "payload_erased", GONE, "the payload was erased";
    PayloadExpired, "payload_expired", GONE, "the payload is no longer kept";
    EventTypeInvalid, "event_type_invalid", UNPROCESSABLE_ENTITY, "`Fencepost-Event-Type` breaks a rule, see `errors`";

    // Forms.
    FormTypeUnsupported, "form_type_unsupported", UNSUPPORTED_MEDIA_TYPE, "send the form as `application/x-www-form-urlencoded` or `multipart/form-data`";
    FormCharsetUnsupported, "form_charset_unsupported", UNSUPPORTED_MEDIA_TYPE, "send the form in UTF-8";
    FormMalformed, "form_malformed", UNPROCESSABLE_ENTITY, "the body is not a form of its content type";
    FormFileRefused, "form_file_refused", UNPROCESSABLE_ENTITY, "the form has a file: only text is taken";
    FormFieldsTooMany, "form_fields_too_many", UNPROCESSABLE_ENTITY, "the form has too many fields, see `detail`";
    FormNameMissing, "form_name_missing", UNPROCESSABLE_ENTITY, "a field of the form has no name";
    FormNameTooLong, "form_name_too_long", UNPROCESSABLE_ENTITY, "the name of a field is too long, see `detail`";
    FormValueTooLong, "form_value_too_long", UNPROCESSABLE_ENTITY, "the value of a field is too long, see `detail`";
    FormEncodingInvalid, "form_encoding_invalid", UNPROCESSABLE_ENTITY, "the name or value of a field is not UTF-8";

    // Deliveries.
    DeliveryNotFound, "delivery_not_found", NOT_FOUND, "no delivery has this id";
    DeliveryNotReplayable, "delivery_not_replayable", CONFLICT, "only a failed delivery can be replayed, this one is in `state`";
    DeliveryNotCancellable, "delivery_not_cancellable", CONFLICT, "a settled delivery cannot be cancelled, this one is in `state`";
    DeliveryExpired, "delivery_expired", GONE, "the time in which the delivery could be replayed is over";

    // The service.
    DatabaseUnavailable, "database_unavailable", SERVICE_UNAVAILABLE, "the database is not available: send the request again, with the same `Idempotency-Key` if it has one";
    Overloaded, "overloaded", SERVICE_UNAVAILABLE, "more requests wait than the service takes: send it again later, with the same `Idempotency-Key` if it has one";
    NotReady, "not_ready", SERVICE_UNAVAILABLE, "the service cannot work, see `detail`";
    Internal, "internal", INTERNAL_SERVER_ERROR, "something is wrong inside the service, its log says what";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_one_of_a_kind_and_an_error() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            let name = code.as_str();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{name}");
        }
    }
}
