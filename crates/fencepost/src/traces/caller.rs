//! Where a caller stands in a trace of its own: the header `traceparent` of W3C Trace Context.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The length of version 00. A later one may go on behind a hyphen.
const LENGTH: usize = 55;

/// The caller's span. Whether it is told of too is not asked: that is for the caller's own side.
pub(super) fn parse(traceparent: &str) -> Option<SpanContext> {
    let (known, rest) = traceparent.split_at_checked(LENGTH)?;
    let mut parts = known.split('-');
    let mut next = |length: usize| {
        parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex))
    };
    let (version, trace, span, _flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
    let ends_well = match version {
        "ff" => false,
        "00" => rest.is_empty(),
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let trace = TraceId::from_hex(trace).ok().filter(|id| *id != TraceId::INVALID)?;
    let span = SpanId::from_hex(span).ok().filter(|id| *id != SpanId::INVALID)?;
    ends_well.then(|| SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::NONE))
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_callers_span_is_taken_whether_it_is_sampled_or_not() {
        for given in [
            GIVEN.to_owned(),
            GIVEN.replace("-01", "-00"),
            GIVEN.replacen("00-", "01-", 1),
            format!("{}-more", GIVEN.replacen("00-", "cc-", 1)),
        ] {
            let caller = parse(&given).unwrap();
            assert_eq!(caller.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(caller.span_id().to_string(), "00f067aa0ba902b7");
        }
    }

    #[test]
    fn what_is_no_span_of_a_caller_is_passed_over() {
        for given in [
            String::new(),
            GIVEN.to_uppercase(),
            format!("{GIVEN}-more"),
            format!("{GIVEN} "),
            GIVEN.replacen("00-", "ff-", 1),
            format!("{}more", GIVEN.replacen("00-", "cc-", 1)),
            GIVEN.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GIVEN.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GIVEN.replace("00f067aa0ba902b7", "+0f067aa0ba902b7"),
            GIVEN.replace('-', "_"),
            "é".repeat(28),
            GIVEN[..54].to_owned(),
        ] {
            assert_eq!(parse(&given), None, "{given}");
        }
    }
}
