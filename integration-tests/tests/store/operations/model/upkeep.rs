//! What maintenance does.

use domain::delivery::{CancelReason, Delivery, NotApplicable};
use domain::endpoint::DisabledCause;

use super::super::operation::Upkeep;
use super::{Model, ModelDelivery, ModelEndpoint, RETENTION};

impl Model {
    /// Answers how much there was to do.
    pub(crate) fn maintain(&mut self, upkeep: Upkeep) -> u64 {
        let now = self.now;
        match upkeep {
            Upkeep::CancelDeleted => self.settle(
                |_, endpoint| endpoint.deleted,
                |it| it.call_off(CancelReason::EndpointDeleted, now),
            ),
            Upkeep::CancelRequested => self.settle(
                |it, _| it.cancel_requested(),
                |it| it.call_off(CancelReason::Operator, now),
            ),
            Upkeep::FailHeld => self.settle(
                |_, endpoint| !endpoint.deleted && !endpoint.is_open(),
                |it| it.give_up_held(RETENTION, now),
            ),
            Upkeep::ExpireFailed => self.settle(|_, _| true, |it| it.expire(now)),
            Upkeep::ExpireKeys => {
                let before = self.keys.len();
                self.keys.retain(|_, key| key.expires_at > now);
                u64::try_from(before - self.keys.len()).unwrap_or(u64::MAX)
            }
            Upkeep::DisableFailing => {
                let is_over = |it: &ModelEndpoint| {
                    !it.deleted
                        && it.disabled.is_none()
                        && it.failing.is_some_and(|it| it.is_over(now))
                };
                let over = self.endpoints.iter().filter(|(_, it)| is_over(it));
                let over: Vec<_> = over.map(|(key, _)| *key).collect();
                for key in &over {
                    self.change(*key, |it| it.disabled = Some(DisabledCause::Failing));
                }
                u64::try_from(over.len()).unwrap_or(u64::MAX)
            }
            // There is never anything to mend.
            Upkeep::RecountSlots => 0,
        }
    }

    fn settle(
        &mut self,
        is_meant: impl Fn(&ModelDelivery, &ModelEndpoint) -> bool,
        event: impl Fn(&mut Delivery) -> Result<(), NotApplicable>,
    ) -> u64 {
        let mut count = 0;
        for it in self.deliveries.values_mut() {
            let Some(endpoint) = self.endpoints.get(&it.endpoint) else { continue };
            let mut delivery = it.delivery.clone();
            if is_meant(it, endpoint) && event(&mut delivery).is_ok() {
                it.write(delivery);
                count += 1;
            }
        }
        count
    }
}
