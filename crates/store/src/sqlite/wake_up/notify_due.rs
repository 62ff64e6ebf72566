//! Tells the worker of this process that something is due.

use crate::wake_up::DueSignal;

pub(in crate::sqlite) fn notify_due(signal: &DueSignal) {
    signal.raise();
}
