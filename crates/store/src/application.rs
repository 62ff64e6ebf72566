//! Applications: tenants, who own endpoints and keys.

use domain::id::{ApplicationKey, PublicId};
use domain::label::Label;
use time::OffsetDateTime;

/// An application to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApplication {
    /// Its internal identity.
    pub key: ApplicationKey,
    /// Its id, which no other application has or had.
    pub id: PublicId,
    /// A label for people.
    pub name: Label,
}

/// A stored application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Its internal identity.
    pub key: ApplicationKey,
    /// Its public id.
    pub id: String,
    /// A label for people.
    pub name: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// What became of an application to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplicationCreation {
    /// It is stored.
    Created(Application),
    /// Another has, or once had, its id. Nothing is stored.
    IdTaken,
}
