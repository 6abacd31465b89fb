//! Suspension of registrations whose target keeps failing: the record and its port.
//!
//! After [`FAILED_INVOCATIONS`] failed invocations a registration is *suspended*: its messages go to the spill queue,
//! with one group per registration and key, and delay nobody else. The first message of the queue that arrives makes
//! it *draining*: messages of a key that still has spilled ones go through the queue, all others to the target. The
//! record is removed when no key has spilled messages.
//!
//! Order: a message goes directly to its target only if no earlier message of its registration and key is in the
//! queue. A key is marked before its message is spilled, and the mark names its last message; the record's version
//! changes with every spill, so that it cannot be removed in between. A message whose key has no mark was sent: when
//! the queue delivers it again, it is dropped, since a later one may have been sent directly.

use std::time::Duration;

use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::store::{StoreError, Version};

/// Failed invocations after which a registration is suspended.
pub const FAILED_INVOCATIONS: u32 = 5;
/// Failures that are further apart are counted anew.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(15 * 60);
/// Pause between attempts to send to a suspended target.
pub const RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Time after which a spilled message is given up: it goes to the undeliverable queue. Queues keep messages for
/// two weeks; the messages behind it need time too.
pub const SPILL_TIME: Duration = Duration::from_secs(4 * 24 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuspensionState {
    /// Invocations failed, but fewer than the limit.
    Failing,
    /// All messages are spilled.
    Suspended,
    /// The target works again; keys with spilled messages are still spilled.
    Draining,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub registration: String,
    pub state: SuspensionState,
    /// Number of failed invocations, none further apart than [`FAILURE_WINDOW`].
    pub failures: u32,
    pub failed_at: Timestamp,
    pub version: Version,
}

impl Suspension {
    /// Returns the record after a failed invocation.
    pub fn after_failure(
        previous: Option<&Suspension>,
        registration: &str,
        now: Timestamp,
    ) -> Suspension {
        let recent = previous.filter(|previous| now < previous.failed_at.after(FAILURE_WINDOW));
        let failures = recent.map_or(0, |recent| recent.failures).saturating_add(1);
        let state = previous.map_or(SuspensionState::Failing, |previous| previous.state);
        Suspension {
            registration: registration.to_owned(),
            state: match failures {
                FAILED_INVOCATIONS.. => SuspensionState::Suspended,
                _ => state,
            },
            failures,
            failed_at: now,
            version: previous.map_or(Version::NONE, |previous| previous.version),
        }
    }

    /// Returns the record after a spilled message was sent.
    #[must_use]
    pub fn draining(&self) -> Suspension {
        Suspension {
            state: SuspensionState::Draining,
            failures: 0,
            ..self.clone()
        }
    }

    /// Returns `true` if messages may have to be spilled.
    pub fn suspends(&self) -> bool {
        self.state != SuspensionState::Failing
    }

    /// Returns `true` if an attempt to send failed a moment ago.
    pub fn is_paused(&self, now: Timestamp) -> bool {
        self.state == SuspensionState::Suspended && now < self.failed_at.after(RETRY_PAUSE)
    }
}

/// A registration and key with messages in the spill queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpilledKey {
    pub registration: String,
    /// Identifies the key; short enough for a key of the store.
    pub key: String,
}

/// The records of failing targets and the marks of spilled keys.
///
/// Laws: all reads are consistent. `save` and `remove` apply only to the version that was read, and `touch` only to a
/// record that exists; they return whether they applied. Every one of them that applies changes the version. A mark
/// that is set again names the new message; `clear` removes only the mark that names its message.
#[async_trait]
pub trait Suspensions: Send + Sync {
    async fn all(&self) -> Result<Vec<Suspension>, StoreError>;

    /// Writes a record over the version it carries; version 0 must not exist.
    async fn save(&self, record: &Suspension) -> Result<bool, StoreError>;

    async fn remove(&self, record: &Suspension) -> Result<bool, StoreError>;

    /// Changes the version of a record.
    async fn touch(&self, registration: &str) -> Result<bool, StoreError>;

    /// Marks keys, each with the id of its last message, until a time.
    async fn mark(&self, keys: &[(SpilledKey, String)], until: Timestamp)
    -> Result<(), StoreError>;

    async fn marked(&self, keys: &[SpilledKey], now: Timestamp) -> Result<Vec<bool>, StoreError>;

    /// Clears the mark of a key if it names this message.
    async fn clear(&self, key: &SpilledKey, id: &str) -> Result<(), StoreError>;

    /// Returns `true` if no key of the registration is marked.
    async fn is_drained(&self, registration: &str, now: Timestamp) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i128) -> Timestamp {
        Timestamp::from_nanoseconds(seconds * 1_000_000_000)
    }

    #[test]
    fn five_failures_in_a_row_suspend() {
        let mut record = Suspension::after_failure(None, "r", at(0));
        for n in 2..=5 {
            assert_eq!(record.state, SuspensionState::Failing);
            record = Suspension::after_failure(Some(&record), "r", at(n * 60));
            assert_eq!(i128::from(record.failures), n);
        }
        assert_eq!(record.state, SuspensionState::Suspended);
        assert!(record.is_paused(at(310)) && !record.is_paused(at(330)));
        let draining = record.draining();
        assert_eq!(draining.state, SuspensionState::Draining);
        assert!(!draining.is_paused(at(310)));
        let failed = Suspension::after_failure(Some(&draining), "r", at(400));
        assert_eq!(
            (failed.state, failed.failures),
            (SuspensionState::Draining, 1)
        );
    }

    #[test]
    fn failures_far_apart_are_counted_anew() {
        let record = Suspension::after_failure(None, "r", at(0));
        let next = Suspension::after_failure(Some(&record), "r", at(15 * 60));
        assert_eq!(next.failures, 1);
    }
}
