//! What sources send: anyone may, and proves by its signature that it comes from there.

mod challenge;
mod receive;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::PublicId;
use store::source::Gateway;

use super::{Access, Call, State};
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get(
            "/in/{source_id}",
            Access::Anyone,
            challenge::doc_of_default(),
            challenge::to_default,
        ),
        Call::post(
            "/in/{source_id}",
            Access::Anyone,
            receive::doc_of_default(),
            receive::to_default,
        ),
        Call::get(
            "/in/{application_id}/{source_id}",
            Access::Anyone,
            challenge::doc_of_application(),
            challenge::to_application,
        ),
        Call::post(
            "/in/{application_id}/{source_id}",
            Access::Anyone,
            receive::doc_of_application(),
            receive::to_application,
        ),
    ]
}

/// The source that a path names.
async fn find(
    state: &State,
    application_id: Option<&str>,
    source_id: &str,
) -> Result<Gateway, Problem> {
    let missing = || Problem::new(Code::SourceNotFound);
    let application = match application_id {
        Some(id) => {
            let id = PublicId::parse(id).map_err(|_| missing())?;
            state.store.find_application(&id).await?.ok_or_else(missing)?
        }
        None => DEFAULT_APPLICATION_KEY,
    };
    let id = PublicId::parse(source_id).map_err(|_| missing())?;
    state.store.read_gateway(application, &id).await?.ok_or_else(missing)
}
