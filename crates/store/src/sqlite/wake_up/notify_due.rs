//! Tells the worker of this process that something is due.

use domain::id::EndpointKey;

use crate::wake_up::DueSignal;

pub(in crate::sqlite) fn notify_due(signal: &DueSignal, endpoints: &[EndpointKey]) {
    signal.raise(endpoints);
}
