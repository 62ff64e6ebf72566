//! Changes of endpoints: the last one stays, and each raises the version.

use domain::endpoint::DisabledCause;
use domain::endpoint::circuit::Circuit;
use domain::id::EndpointKey;
use store::endpoint::EndpointChange;

use super::{Model, ModelEndpoint};

/// What an endpoint looks like after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) disabled: Option<DisabledCause>,
    pub(crate) paused: bool,
    pub(crate) version: i64,
    pub(crate) in_flight_max: u16,
}

impl Model {
    /// Answers none if it is deleted.
    pub(crate) fn change(
        &mut self,
        key: EndpointKey,
        change: impl FnOnce(&mut ModelEndpoint),
    ) -> Option<Changed> {
        let endpoint = self.endpoints.get_mut(&key).filter(|it| !it.deleted)?;
        change(endpoint);
        endpoint.version += 1;
        Some(Changed {
            disabled: endpoint.disabled,
            paused: endpoint.paused,
            version: endpoint.version,
            in_flight_max: endpoint.settings.in_flight_max(),
        })
    }

    pub(crate) fn enable(&mut self, key: EndpointKey) -> Option<Changed> {
        self.change(key, |endpoint| {
            (endpoint.disabled, endpoint.paused) = (None, false);
            endpoint.begin_anew();
        })
    }

    pub(crate) fn patch(&mut self, key: EndpointKey, patch: &EndpointChange) -> Option<Changed> {
        self.change(key, |endpoint| {
            if let Ok(settings) = patch.settings.clone().apply(&endpoint.settings) {
                endpoint.settings = settings;
            }
            let was_disabled = endpoint.disabled.is_some();
            match patch.enabled {
                Some(true) => endpoint.disabled = None,
                Some(false) => {
                    endpoint.disabled = endpoint.disabled.or(Some(DisabledCause::Operator));
                }
                None => {}
            }
            if was_disabled && endpoint.disabled.is_none() {
                endpoint.begin_anew();
            }
            if !endpoint.settings.circuit_breaker() {
                endpoint.circuit = Circuit::default();
            }
        })
    }

    pub(crate) fn disable(&mut self, key: EndpointKey, version: i64) -> bool {
        let is_of_it = |it: &ModelEndpoint| it.version == version && it.disabled.is_none();
        if !self.endpoints.get(&key).is_some_and(is_of_it) {
            return false;
        }
        self.change(key, |endpoint| endpoint.disabled = Some(DisabledCause::Gone)).is_some()
    }

    pub(crate) fn delete(&mut self, key: EndpointKey) -> bool {
        self.change(key, |endpoint| endpoint.deleted = true).is_some()
    }
}

impl ModelEndpoint {
    /// Called while the change is made, of which the version is told after it.
    fn begin_anew(&mut self) {
        self.counts_from = self.version + 1;
        (self.failing, self.circuit) = (None, Circuit::default());
    }
}
