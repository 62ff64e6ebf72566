//! Where a delivery may go: the policy on URLs and on IP addresses, as pure predicates.
//!
//! Endpoint URLs come from strangers, so a worker must not be talked into requests to its own
//! network (Standard Webhooks, "Server side request forgery"). Two checks share one
//! [`AddressPolicy`], and both fail closed:
//!
//! 1. [`DestinationUrl::parse`] reads the text once, refuses what could be read in two ways, and
//!    checks a literal address after canonicalisation. What it holds is what is stored and sent to.
//! 2. [`AddressPolicy::check_resolved`] checks every address that a name resolved to, immediately
//!    before the connection to one of them. It is the authority: a name proves nothing.
//!
//! Resolving and connecting are the worker's part.

mod address;
mod only_networks;
mod url;

pub use self::address::{AddressPolicy, RefusedAddress, RefusedResolution};
pub use self::only_networks::{ONLY_NETWORKS_MAX, OnlyNetworks, OnlyNetworksError};
pub use self::url::{BLOCKED_PORTS, DestinationError, DestinationUrl, URL_BYTES_MAX};
