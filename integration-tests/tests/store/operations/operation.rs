//! What is drawn: operations that name what they are about by its place among what there is by then.

use proptest::prelude::*;

/// One operation, before it is known what it is about. A place counts round, and 0 is the likeliest.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Accept {
        endpoint: Place,
        key: Option<u8>,
        content: u8,
        copies: u8,
    },
    /// The last call once more: its answer was lost.
    AcceptAgain,
    Claim {
        endpoints: Endpoints,
        per_endpoint: u32,
        total: u32,
        sweep: bool,
    },
    FindDue,
    Record {
        claims: Vec<Place>,
        answer: Answered,
    },
    GiveBack {
        claims: Vec<Place>,
    },
    EndLease(Place),
    MakeDue(Place),
    AgeLapses(Place),
    AgeLife {
        endpoint: Place,
        age: AgeLife,
    },
    ExpireKey(Place),
    Replay(Place),
    Cancel(Place),
    Erase(Place),
    Resend {
        delivery: Place,
        key: Option<u8>,
    },
    Patch {
        endpoint: Place,
        change: Change,
    },
    Pause(Place),
    Enable(Place),
    /// A worker had a 410. It read the endpoint before its last change, if `stale`.
    Disable {
        endpoint: Place,
        stale: bool,
    },
    Delete(Place),
    Maintain(Upkeep),
}

/// What of an endpoint's life is made older, or nearly so far: five days are too long to be drawn, and ten
/// failures in a row too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgeLife {
    /// Its run of failures is some days older.
    Failing,
    /// One more failure opens its circuit.
    NearlyOpen,
    /// The time of its open circuit is over.
    Opening,
}

pub(crate) type Place = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoints {
    One(Place),
    All,
}

/// What a receiver did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    Status(u16),
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    InFlightMax(u16),
    ShortSchedule,
    LongSchedule,
    Enabled(bool),
    CircuitBreaker(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upkeep {
    CancelDeleted,
    CancelRequested,
    FailHeld,
    ExpireFailed,
    ExpireKeys,
    RecountSlots,
    DisableFailing,
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![3 => Just(0), 2 => Just(1), 2 => 0..6_usize]
}

fn key() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![2 => Just(None), 3 => (0..2_u8).prop_map(Some)]
}

fn claims() -> impl Strategy<Value = Vec<Place>> {
    proptest::collection::vec(place(), 1..=3)
}

fn accept() -> impl Strategy<Value = Operation> {
    (0..2_usize, key(), 0..2_u8, 1..=2_u8).prop_map(|(endpoint, key, content, copies)| {
        Operation::Accept { endpoint, key, content, copies }
    })
}

fn claim() -> impl Strategy<Value = Operation> {
    let endpoints =
        prop_oneof![Just(Endpoints::One(0)), Just(Endpoints::One(1)), Just(Endpoints::All)];
    (endpoints, 1..=3_u32, 1..=4_u32, any::<bool>()).prop_map(
        |(endpoints, per_endpoint, total, sweep)| Operation::Claim {
            endpoints,
            per_endpoint,
            total,
            sweep,
        },
    )
}

fn record() -> impl Strategy<Value = Operation> {
    let answer = prop_oneof![
        3 => Just(Answered::Status(204)),
        4 => Just(Answered::Status(500)),
        1 => Just(Answered::Status(410)),
        1 => Just(Answered::Status(404)),
        1 => Just(Answered::Status(503)),
        1 => Just(Answered::TimedOut),
    ];
    (claims(), answer).prop_map(|(claims, answer)| Operation::Record { claims, answer })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (1..=3_u16).prop_map(Change::InFlightMax),
        Just(Change::ShortSchedule),
        Just(Change::LongSchedule),
        any::<bool>().prop_map(Change::Enabled),
        any::<bool>().prop_map(Change::CircuitBreaker),
    ]
}

fn upkeep() -> impl Strategy<Value = Upkeep> {
    prop_oneof![
        Just(Upkeep::CancelDeleted),
        Just(Upkeep::CancelRequested),
        Just(Upkeep::FailHeld),
        Just(Upkeep::ExpireFailed),
        Just(Upkeep::ExpireKeys),
        Just(Upkeep::RecountSlots),
        Just(Upkeep::DisableFailing),
    ]
}

fn age_life() -> impl Strategy<Value = AgeLife> {
    prop_oneof![Just(AgeLife::Failing), Just(AgeLife::NearlyOpen), Just(AgeLife::Opening)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let endpoint = || 0..2_usize;
    prop_oneof![
        12 => accept(),
        2 => Just(Operation::AcceptAgain),
        18 => claim(),
        3 => Just(Operation::FindDue),
        16 => record(),
        4 => claims().prop_map(|claims| Operation::GiveBack { claims }),
        14 => place().prop_map(Operation::EndLease),
        9 => place().prop_map(Operation::MakeDue),
        4 => place().prop_map(Operation::AgeLapses),
        8 => (endpoint(), age_life())
            .prop_map(|(endpoint, age)| Operation::AgeLife { endpoint, age }),
        2 => place().prop_map(Operation::ExpireKey),
        5 => place().prop_map(Operation::Replay),
        4 => place().prop_map(Operation::Cancel),
        2 => place().prop_map(Operation::Erase),
        3 => (place(), key()).prop_map(|(delivery, key)| Operation::Resend { delivery, key }),
        3 => (endpoint(), change())
            .prop_map(|(endpoint, change)| Operation::Patch { endpoint, change }),
        2 => endpoint().prop_map(Operation::Pause),
        3 => endpoint().prop_map(Operation::Enable),
        2 => (endpoint(), any::<bool>())
            .prop_map(|(endpoint, stale)| Operation::Disable { endpoint, stale }),
        1 => endpoint().prop_map(Operation::Delete),
        8 => upkeep().prop_map(Operation::Maintain),
    ]
}

pub(crate) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    proptest::collection::vec(operation(), 1..=40)
}
