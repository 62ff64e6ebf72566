//! Forms: anyone may send one to an endpoint that allows it.

mod read;
mod submit;

use super::{Access, Call, Repeated, State, endpoint, single, submission};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::post(
            "/f/{endpoint_id}",
            Access::Anyone,
            submit::doc_of_default(),
            submit::to_default,
        ),
        Call::post(
            "/f/{application_id}/{endpoint_id}",
            Access::Anyone,
            submit::doc_of_application(),
            submit::to_application,
        ),
    ]
}
