//! A queue as SQS keeps one, standard or FIFO. Pure but for chance.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::chance::Chance;

/// Deduplication interval of a FIFO queue.
const DEDUPLICATION: u64 = 5 * 60 * 1000;
/// Number of the oldest messages that a standard queue may deliver in any order.
const DISORDER: usize = 8;

/// A message in a queue. Times are in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) group: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) sent: u64,
    /// Counts the messages of the queue, in order.
    pub(crate) number: u64,
    pub(crate) visible: u64,
    pub(crate) receives: u32,
    pub(crate) receipt: String,
}

/// A message to be sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Incoming {
    pub(crate) body: String,
    pub(crate) group: Option<String>,
    pub(crate) deduplication: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) delay: Duration,
}

/// A queue.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) name: String,
    visibility: u64,
    /// Dead-letter queue and maximum receive count.
    dead_letters: Option<(String, u32)>,
    pub(crate) held: Vec<Held>,
    known: BTreeMap<String, (u64, String)>,
    sent: u64,
    receipts: u64,
}

/// Result of a receive.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) messages: Vec<Held>,
    /// Messages beyond the maximum receive count.
    pub(crate) dead: Vec<Held>,
}

impl Queue {
    pub(crate) fn new(name: &str, visibility: Duration, dead: Option<(&str, u32)>) -> Queue {
        Queue {
            name: name.to_owned(),
            visibility: visibility.as_millis() as u64,
            dead_letters: dead.map(|(name, receives)| (name.to_owned(), receives)),
            held: Vec::new(),
            known: BTreeMap::new(),
            sent: 0,
            receipts: 0,
        }
    }

    pub(crate) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    pub(crate) fn dead_letters(&self) -> Option<&str> {
        self.dead_letters.as_ref().map(|(name, _)| name.as_str())
    }

    /// Takes a message; the id it is known by, which is an earlier one's if it is a duplicate.
    pub(crate) fn send(&mut self, message: Incoming, now: u64) -> String {
        if let Some(deduplication) = &message.deduplication
            && let Some((at, id)) = self.known.get(deduplication)
            && now < at + DEDUPLICATION
        {
            return id.clone();
        }
        self.sent += 1;
        // No two queues have messages of one id.
        let id = format!("{}-{}", self.name.replace('.', "-"), self.sent);
        if let Some(deduplication) = message.deduplication {
            self.known.insert(deduplication, (now, id.clone()));
        }
        self.held.push(Held {
            id: id.clone(),
            body: message.body,
            group: message.group,
            attributes: message.attributes,
            sent: now,
            number: self.sent,
            visible: now + message.delay.as_millis() as u64,
            receives: 0,
            receipt: String::new(),
        });
        id
    }

    /// Puts in what another queue gave up.
    pub(crate) fn bury(&mut self, dead: Held) {
        self.held.push(Held {
            visible: 0,
            receipt: String::new(),
            ..dead
        });
    }

    /// Receives some messages and hides them for the visibility timeout.
    pub(crate) fn receive(&mut self, most: usize, now: u64, chance: &Chance) -> Received {
        let mut received = Received::default();
        while received.messages.len() < most {
            let Some(at) = self.next(now, &received.messages, chance) else {
                break;
            };
            if let Some((_, receives)) = &self.dead_letters
                && self.held[at].receives >= *receives
            {
                received.dead.push(self.held.remove(at));
                continue;
            }
            self.receipts += 1;
            let receipt = format!("r{}", self.receipts);
            let held = &mut self.held[at];
            held.receives += 1;
            held.visible = now + self.visibility;
            held.receipt = receipt;
            received.messages.push(held.clone());
        }
        received
    }

    /// Position of a message that can be received now.
    fn next(&self, now: u64, taken: &[Held], chance: &Chance) -> Option<usize> {
        let mut open = Vec::new();
        let mut held_groups: BTreeSet<&str> = BTreeSet::new();
        for (at, held) in self.held.iter().enumerate() {
            let group = held.group.as_deref().filter(|_| self.is_fifo());
            // A group waits for its messages in flight, but one batch may hold several of a group.
            let with_us = taken.iter().any(|taken| taken.id == held.id);
            let free = held.visible <= now;
            if let Some(group) = group {
                if held_groups.contains(group) {
                    continue;
                }
                if !free {
                    if !with_us {
                        held_groups.insert(group);
                    }
                    continue;
                }
                held_groups.insert(group);
            }
            if free && open.len() < DISORDER {
                open.push(at);
            }
        }
        (!open.is_empty()).then(|| *chance.pick(&open))
    }

    /// Takes a message out, if the receipt is its newest.
    pub(crate) fn delete(&mut self, receipt: &str) {
        self.held.retain(|held| held.receipt != receipt);
    }

    /// Hides a message for another time; whether the receipt is one.
    pub(crate) fn hide(&mut self, receipt: &str, by: Duration, now: u64) -> bool {
        let mut found = self.held.iter_mut().filter(|held| held.receipt == receipt);
        match found.next() {
            Some(held) => {
                held.visible = now + by.as_millis() as u64;
                true
            }
            None => false,
        }
    }

    /// Time at which the next message becomes visible.
    pub(crate) fn next_visible(&self, now: u64) -> Option<u64> {
        let times = self.held.iter().map(|held| held.visible);
        times.filter(|time| *time > now).min()
    }
}
