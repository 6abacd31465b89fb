//! Arrival times of batches that RabbitMQ delivers again.
//!
//! When one message of an Amazon MQ batch fails, the whole batch is delivered again. A message without a
//! time of its own is ordered by its arrival. A second arrival would make it newer than the messages that
//! followed it, and clients would be notified of changes that did not happen. So the first arrival is kept
//! until the batch succeeds. Each such queue has one function instance; if the instance changes in between,
//! a state may change back and forth once, and ends correct.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use antumbra_shadow::Timestamp;

/// Maximum number of kept messages: several of the largest batches.
const MAX_MESSAGES: usize = 50_000;

/// First arrivals of unfinished messages by message id.
#[derive(Debug, Default)]
pub(crate) struct Redelivered(Mutex<HashMap<String, VecDeque<Timestamp>>>);

impl Redelivered {
    /// Takes the first arrival of a message. Messages with the same id return in their first order.
    pub(crate) fn first_arrival(&self, id: &str) -> Option<Timestamp> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let arrivals = known.get_mut(id)?;
        let first = arrivals.pop_front();
        if arrivals.is_empty() {
            known.remove(id);
        }
        first
    }

    /// Keeps the arrivals of a batch that will be delivered again.
    pub(crate) fn remember<'a>(&self, messages: impl Iterator<Item = (&'a str, Timestamp)>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MAX_MESSAGES {
            known.clear();
        }
        for (id, arrived) in messages {
            known.entry(id.to_owned()).or_default().push_back(arrived);
        }
    }
}
