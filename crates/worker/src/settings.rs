//! What a worker is told: every queue, buffer and wait of it has a limit here or a constant beside
//! its use.

use std::time::Duration;

use domain::destination::AddressPolicy;
use store::delivery::WORKER_NAME_CHARACTERS_MAX;

/// The settings of one worker.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who it is, in attempts and logs. At most 64 characters; the host's name and the process's id
    /// by default.
    pub name: String,
    /// How many requests are open at once. 1 to 65,535, 1,024 by default.
    ///
    /// A request counts from its claim until its result is recorded: a slow database makes the worker
    /// claim less, it does not make results pile up. An endpoint gets no more places while it holds as
    /// many as are free.
    pub concurrency: u16,
    /// How many deliveries one claim takes at most. From 1, 128 by default.
    pub claim_total: u16,
    /// How many of them are of one endpoint at most. From 1, 16 by default.
    pub claim_per_endpoint: u16,
    /// How often the worker looks for endpoints with something due. 1 ms to 1 h, 200 ms by default;
    /// spread by 20 %, so that several workers do not look together. What is submitted wakes it before;
    /// this is how late a retry can be.
    pub poll_interval: Duration,
    /// How often it looks past the low marks for what committed late. 10 ms to 1 h, 15 s by default.
    pub sweep_interval: Duration,
    /// How many bytes of payloads are in memory at once. From 64 KiB, 32 MiB by default. A payload
    /// that is larger than all of it is sent alone.
    pub payload_memory_bytes: u32,
    /// How many results one statement records at most. From 1, 100 by default.
    pub record_batch_max: u16,
    /// How many results wait to be recorded at most; then the requests' tasks wait. From 1, 256 by
    /// default.
    pub record_queue_max: u16,
    /// How long a stop may take. 100 ms to 5 min, 25 s by default, which is inside the 30 s that
    /// orchestrators grant.
    ///
    /// What is claimed and not sent is given back at once. Requests that are still open, or results
    /// that are still unrecorded at this deadline, are left to their leases.
    pub stop_deadline: Duration,
    /// How long the look-up of a name may take, within the connect deadline. 10 ms to 30 s, 3 s by
    /// default.
    pub dns_deadline: Duration,
    /// How long something may be due with nothing claimed before the worker is not ready any more.
    /// 100 ms to 1 h, 1 min by default.
    pub stalled_after: Duration,
    /// Where requests may go.
    pub address_policy: AddressPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: name_of_this_process(),
            concurrency: 1_024,
            claim_total: 128,
            claim_per_endpoint: 16,
            poll_interval: Duration::from_millis(200),
            sweep_interval: Duration::from_secs(15),
            payload_memory_bytes: 32 * 1024 * 1024,
            record_batch_max: 100,
            record_queue_max: 256,
            stop_deadline: Duration::from_secs(25),
            dns_deadline: Duration::from_secs(3),
            stalled_after: Duration::from_mins(1),
            address_policy: AddressPolicy::default(),
        }
    }
}

impl Settings {
    /// The same settings, each moved to the nearest value within its limits.
    #[must_use]
    pub(crate) fn within_limits(self) -> Self {
        let ms = Duration::from_millis;
        Self {
            name: self.name.chars().take(WORKER_NAME_CHARACTERS_MAX).collect(),
            concurrency: self.concurrency.max(1),
            claim_total: self.claim_total.max(1),
            claim_per_endpoint: self.claim_per_endpoint.max(1),
            poll_interval: self.poll_interval.clamp(ms(1), Duration::from_hours(1)),
            sweep_interval: self.sweep_interval.clamp(ms(10), Duration::from_hours(1)),
            payload_memory_bytes: self.payload_memory_bytes.max(64 * 1024),
            record_batch_max: self.record_batch_max.max(1),
            record_queue_max: self.record_queue_max.max(1),
            stop_deadline: self.stop_deadline.clamp(ms(100), Duration::from_mins(5)),
            dns_deadline: self.dns_deadline.clamp(ms(10), Duration::from_secs(30)),
            stalled_after: self.stalled_after.clamp(ms(100), Duration::from_hours(1)),
            address_policy: self.address_policy,
        }
    }
}

/// The host's name and the process's id: what a person needs to find the process.
fn name_of_this_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "worker",
        name => name,
    };
    let id = format!("-{}", std::process::id());
    let room = WORKER_NAME_CHARACTERS_MAX.saturating_sub(id.chars().count());
    host.chars().take(room).chain(id.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_own_limits() {
        let defaults = format!("{:?}", Settings::default());
        assert_eq!(format!("{:?}", Settings::default().within_limits()), defaults);
    }

    #[test]
    fn nothing_can_be_set_to_zero_or_without_a_limit() {
        let settings = Settings {
            name: "x".repeat(100),
            concurrency: 0,
            claim_total: 0,
            claim_per_endpoint: 0,
            poll_interval: Duration::ZERO,
            sweep_interval: Duration::MAX,
            payload_memory_bytes: 0,
            record_batch_max: 0,
            record_queue_max: 0,
            stop_deadline: Duration::MAX,
            dns_deadline: Duration::ZERO,
            ..Settings::default()
        }
        .within_limits();
        assert_eq!(settings.name.len(), WORKER_NAME_CHARACTERS_MAX);
        assert_eq!((settings.concurrency, settings.claim_total), (1, 1));
        assert_eq!(settings.poll_interval, Duration::from_millis(1));
        assert_eq!(settings.sweep_interval, Duration::from_hours(1));
        assert_eq!(settings.stop_deadline, Duration::from_mins(5));
    }
}
