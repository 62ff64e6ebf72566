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
    /// Those of them that take long.
    slow: usize,
}

/// The queue takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl<T> Queue<T> {
    pub(super) fn new(limits: CommitLimits) -> Self {
        Self { limits, waiting: VecDeque::new(), waiting_bytes: 0, flushing: 0, slow: 0 }
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
        Ok(self.begin())
    }

    /// A flush takes long: one more may begin beside it, with the batch that is answered.
    pub(super) fn slow(&mut self) -> Option<Vec<T>> {
        self.slow += 1;
        self.begin()
    }

    /// A flush has ended. It goes on with the batch that is answered, or is free.
    pub(super) fn next(&mut self, was_slow: bool) -> Option<Vec<T>> {
        self.slow = self.slow.saturating_sub(usize::from(was_slow));
        self.flushing = self.flushing.saturating_sub(1);
        self.begin()
    }

    /// The batch of one more flush, if something waits and there may be one.
    fn begin(&mut self) -> Option<Vec<T>> {
        if self.waiting.is_empty() || self.flushing >= self.flushes_allowed() {
            return None;
        }
        self.flushing += 1;
        Some(self.take())
    }

    /// One, and one more beside each that is slow and for each that could be filled.
    fn flushes_allowed(&self) -> usize {
        let full = self.waiting.len() / self.limits.flush_rows_max.max(1);
        (1 + self.slow + full).min(self.limits.flushes_max.max(1))
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
        assert_eq!(queue.next(false), Some(vec!['b', 'c', 'd']));
        assert_eq!(queue.next(false), Some(vec!['e']));
        assert_eq!(queue.next(false), None);
        assert_eq!(queue.enter('f', 1), Ok(Some(vec!['f'])));
    }

    #[test]
    fn an_item_that_is_larger_than_a_flush_or_the_queue_goes_alone() {
        let mut queue = Queue::new(CommitLimits { flushes_max: 1, ..LIMITS });
        assert_eq!(queue.enter('a', 1), Ok(Some(vec!['a'])));
        assert_eq!(queue.enter('b', 99), Ok(None));
        assert_eq!(queue.enter('c', 1), Err(Full));
        assert_eq!(queue.next(false), Some(vec!['b']));
        assert_eq!(queue.enter('c', 1), Ok(None));
    }

    #[test]
    fn one_flush_is_enough_until_it_is_slow_or_another_would_be_full() {
        let mut queue = Queue::new(LIMITS);
        assert_eq!(queue.enter('a', 1), Ok(Some(vec!['a'])));
        assert_eq!(queue.enter('b', 1), Ok(None));
        assert_eq!(queue.enter('c', 1), Ok(None));
        assert_eq!(queue.enter('d', 1), Ok(Some(vec!['b', 'c', 'd'])));
        assert_eq!(queue.enter('e', 1), Ok(None));
        assert_eq!(queue.next(false), None);
        assert_eq!(queue.slow(), Some(vec!['e']));
        assert_eq!(queue.enter('f', 1), Ok(None));
        assert_eq!(queue.next(false), Some(vec!['f']));
        assert_eq!(queue.next(true), None);
        assert_eq!(queue.next(false), None);
        assert_eq!(queue.enter('g', 1), Ok(Some(vec!['g'])));
        assert_eq!(queue.enter('h', 1), Ok(None));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Enter(usize),
        Slow,
        End,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..15_usize).prop_map(Step::Enter),
            1 => Just(Step::Slow),
            2 => Just(Step::End),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn all_that_is_let_in_is_flushed_once_in_order_and_within_the_limits(steps in steps()) {
            let mut queue = Queue::new(LIMITS);
            let (mut entered, mut flushed) = (Vec::new(), Vec::new());
            let (mut open, mut slow) = (0_usize, 0_usize);
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
                    Step::Slow if open > slow => {
                        slow += 1;
                        if let Some(batch) = queue.slow() {
                            open += 1;
                            take(batch);
                        }
                    }
                    Step::End if open > 0 => {
                        let was_slow = slow == open;
                        slow -= usize::from(was_slow);
                        match queue.next(was_slow) {
                            Some(batch) => take(batch),
                            None => open -= 1,
                        }
                    }
                    Step::Slow | Step::End => {}
                }
                let allowed = if slow > 0 || queue.waiting.len() >= 3 { 2 } else { 1 };
                assert!(open <= 2);
                assert!(queue.waiting.is_empty() || open >= allowed, "something waits beside a free flush");
                assert!(queue.waiting.len() <= 5);
            }
            while open > 0 {
                match queue.next(false) {
                    Some(batch) => take(batch),
                    None => open -= 1,
                }
            }
            prop_assert_eq!(flushed, entered);
        }
    }
}
