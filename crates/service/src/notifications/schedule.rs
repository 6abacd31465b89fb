//! The order of sending: full batches, and never two messages of one key in flight.
//!
//! A batch can fail in part. If two messages of one key went in one batch, the later could arrive and
//! the earlier not; so each batch takes at most one message per key, and a key's next message waits
//! until the one before it was sent or given up. Keys alternate in their original order, which still fills
//! batches as long as no single key has more messages than there are batches.
//!
//! Pure: it returns indices and is informed of results.

use std::collections::{HashMap, VecDeque};

use super::channel::ChannelLimits;

/// Remaining messages of one channel.
#[derive(Debug)]
pub(super) struct Schedule {
    limits: ChannelLimits,
    /// Bytes of each message, by its index.
    bytes: Vec<usize>,
    /// The messages of each key, in order; the first one is next.
    keys: Vec<VecDeque<usize>>,
    /// Keys whose first message may be sent now.
    ready: VecDeque<usize>,
    /// Keys whose first message failed and is to be retried.
    failed: Vec<usize>,
    /// The key of each message.
    key_of: Vec<usize>,
}

impl Schedule {
    /// Creates a schedule from the key and bytes of each message.
    pub(super) fn new<'m>(
        messages: impl Iterator<Item = (&'m str, usize)>,
        limits: ChannelLimits,
    ) -> Schedule {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut schedule = Schedule {
            limits,
            bytes: Vec::new(),
            keys: Vec::new(),
            ready: VecDeque::new(),
            failed: Vec::new(),
            key_of: Vec::new(),
        };
        for (index, (key, bytes)) in messages.enumerate() {
            let key = *numbers.entry(key).or_insert_with(|| {
                schedule.keys.push(VecDeque::new());
                schedule.ready.push_back(schedule.keys.len() - 1);
                schedule.keys.len() - 1
            });
            schedule.keys[key].push_back(index);
            schedule.key_of.push(key);
            schedule.bytes.push(bytes);
        }
        schedule
    }

    /// Returns the next batch; empty if nothing can be sent before failures are retried, or if all is done.
    pub(super) fn next_batch(&mut self) -> Vec<usize> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < self.limits.batch_count
            && let Some(&key) = self.ready.front()
            && let Some(&message) = self.keys[key].front()
        {
            bytes += self.bytes[message];
            if bytes > self.limits.batch_bytes && !batch.is_empty() {
                break;
            }
            self.ready.pop_front();
            batch.push(message);
        }
        batch
    }

    /// Marks a message as sent or given up: the next one of its key may be sent.
    pub(super) fn settled(&mut self, message: usize) {
        let key = self.key_of[message];
        self.keys[key].pop_front();
        if !self.keys[key].is_empty() {
            self.ready.push_back(key);
        }
    }

    /// Marks a message as failed; it stays the next one of its key.
    pub(super) fn failed(&mut self, message: usize) {
        self.failed.push(self.key_of[message]);
    }

    /// Schedules failed messages again, before all others.
    pub(super) fn retry(&mut self) {
        for key in self.failed.drain(..).rev() {
            self.ready.push_front(key);
        }
    }

    pub(super) fn has_failures(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns the messages that were neither sent nor given up.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = usize> {
        self.keys.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages<'k>(keys: &[&'k str]) -> Vec<(&'k str, usize)> {
        keys.iter().map(|key| (*key, 5)).collect()
    }

    fn limits(batch_count: usize, batch_bytes: usize) -> ChannelLimits {
        ChannelLimits {
            batch_count,
            batch_bytes,
            message_bytes: batch_bytes,
        }
    }

    fn drain(schedule: &mut Schedule) -> Vec<Vec<usize>> {
        let mut batches = Vec::new();
        loop {
            let batch = schedule.next_batch();
            if batch.is_empty() {
                return batches;
            }
            batch.iter().for_each(|&message| schedule.settled(message));
            batches.push(batch);
        }
    }

    #[test]
    fn batches_are_full() {
        let keys: Vec<String> = (0..25).map(|n| n.to_string()).collect();
        let messages = messages(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let batches = drain(&mut Schedule::new(
            messages.iter().copied(),
            limits(10, 1000),
        ));
        assert_eq!(
            batches.iter().map(Vec::len).collect::<Vec<_>>(),
            [10, 10, 5]
        );
    }

    #[test]
    fn one_message_per_key_in_a_batch_and_keys_in_order() {
        let messages = messages(&["a", "a", "b", "a", "c", "b"]);
        let batches = drain(&mut Schedule::new(
            messages.iter().copied(),
            limits(10, 1000),
        ));
        assert_eq!(batches, [vec![0, 2, 4], vec![1, 5], vec![3]]);
    }

    #[test]
    fn bytes_split_a_batch_and_one_message_always_fits() {
        let messages = messages(&["a", "b", "c"]);
        assert_eq!(
            drain(&mut Schedule::new(messages.iter().copied(), limits(10, 10))),
            [vec![0, 1], vec![2]]
        );
        assert_eq!(
            drain(&mut Schedule::new(messages.iter().copied(), limits(10, 1))),
            [[0], [1], [2]]
        );
    }

    #[test]
    fn a_failure_holds_its_key_and_nobody_else() {
        let messages = messages(&["a", "b", "a", "b"]);
        let mut schedule = Schedule::new(messages.iter().copied(), limits(10, 1000));
        assert_eq!(schedule.next_batch(), [0, 1]);
        schedule.failed(0);
        schedule.settled(1);
        assert_eq!(schedule.next_batch(), [3]);
        schedule.settled(3);
        assert!(schedule.next_batch().is_empty());
        assert_eq!(schedule.unsettled().collect::<Vec<_>>(), [0, 2]);
        schedule.retry();
        assert_eq!(schedule.next_batch(), [0]);
    }
}
