//! Applications: who owns endpoints and keys.

use uuid::Uuid;

use crate::id::ApplicationKey;

/// The public id of the application that exists from the start.
pub const DEFAULT_APPLICATION_ID: &str = "default";

/// The key of the application that exists from the start, the same in every installation.
pub const DEFAULT_APPLICATION_KEY: ApplicationKey =
    ApplicationKey::from_uuid(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0000));
