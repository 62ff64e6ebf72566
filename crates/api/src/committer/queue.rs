//! What waits for a flush, and which flush may begin. Pure.

use std::collections::VecDeque;

use super::CommitLimits;

/// Items in the order of their arrival.
#[derive(Debug)]
pub(super) struct Queue<T> {
    limits: CommitLimits,
    waiting: VecDeque<(T, usize)>,
    waiting_bytes: usize,
    /// Flushes under way. While something waits, these are as many as there may be.
    flushing: usize,
}

/// The queue takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl<T> Queue<T> {
    pub(super) fn new(limits: CommitLimits) -> Self {
        Self { limits, waiting: VecDeque::new(), waiting_bytes: 0, flushing: 0 }
    }

    /// Lets an item in. If a flush is free, it begins with the batch that is answered.
    pub(super) fn enter(&mut self, item: T, bytes: usize) -> Result<Option<Vec<T>>, Full> {
        let is_alone = self.waiting.is_empty();
        let has_room = self.waiting.len() < self.limits.queue_rows_max
            && self.waiting_bytes.saturating_add(bytes) <= self.limits.queue_bytes_max;
        if !is_alone && !has_room {
            return Err(Full);
        }
        self.waiting.push_back((item, bytes));
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        if self.flushing >= self.limits.flushes_max.max(1) {
            return Ok(None);
        }
        self.flushing += 1;
        Ok(Some(self.take()))
    }

    /// A flush has ended. It goes on with the batch that is answered, or is free.
    pub(super) fn next(&mut self) -> Option<Vec<T>> {
        if self.waiting.is_empty() {
            self.flushing = self.flushing.saturating_sub(1);
            return None;
        }
        Some(self.take())
    }

    /// As many from the front as one flush holds, at least one.
    fn take(&mut self) -> Vec<T> {
        let (mut batch, mut batch_bytes) = (Vec::new(), 0_usize);
        while let Some((_, bytes)) = self.waiting.front() {
            let with_it = batch_bytes.saturating_add(*bytes);
            let has_room =
                batch.len() < self.limits.flush_rows_max && with_it <= self.limits.flush_bytes_max;
            if !batch.is_empty() && !has_room {
                break;
            }
            let Some((item, bytes)) = self.waiting.pop_front() else { break };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            batch_bytes = with_it;
            batch.push(item);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: CommitLimits = CommitLimits {
        flush_rows_max: 3,
        flush_bytes_max: 10,
        queue_rows_max: 5,
        queue_bytes_max: 20,
        flushes_max: 2,
    };

    #[test]
    fn a_lone_item_is_flushed_at_once_and_what_comes_meanwhile_forms_the_next_flush() {
        let mut queue = Queue::new(CommitLimits { flushes_max: 1, ..LIMITS });
        assert_eq!(queue.enter('a', 1), Ok(Some(vec!['a'])));
        for item in ['b', 'c', 'd', 'e'] {
            assert_eq!(queue.enter(item, 1), Ok(None));
        }
        assert_eq!(queue.next(), Some(vec!['b', 'c', 'd']));
        assert_eq!(queue.next(), Some(vec!['e']));
        assert_eq!(queue.next(), None);
        assert_eq!(queue.enter('f', 1), Ok(Some(vec!['f'])));
    }

    #[test]
    fn an_item_that_is_larger_than_a_flush_or_the_queue_goes_alone() {
        let mut queue = Queue::new(CommitLimits { flushes_max: 1, ..LIMITS });
        assert_eq!(queue.enter('a', 1), Ok(Some(vec!['a'])));
        assert_eq!(queue.enter('b', 99), Ok(None));
        assert_eq!(queue.enter('c', 1), Err(Full));
        assert_eq!(queue.next(), Some(vec!['b']));
        assert_eq!(queue.enter('c', 1), Ok(None));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Enter(usize),
        End,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![3 => (0..15_usize).prop_map(Step::Enter), 1 => Just(Step::End)];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn all_that_is_let_in_is_flushed_once_in_order_and_within_the_limits(steps in steps()) {
            let mut queue = Queue::new(LIMITS);
            let (mut entered, mut flushed) = (Vec::new(), Vec::new());
            let mut open = 0;
            let mut take = |batch: Vec<(usize, usize)>| {
                let bytes: usize = batch.iter().map(|(_, bytes)| bytes).sum();
                assert!((1..=3).contains(&batch.len()));
                assert!(batch.len() == 1 || bytes <= 10);
                flushed.extend(batch.into_iter().map(|(number, _)| number));
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Enter(bytes) => match queue.enter((number, bytes), bytes) {
                        Ok(batch) => {
                            entered.push(number);
                            if let Some(batch) = batch {
                                open += 1;
                                take(batch);
                            }
                        }
                        Err(Full) => assert!(open == 2 && queue.waiting.len() > 1
                            || queue.waiting_bytes + bytes > 20),
                    },
                    Step::End if open > 0 => match queue.next() {
                        Some(batch) => take(batch),
                        None => open -= 1,
                    },
                    Step::End => {}
                }
                assert!(open <= 2);
                assert!(queue.waiting.is_empty() || open == 2, "something waits beside a free flush");
                assert!(queue.waiting.len() <= 5);
            }
            while open > 0 {
                match queue.next() {
                    Some(batch) => take(batch),
                    None => open -= 1,
                }
            }
            prop_assert_eq!(flushed, entered);
        }
    }
}
