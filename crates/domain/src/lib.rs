//! The decisions of Fencepost.
//!
//! Everything here is a pure function of its arguments: this crate knows no clock, no randomness, no
//! I/O, no database and no async runtime. The store makes what is decided here durable and settles
//! every race; the api and the worker carry values between the two.
//!
//! | module | decides |
//! | --- | --- |
//! | [`application`], [`endpoint`] | who owns what, and the limits of an endpoint's settings |
//! | [`submission`] | what is an acceptable submission, and when two are the same |
//! | [`delivery`] | the states of a delivery, and what an outcome means for it |
//! | [`destination`] | where a request may go |
//! | [`signing`] | how a request is signed and verified (Standard Webhooks) |
//! | [`receipt`] | what names an inbound event, and when two are copies |
//! | [`source`] | whether an inbound request is its sender's, and which event it brings |
//! | [`rate_limit`] | how many of the reserved units are within a limit |
//! | [`operational`] | what is told of the service itself |
//! | [`health`] | what a database's state means to who runs it |
//! | [`cursor`] | where a list goes on |
//! | [`duration`], [`instant`] | how durations and instants are written |
//! | [`id`], [`label`] | the identifiers of all of these, and what people call them |
#![deny(missing_docs)]

pub mod application;
pub mod cursor;
pub mod delivery;
pub mod destination;
pub mod duration;
pub mod endpoint;
pub mod health;
pub mod id;
pub mod instant;
pub mod label;
pub mod operational;
pub mod rate_limit;
pub mod receipt;
pub mod signing;
pub mod source;
pub mod submission;
