//! Nobody else serves the file, so there is nobody to listen to.

use crate::StoreError;
use crate::wake_up::Listening;

pub(in crate::sqlite) async fn listen() -> Result<Listening, StoreError> {
    std::future::pending().await
}
