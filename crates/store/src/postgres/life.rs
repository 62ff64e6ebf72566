//! How endpoints do.

mod read_lives;

use async_trait::async_trait;
use domain::id::EndpointKey;

use super::PostgresStore;
use crate::StoreError;
use crate::life::{Life, Lives};

#[async_trait]
impl Lives for PostgresStore {
    async fn read_lives(&self, endpoints: &[EndpointKey]) -> Result<Vec<Life>, StoreError> {
        read_lives::read_lives(&self.general, endpoints).await
    }
}
