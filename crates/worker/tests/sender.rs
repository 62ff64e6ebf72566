//! One request against receivers that misbehave in every way, each a raw socket on loopback.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in what it shares")]

mod sender {
    mod answers;
    mod destinations;
    mod names;
    mod receiver;
    mod silence;
    mod tls;
}
