//! How a claim is cut into reads of payloads.

/// How many bytes of payloads one statement reads, unless one payload alone has more.
const BYTES_MAX: u32 = 4 * 1024 * 1024;

/// How many deliveries the chunks have, in order: each as many as fit.
///
/// `memory_bytes` is what there is for all payloads: half of it for one chunk leaves room for those
/// that are being sent.
pub(super) fn counts(lengths: &[u32], memory_bytes: u32) -> Vec<usize> {
    let bytes_max = BYTES_MAX.min(memory_bytes / 2);
    let mut counts = Vec::new();
    let (mut count, mut bytes) = (0_usize, 0_u32);
    for length in lengths {
        if count > 0 && bytes.saturating_add(*length) > bytes_max {
            counts.push(count);
            (count, bytes) = (0, 0);
        }
        count += 1;
        bytes = bytes.saturating_add(*length);
    }
    if count > 0 {
        counts.push(count);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1024 * 1024;

    #[test]
    fn small_payloads_are_read_at_once() {
        assert_eq!(counts(&[1_024; 128], 32 * MIB), [128]);
        assert_eq!(counts(&[], 32 * MIB), [0; 0]);
        assert_eq!(counts(&[0; 9], 32 * MIB), [9]);
    }

    #[test]
    fn a_chunk_holds_as_much_as_fits_and_a_giant_is_alone() {
        assert_eq!(counts(&[3 * MIB, MIB, 1, 9 * MIB, MIB, MIB], 32 * MIB), [2, 1, 1, 2]);
        assert_eq!(counts(&[u32::MAX, u32::MAX], 32 * MIB), [1, 1]);
        assert_eq!(counts(&[MIB, MIB, MIB], 2 * MIB), [1, 1, 1]);
    }

    #[test]
    fn every_delivery_is_in_a_chunk() {
        for memory in [64 * 1024, MIB, 32 * MIB] {
            let lengths: Vec<u32> = (0..500).map(|n| n * 997 % 300_000).collect();
            assert_eq!(counts(&lengths, memory).iter().sum::<usize>(), lengths.len());
        }
    }
}
