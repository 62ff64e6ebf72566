//! What is asked before a submission is taken in.

mod admit;

use async_trait::async_trait;

use super::{PostgresStore, rate_limit};
use crate::StoreError;
use crate::admission::{Admission, AdmissionRequest, Admissions, Budgets};
use crate::rate_limit::{Reservation, Reserved};

#[async_trait]
impl Admissions for PostgresStore {
    async fn admit(
        &self,
        requests: &[AdmissionRequest],
        budgets: Budgets,
    ) -> Result<Vec<Admission>, StoreError> {
        admit::admit(&self.general, requests, budgets).await
    }

    async fn reserve(&self, reservations: &[Reservation]) -> Result<Vec<Reserved>, StoreError> {
        rate_limit::reserve::reserve(&self.general, reservations).await
    }
}
