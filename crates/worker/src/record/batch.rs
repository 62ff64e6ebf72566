//! What goes into one statement.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// Takes up to `count_max` entries from the front, no two with the same key: a delivery stands once in
/// a statement. A second one with that key keeps its place for a later batch.
pub(super) fn take_batch<T, K: Hash + Eq>(
    waiting: &mut VecDeque<T>,
    count_max: usize,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut keys = HashSet::new();
    let mut batch = Vec::with_capacity(waiting.len().min(count_max));
    let mut passed_over = VecDeque::new();
    while batch.len() < count_max
        && let Some(entry) = waiting.pop_front()
    {
        if keys.insert(key(&entry)) {
            batch.push(entry);
        } else {
            passed_over.push_back(entry);
        }
    }
    while let Some(entry) = passed_over.pop_back() {
        waiting.push_front(entry);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(waiting: &[u32], count_max: usize) -> Vec<Vec<u32>> {
        let mut waiting: VecDeque<u32> = waiting.iter().copied().collect();
        let mut batches = Vec::new();
        while !waiting.is_empty() {
            batches.push(take_batch(&mut waiting, count_max, |number| number / 10));
        }
        batches
    }

    #[test]
    fn a_batch_takes_what_waits_up_to_its_limit() {
        assert_eq!(batches(&[10, 20, 30, 40, 50], 2), [vec![10, 20], vec![30, 40], vec![50]]);
        assert_eq!(batches(&[10, 20], 100), [[10, 20]]);
    }

    #[test]
    fn a_key_stands_once_in_a_batch_and_keeps_its_order() {
        assert_eq!(batches(&[10, 11, 20, 12, 30], 100), [vec![10, 20, 30], vec![11], vec![12]]);
        assert_eq!(batches(&[10, 11, 20, 21, 30], 2), [vec![10, 20], vec![11, 21], vec![30]]);
    }
}
