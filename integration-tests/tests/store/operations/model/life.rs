//! What results come to: the domain's own functions, on what is recorded together.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::endpoint::circuit::{Circuit, Counts, IN_A_ROW_MAX};
use domain::endpoint::{Failing, Signal, Tally};
use domain::id::EndpointKey;
use store::delivery::{Recording, Report};

use super::super::operation::AgeLife;
use super::Model;

impl Model {
    pub(super) fn count(&mut self, reports: &[Report], recordings: &[Recording]) {
        let fenced = reports.iter().zip(recordings);
        let fenced = fenced.filter(|(_, it)| matches!(it, Recording::Fenced(_)));
        let fenced: Vec<&Report> = fenced.map(|(report, _)| report).collect();
        let endpoints: BTreeSet<EndpointKey> = fenced.iter().map(|it| it.endpoint).collect();
        for key in endpoints {
            let Some(endpoint) = self.endpoints.get_mut(&key) else { continue };
            let (mut tally, mut probe) = (Tally::default(), None);
            let of_it = fenced.iter().filter(|it| it.endpoint == key);
            for report in of_it.filter(|it| it.version >= endpoint.counts_from) {
                let signal = Signal::of(&report.outcome);
                tally.count(signal);
                if matches!(endpoint.circuit, Circuit::Open(it) if it.probe == Some(report.token)) {
                    probe = Some(signal);
                }
            }
            endpoint.failing = Failing::after(endpoint.failing, tally, self.now);
            if endpoint.settings.circuit_breaker() {
                endpoint.circuit.record(tally, probe, self.now);
            }
        }
    }

    pub(crate) fn age_life(&mut self, key: EndpointKey, age: AgeLife) {
        let Some(endpoint) = self.endpoints.get_mut(&key) else { return };
        match (age, &mut endpoint.circuit) {
            (AgeLife::Failing, _) => {
                if let Some(run) = &mut endpoint.failing {
                    run.since -= AgeLife::FAILING;
                    run.last -= AgeLife::FAILING / 5;
                }
            }
            (AgeLife::NearlyOpen, Circuit::Closed(counts)) => {
                *counts = Counts { in_a_row: IN_A_ROW_MAX - 1, ..*counts };
            }
            (AgeLife::Opening, Circuit::Open(opening)) => opening.until -= AgeLife::OPENING,
            (AgeLife::NearlyOpen, Circuit::Open(_)) | (AgeLife::Opening, Circuit::Closed(_)) => {}
        }
    }
}

impl AgeLife {
    /// How much older a run of failures becomes; its last failure by a fifth of that.
    pub(crate) const FAILING: Duration = Duration::from_hours(100);
    /// How much earlier an open circuit is open to a probe.
    pub(crate) const OPENING: Duration = Duration::from_hours(1);
}
