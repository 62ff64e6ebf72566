//! The endpoint that receives events about the service itself.

mod clear;
mod get;
mod set;

use serde::Serialize;
use store::api_key::Role;
use store::operational::OperationalEndpoint;
use utoipa::ToSchema;

use super::{Access, Call, State};
use crate::auth::Caller;
use crate::problem::{Code, Problem};

const PATH: &str = "/v1/operational-endpoint";

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get(PATH, Access::Key(Role::Admin), get::doc(), get::get),
        Call::put(PATH, Access::Key(Role::Admin), set::doc(), set::set),
        Call::delete(PATH, Access::Key(Role::Admin), clear::doc(), clear::clear),
    ]
}

/// Where events go as it is answered. Null: nowhere.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OperationalEndpoint)]
struct OperationalEndpointBody {
    application_id: Option<String>,
    endpoint_id: Option<String>,
}

impl From<Option<OperationalEndpoint>> for OperationalEndpointBody {
    fn from(endpoint: Option<OperationalEndpoint>) -> Self {
        let (application_id, endpoint_id) =
            endpoint.map(|endpoint| (endpoint.application, endpoint.id)).unzip();
        Self { application_id, endpoint_id }
    }
}

/// The events are about all applications.
fn refuse_bound(caller: &Caller) -> Result<(), Problem> {
    if caller.bound { Err(Problem::new(Code::KeyBound)) } else { Ok(()) }
}
