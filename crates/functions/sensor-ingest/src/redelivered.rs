//! What is remembered of batches that RabbitMQ delivers again.
//!
//! A batch of Amazon MQ is delivered again as a whole when one message of it failed. Without a time of
//! the sensor's own, a message is ordered by its arrival, and would be newer the second time: what it did
//! to the state would be done again after what came behind it, and be told to clients as changes. So the
//! first arrival is remembered until the batch is through. There is one instance per such queue, so it
//! is nearly always the same one; where it is not, a state may flicker, and ends right.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

/// Messages that are remembered at most: several of the largest batches.
const MESSAGES: usize = 50_000;

/// First arrivals of messages that were not settled, by the message's id.
#[derive(Debug, Default)]
pub(crate) struct Redelivered(Mutex<HashMap<String, VecDeque<Timestamp>>>);

impl Redelivered {
    /// When a message first arrived. Messages that nothing tells apart come back in the order they had.
    pub(crate) fn first_arrival(&self, id: &str) -> Option<Timestamp> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let arrivals = known.get_mut(id)?;
        let first = arrivals.pop_front();
        if arrivals.is_empty() {
            known.remove(id);
        }
        first
    }

    /// These will come back.
    pub(crate) fn remember<'a>(&self, messages: impl Iterator<Item = (&'a str, Timestamp)>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MESSAGES {
            known.clear();
        }
        for (id, arrived) in messages {
            known.entry(id.to_owned()).or_default().push_back(arrived);
        }
    }
}
