//! The numbers that stand for names in the tables. Added to, never changed.

use domain::delivery::{CancelReason, Failure, FailureReason, Outcome, StateName};
use domain::endpoint::circuit::OpenCause;
use domain::endpoint::{DisabledCause, Signal, SigningSchemes};
use domain::signing::Scheme;

use crate::api_key::Role;
use crate::rate_limit::Limiter;

/// The number of a state.
#[must_use]
pub fn of_state(state: StateName) -> i16 {
    match state {
        StateName::Pending => 1,
        StateName::Processing => 2,
        StateName::Failed => 3,
        StateName::Delivered => 4,
        StateName::Cancelled => 5,
        StateName::Expired => 6,
    }
}

/// The state of a number.
#[must_use]
pub fn state(code: i16) -> Option<StateName> {
    StateName::ALL.into_iter().find(|state| of_state(*state) == code)
}

/// The number of a failure's reason.
#[must_use]
pub fn of_failure_reason(reason: FailureReason) -> i16 {
    match reason {
        FailureReason::AttemptsExhausted => 1,
        FailureReason::Gone => 2,
        FailureReason::FinalStatus => 3,
        FailureReason::Abandoned => 4,
        FailureReason::HeldTooLong => 5,
    }
}

/// The failure's reason of a number.
#[must_use]
pub fn failure_reason(code: i16) -> Option<FailureReason> {
    FailureReason::ALL.into_iter().find(|reason| of_failure_reason(*reason) == code)
}

/// The number of a cancellation's reason.
#[must_use]
pub fn of_cancel_reason(reason: CancelReason) -> i16 {
    match reason {
        CancelReason::Operator => 21,
        CancelReason::EndpointDeleted => 22,
        CancelReason::PayloadErased => 23,
        CancelReason::MarkedSent => 24,
    }
}

/// The cancellation's reason of a number.
#[must_use]
pub fn cancel_reason(code: i16) -> Option<CancelReason> {
    CancelReason::ALL.into_iter().find(|reason| of_cancel_reason(*reason) == code)
}

/// The number of an outcome: 1 for any answer, else that of its failure.
#[must_use]
pub fn of_outcome(outcome: &Outcome) -> i16 {
    match outcome {
        Outcome::Answered { .. } => 1,
        Outcome::Unanswered(failure) => of_failure(*failure),
    }
}

fn of_failure(failure: Failure) -> i16 {
    match failure {
        Failure::TimedOut => 2,
        Failure::ConnectTimedOut => 3,
        Failure::ConnectFailed => 4,
        Failure::DnsFailed => 5,
        Failure::TlsFailed => 6,
        Failure::ConnectionClosed => 7,
        Failure::ResponseInvalid => 8,
        Failure::AddressRefused => 9,
        Failure::Unsendable => 10,
    }
}

/// The name of an outcome's number.
#[must_use]
pub fn outcome_name(code: i16) -> Option<&'static str> {
    if code == 1 {
        return Some("answered");
    }
    Failure::ALL.into_iter().find(|failure| of_failure(*failure) == code).map(Failure::as_str)
}

/// The number of a cause for disabling.
#[must_use]
pub fn of_disabled_cause(cause: DisabledCause) -> i16 {
    match cause {
        DisabledCause::Operator => 1,
        DisabledCause::Gone => 2,
        DisabledCause::Failing => 3,
    }
}

/// The cause for disabling of a number.
#[must_use]
pub fn disabled_cause(code: i16) -> Option<DisabledCause> {
    DisabledCause::ALL.into_iter().find(|cause| of_disabled_cause(*cause) == code)
}

/// The number of what a result tells of its endpoint.
#[must_use]
pub fn of_signal(signal: Signal) -> i16 {
    match signal {
        Signal::Nothing => 0,
        Signal::Succeeded => 1,
        Signal::Failed => 2,
    }
}

/// The number of what opened a circuit.
#[must_use]
pub fn of_open_cause(cause: OpenCause) -> i16 {
    match cause {
        OpenCause::InARow => 1,
        OpenCause::Share => 2,
    }
}

/// What opened a circuit, by its number.
#[must_use]
pub fn open_cause(code: i16) -> Option<OpenCause> {
    OpenCause::ALL.into_iter().find(|cause| of_open_cause(*cause) == code)
}

/// The number of a scheme. [`of_signing`] is the sum of those in use, and statements depend on that.
#[must_use]
pub fn of_scheme(scheme: Scheme) -> i16 {
    match scheme {
        Scheme::V1 => 1,
        Scheme::V1a => 2,
    }
}

/// The scheme of a number.
#[must_use]
pub fn scheme(code: i16) -> Option<Scheme> {
    Scheme::ALL.into_iter().find(|scheme| of_scheme(*scheme) == code)
}

/// The number of an endpoint's signature schemes.
#[must_use]
pub fn of_signing(schemes: SigningSchemes) -> i16 {
    match schemes {
        SigningSchemes::V1 => 1,
        SigningSchemes::V1a => 2,
        SigningSchemes::Both => 3,
    }
}

/// The signature schemes of a number.
#[must_use]
pub fn signing(code: i16) -> Option<SigningSchemes> {
    SigningSchemes::ALL.into_iter().find(|schemes| of_signing(*schemes) == code)
}

/// The number of a role.
#[must_use]
pub fn of_role(role: Role) -> i16 {
    match role {
        Role::Admin => 1,
        Role::Publish => 2,
        Role::Read => 3,
    }
}

/// The role of a number.
#[must_use]
pub fn role(code: i16) -> Option<Role> {
    Role::ALL.into_iter().find(|role| of_role(*role) == code)
}

/// The number of a limiter.
#[must_use]
pub fn of_limiter(limiter: Limiter) -> i16 {
    match limiter {
        Limiter::Source => 1,
        Limiter::Endpoint => 2,
        Limiter::Key => 3,
        Limiter::Refusals => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_leads_back_to_its_name() {
        for s in StateName::ALL {
            assert_eq!(state(of_state(s)), Some(s));
        }
        for r in FailureReason::ALL {
            assert_eq!(failure_reason(of_failure_reason(r)), Some(r));
            assert_eq!(cancel_reason(of_failure_reason(r)), None);
        }
        for r in CancelReason::ALL {
            assert_eq!(cancel_reason(of_cancel_reason(r)), Some(r));
            assert_eq!(failure_reason(of_cancel_reason(r)), None);
        }
        for f in Failure::ALL {
            assert_eq!(outcome_name(of_failure(f)), Some(f.as_str()));
        }
        assert_eq!(outcome_name(1), Some("answered"));
        for s in SigningSchemes::ALL {
            assert_eq!(signing(of_signing(s)), Some(s));
        }
        for c in DisabledCause::ALL {
            assert_eq!(disabled_cause(of_disabled_cause(c)), Some(c));
        }
        for c in OpenCause::ALL {
            assert_eq!(open_cause(of_open_cause(c)), Some(c));
        }
        for r in Role::ALL {
            assert_eq!(role(of_role(r)), Some(r));
        }
        for s in SigningSchemes::ALL {
            assert_eq!(signing(of_signing(s)), Some(s));
            for one in Scheme::ALL {
                assert_eq!(scheme(of_scheme(one)), Some(one));
                assert_eq!(of_signing(s) & of_scheme(one) != 0, one.is_used_by(s));
            }
        }
        for number in [0, -1, 99] {
            assert!(signing(number).is_none());
            assert!(state(number).is_none() && outcome_name(number).is_none());
        }
    }
}
