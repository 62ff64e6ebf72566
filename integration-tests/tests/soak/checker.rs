//! What must hold of a history, whatever was killed. Pure, and tested on histories that it must reject.

use std::collections::BTreeMap;

use crate::history::{DeliveryRow, History};

/// A rule that a history breaks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A 202 was sent for what is in neither table.
    Lost { submission: String },
    /// A submission owes other deliveries than its answer named.
    OtherDelivery { submission: String },
    /// It is still owed.
    StillOwed { delivery: String },
    /// It failed, expired or was cancelled, and no reason is kept.
    NoReason { delivery: String },
    /// It is delivered, and the receiver never took it.
    NeverReceived { submission: String },
    /// The receiver took something that nobody submitted.
    Invented { webhook_id: String },
    /// Attempt numbers have a gap or a repeat, or differ from the count.
    Numbers { delivery: String, counted: i32, numbers: Vec<i32> },
    /// More came twice than was in flight when a worker was killed.
    TooManyDuplicates { duplicates: usize, in_flight_at_kills: usize },
    /// A slot is taken by nobody.
    Slots { endpoint: String, in_flight: i32 },
}

const DELIVERED: i16 = 4;
const OWED: [i16; 2] = [1, 2];

/// Every rule that is broken, in no particular order.
pub(crate) fn violations(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let deliveries: BTreeMap<&str, &DeliveryRow> =
        history.deliveries.iter().map(|row| (row.id.as_str(), row)).collect();
    for (submission, ids) in &history.accepted {
        let submission = submission.clone();
        let rows: Vec<_> = ids.iter().filter_map(|id| deliveries.get(id.as_str())).collect();
        if rows.len() < ids.len() || ids.is_empty() {
            found.push(Violation::Lost { submission });
            continue;
        }
        if rows.iter().any(|row| row.submission != submission) {
            found.push(Violation::OtherDelivery { submission });
        } else if rows.iter().any(|row| row.state == DELIVERED)
            && !history.received.contains_key(&submission)
        {
            found.push(Violation::NeverReceived { submission });
        }
    }
    for row in &history.deliveries {
        let delivery = row.id.clone();
        if OWED.contains(&row.state) {
            found.push(Violation::StillOwed { delivery });
        } else if row.state != DELIVERED && row.reason.is_none() {
            found.push(Violation::NoReason { delivery });
        }
        let mut numbers = row.attempts.clone();
        numbers.sort_unstable();
        let gap_free = (1..=row.counted).eq(numbers.iter().copied());
        if !gap_free {
            let (delivery, counted) = (row.id.clone(), row.counted);
            found.push(Violation::Numbers { delivery, counted, numbers });
        }
    }
    let submissions: std::collections::BTreeSet<&str> =
        history.deliveries.iter().map(|row| row.submission.as_str()).collect();
    for webhook_id in history.received.keys().filter(|id| !submissions.contains(id.as_str())) {
        found.push(Violation::Invented { webhook_id: webhook_id.clone() });
    }
    let duplicates = history.duplicates();
    if duplicates > history.in_flight_at_kills {
        let in_flight_at_kills = history.in_flight_at_kills;
        found.push(Violation::TooManyDuplicates { duplicates, in_flight_at_kills });
    }
    for (endpoint, in_flight) in history.in_flight.iter().filter(|(_, count)| **count != 0) {
        found.push(Violation::Slots { endpoint: endpoint.clone(), in_flight: *in_flight });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two submissions, one delivered at once, the other at its second attempt and received twice.
    fn sound() -> History {
        let row = |submission: &str, id: &str, numbers: &[i32]| DeliveryRow {
            id: id.to_owned(),
            submission: submission.to_owned(),
            state: DELIVERED,
            reason: None,
            counted: i32::try_from(numbers.len()).unwrap(),
            attempts: numbers.to_vec(),
        };
        History {
            accepted: [("s1", "d1"), ("s2", "d2")]
                .map(|(s, d)| (s.to_owned(), vec![d.to_owned()]))
                .into(),
            deliveries: vec![row("s1", "d1", &[1]), row("s2", "d2", &[2, 1])],
            received: [("s1", 1), ("s2", 2)].map(|(id, n)| (id.to_owned(), n)).into(),
            in_flight: [("e", 0)].map(|(id, n)| (id.to_owned(), n)).into(),
            in_flight_at_kills: 1,
            kills: BTreeMap::new(),
        }
    }

    fn doctored(change: impl FnOnce(&mut History)) -> Vec<Violation> {
        let mut history = sound();
        change(&mut history);
        violations(&history)
    }

    #[test]
    fn a_sound_history_passes() {
        assert_eq!(violations(&sound()), []);
    }

    #[test]
    fn each_doctored_history_is_rejected_for_what_was_doctored() {
        let lost = doctored(|h| drop(h.deliveries.remove(0)));
        let s1 = || "s1".to_owned();
        assert!(lost.contains(&Violation::Lost { submission: s1() }), "{lost:?}");
        let owed = doctored(|h| h.deliveries[0].state = 2);
        assert_eq!(owed, [Violation::StillOwed { delivery: "d1".to_owned() }]);
        let silent = doctored(|h| h.deliveries[0].state = 5);
        assert_eq!(silent, [Violation::NoReason { delivery: "d1".to_owned() }]);
        let unseen = doctored(|h| {
            h.received.remove("s1");
        });
        assert_eq!(unseen, [Violation::NeverReceived { submission: s1() }]);
        let other = doctored(|h| h.deliveries[0].submission = "s2".to_owned());
        assert!(other.contains(&Violation::OtherDelivery { submission: s1() }), "{other:?}");
        let invented = doctored(|h| {
            h.received.insert("s3".to_owned(), 1);
        });
        assert_eq!(invented, [Violation::Invented { webhook_id: "s3".to_owned() }]);
        let many = doctored(|h| {
            h.received.insert("s1".to_owned(), 2);
        });
        let too_many = Violation::TooManyDuplicates { duplicates: 2, in_flight_at_kills: 1 };
        assert_eq!(many, [too_many]);
        let taken = doctored(|h| {
            h.in_flight.insert("e".to_owned(), -1);
        });
        assert_eq!(taken, [Violation::Slots { endpoint: "e".to_owned(), in_flight: -1 }]);
        for numbers in [vec![1, 3], vec![1, 1], vec![2], vec![]] {
            let broken = doctored(|h| h.deliveries[1].attempts = numbers.clone());
            assert!(matches!(broken.as_slice(), [Violation::Numbers { .. }]), "{numbers:?}");
        }
    }
}
