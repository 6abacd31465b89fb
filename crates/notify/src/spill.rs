//! The spill queue: the messages of suspended registrations wait there for their target, in order.
//!
//! [`SpillRoute::redirect`] sends them there instead of to their target; [`Listener::handle_spilled`] takes them from
//! there. Undeliverable notifications and positions of discarded records that the HTTP API redrives come the same way. [`suspension`](antumbra_service::notifications::suspension) states when, and why nothing is overtaken.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, time_left};
use antumbra_service::notifications::suspension::{
    SPILL_TIME, SpilledKey, Suspension, SuspensionState, Suspensions,
};
use antumbra_service::notifications::{Channel, DispatchSummary, Envelope, Message, dispatch_with};
use antumbra_service::redrive::RecordRange;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::events::sqs::QueueMessage;
use antumbra_wire::notification::NotificationId;

use crate::Listener;
use crate::listener::{RESPONSE_RESERVE, UNDELIVERABLE_RESERVE};
use crate::plan::Plan;
use crate::retry::with_retries;
use crate::routes::Route;
use crate::undeliverable::{StoredNotification, Undeliverable};

/// Time for spilled messages in one invocation. Failed messages come back with the next receive.
const ATTEMPT_TIME: Duration = Duration::from_secs(5);
/// Time for which a key is marked: as long as a queue keeps a message.
const MARK_TIME: Duration = Duration::from_secs(14 * 24 * 3600);
/// Receives after which records that cannot be handled again go back to the undeliverable queue.
const RECORD_RECEIVES: u32 = 5;
/// Bytes of a spilled message beside the notification and its attributes.
pub(crate) const ENVELOPE_BYTES: usize = 8 * 1024;

/// The spill queue, and the records of failing targets.
#[derive(Clone)]
pub struct Spill {
    pub queue: Arc<dyn Channel>,
    pub suspensions: Arc<dyn Suspensions>,
}

pub(crate) struct SpillRoute {
    /// The index of the spill queue's channel.
    pub(crate) channel: usize,
    pub(crate) suspensions: Arc<dyn Suspensions>,
}

/// The records of failing targets, by registration.
pub(crate) type Records = HashMap<String, Suspension>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpillSummary {
    pub sent: usize,
    pub retried: usize,
    pub undeliverable: usize,
    /// Ids of messages to receive again.
    pub failed: Vec<String>,
}

fn spilled_key(registration: &str, key: &str) -> SpilledKey {
    SpilledKey {
        registration: registration.to_owned(),
        // A key can be longer than the store allows.
        key: NotificationId::new(key, registration, None).to_string(),
    }
}

/// The message group: a name has no `#`.
fn group(registration: &str, key: &str) -> String {
    format!("{registration}#{key}")
}

impl SpillRoute {
    pub(crate) async fn read(
        &self,
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> Result<Records, StoreError> {
        let records = with_retries(deadline, clock, || self.suspensions.all()).await?;
        let by_name = |record: Suspension| (record.registration.clone(), record);
        Ok(records.into_iter().map(by_name).collect())
    }

    /// Redirects messages to the spill queue: those of suspended registrations, and those of draining ones whose key
    /// has spilled messages. If it fails, nothing may be sent.
    pub(crate) async fn redirect(
        &self,
        plan: &mut Plan<'_>,
        registrations: &Registrations,
        unordered: Option<usize>,
        records: &Records,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let mut suspended: HashMap<SpilledKey, Vec<usize>> = HashMap::new();
        let mut draining: HashMap<SpilledKey, Vec<usize>> = HashMap::new();
        for (index, entry) in plan.list.entries().iter().enumerate() {
            let name = plan.name(entry.registration);
            let groups = match records.get(name).map(|record| record.state) {
                Some(SuspensionState::Suspended) => &mut suspended,
                Some(SuspensionState::Draining) => &mut draining,
                Some(SuspensionState::Failing) | None => continue,
            };
            let key = spilled_key(name, plan.list.key(index));
            groups.entry(key).or_default().push(index);
        }
        let mut groups = suspended;
        if !draining.is_empty() {
            let mut names: HashSet<String> = HashSet::new();
            let (keys, indices): (Vec<_>, Vec<_>) = draining.into_iter().unzip();
            let marked = self.suspensions.marked(&keys, now).await?;
            for ((key, indices), marked) in keys.into_iter().zip(indices).zip(marked) {
                names.insert(key.registration.clone());
                if marked {
                    groups.insert(key, indices);
                }
            }
            for record in names.iter().filter_map(|name| records.get(name)) {
                self.remove_if_drained(record, now).await;
            }
        }
        if groups.is_empty() {
            return Ok(0);
        }
        let id = |index: &usize| {
            let message = plan.list.original(*index, registrations);
            // Distinct at every attempt: the queue would drop what it accepted in the last minutes.
            format!("{}-{}", message.id, now.nanoseconds())
        };
        let last = |(key, indices): (&SpilledKey, &Vec<usize>)| {
            Some((key.clone(), indices.last().map(id)?))
        };
        let marks: Vec<(SpilledKey, String)> = groups.iter().filter_map(last).collect();
        self.suspensions.mark(&marks, now.after(MARK_TIME)).await?;
        let names: BTreeSet<&str> = groups.keys().map(|key| &*key.registration).collect();
        for name in names {
            if !self.suspensions.touch(name).await? {
                for (key, id) in marks.iter().filter(|(key, _)| key.registration == name) {
                    self.suspensions.clear(key, id).await?;
                }
                let reason = format!("{name} is not suspended any more");
                return Err(StoreError::Unavailable(reason));
            }
        }
        let spill = |&index| self.spilled(plan, registrations, unordered, index, id(&index));
        let indices = groups.values().flatten();
        let redirected: Vec<(usize, Message)> =
            indices.map(|index| (*index, spill(index))).collect();
        let spilled = redirected.len();
        for (index, message) in redirected {
            plan.list.redirect(index, self.channel, message);
        }
        Ok(spilled)
    }

    fn spilled(
        &self,
        plan: &Plan<'_>,
        registrations: &Registrations,
        unordered: Option<usize>,
        index: usize,
        id: String,
    ) -> Message {
        let entry = plan.list.entry(index);
        let original = plan.list.original(index, registrations);
        let (name, reason) = (plan.name(entry.registration), "the target is suspended");
        let stored = plan.stored(
            entry.record,
            entry.registration,
            &original.key,
            reason.to_owned(),
        );
        let mut stored = stored.with_message(&original);
        stored.spill = Some(id.clone());
        if let Some(envelope) = &mut stored.message {
            envelope.unordered = unordered == Some(entry.channel);
        }
        Message {
            id,
            key: group(name, &original.key),
            body: stored.text(usize::MAX),
            ..Message::default()
        }
    }

    /// Returns those of the keys that have a mark: the others have no message left to send.
    async fn waiting_keys(
        &self,
        marks: &[Option<(SpilledKey, String)>],
        now: Timestamp,
    ) -> Result<HashSet<SpilledKey>, StoreError> {
        let keys = marks.iter().flatten().map(|(key, _)| key.clone());
        let keys: Vec<SpilledKey> = keys.collect::<HashSet<_>>().into_iter().collect();
        let marked = self.suspensions.marked(&keys, now).await?;
        let marked = keys.into_iter().zip(marked).filter(|(_, marked)| *marked);
        Ok(marked.map(|(key, _)| key).collect())
    }

    /// Counts a failed invocation for every registration with messages that a failing channel did not accept.
    pub(crate) async fn count_failures(
        &self,
        plan: &Plan<'_>,
        sent: &DispatchSummary,
        records: &Records,
        now: Timestamp,
    ) {
        let entries = |indices: &[usize]| {
            let entries = indices.iter().map(|&index| plan.list.entry(index));
            entries.filter(|entry| entry.spilled.is_none()).collect()
        };
        let (unsent, failed): (Vec<_>, Vec<_>) = (entries(&sent.unsent), entries(&sent.failed));
        let channels: HashSet<usize> = failed.iter().map(|entry| entry.channel).collect();
        let names = unsent
            .iter()
            .filter(|entry| channels.contains(&entry.channel))
            .map(|entry| plan.name(entry.registration));
        for registration in names.collect::<BTreeSet<_>>() {
            let previous = records.get(registration);
            let record = Suspension::after_failure(previous, registration, now);
            if record.state == SuspensionState::Suspended {
                tracing::error!(registration, "suspended: the target keeps failing");
            }
            self.save(&record).await;
        }
    }

    /// Writes a record; returns the new one if nobody changed it in between.
    async fn save(&self, record: &Suspension) -> Option<Suspension> {
        match self.suspensions.save(record).await {
            Ok(true) => Some(Suspension {
                version: record.version.next(),
                ..record.clone()
            }),
            Ok(false) => None,
            Err(error) => {
                let registration = &record.registration;
                tracing::warn!(registration, %error, "cannot record the state of a target");
                None
            }
        }
    }

    async fn current(&self, registration: &str) -> Option<Suspension> {
        let all = self.suspensions.all().await;
        let all = all.inspect_err(|error| {
            tracing::warn!(registration, %error, "cannot read the state of a target");
        });
        let mut records = all.unwrap_or_default().into_iter();
        records.find(|record| record.registration == registration)
    }

    async fn remove_if_drained(&self, record: &Suspension, now: Timestamp) {
        let registration = &record.registration;
        let removed = match self.suspensions.is_drained(registration, now).await {
            Ok(true) => self.suspensions.remove(record).await,
            Ok(false) => Ok(false),
            Err(error) => Err(error),
        };
        match removed {
            Ok(true) => tracing::info!(registration, "no longer suspended"),
            Ok(false) => {}
            Err(error) => tracing::warn!(registration, %error, "cannot end a suspension"),
        }
    }

    /// Records the results of spilled messages: the target works again, or still fails; the last one ends it.
    async fn note_results(
        &self,
        records: &Records,
        results: &BTreeMap<&str, TargetResults>,
        now: Timestamp,
    ) {
        for (&name, results) in results {
            let Some(record) = records.get(name) else {
                continue;
            };
            let suspended = record.state == SuspensionState::Suspended;
            let record = match (results.sent > 0, suspended) {
                (true, true) => match self.save(&record.draining()).await {
                    // Another invocation may have been faster, and may have left the last key to this one.
                    None => self.current(name).await,
                    saved => saved,
                },
                (false, true) if results.failed > 0 => {
                    let failed = Suspension {
                        failed_at: now,
                        ..record.clone()
                    };
                    self.save(&failed).await;
                    None
                }
                _ => Some(record.clone()),
            };
            let record = record.filter(|record| record.state == SuspensionState::Draining);
            if let Some(record) = record {
                self.remove_if_drained(&record, now).await;
            }
        }
    }
}

#[derive(Default)]
struct TargetResults {
    sent: usize,
    failed: usize,
}

/// A message of the spill queue that can be sent.
struct Spilled {
    position: usize,
    stored: StoredNotification,
    registration: String,
    channel: usize,
    message: Message,
    group: String,
}

impl Listener {
    /// Sends the messages of the spill queue; returns before the deadline.
    pub async fn handle_spilled(
        &self,
        messages: &[QueueMessage],
        deadline: Timestamp,
    ) -> SpillSummary {
        let (clock, start) = (self.clock.as_ref(), self.clock.now());
        let until = UNDELIVERABLE_RESERVE.deadline(deadline, start);
        let all_failed = || SpillSummary {
            failed: messages.iter().map(|message| message.id.clone()).collect(),
            ..SpillSummary::default()
        };
        let Some(spill) = &self.spill else {
            return all_failed();
        };
        let records = match spill.read(until, clock).await {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(%error, "cannot read the records of failing targets");
                return all_failed();
            }
        };
        let parse = |message: &QueueMessage| StoredNotification::parse(&message.body);
        let stored: Vec<Option<StoredNotification>> = messages.iter().map(parse).collect();
        let marks = stored
            .iter()
            .map(|stored| stored.as_ref().and_then(mark_of));
        let marks: Vec<Option<(SpilledKey, String)>> = marks.collect();
        let waiting = match spill.waiting_keys(&marks, start).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, "cannot read the marks of spilled keys");
                return all_failed();
            }
        };
        let (mut to_send, mut ranges) = (Vec::new(), Vec::new());
        let (mut undeliverable, mut failed) = (Vec::new(), BTreeSet::new());
        for (position, (message, stored)) in messages.iter().zip(stored).enumerate() {
            let mark = marks[position].as_ref();
            if mark.is_some_and(|(key, _)| !waiting.contains(key)) {
                // Received again after everything of its key was sent: a later message may have arrived since.
                continue;
            }
            let spilled = match (stored, RecordRange::parse(&message.body)) {
                (Some(stored), _) => self.resolve(position, stored, message, start),
                (None, Some(range)) => {
                    ranges.push((position, range));
                    continue;
                }
                (None, None) => Err(Box::new(unreadable(message, "not a spilled notification"))),
            };
            match spilled {
                Err(stored) => {
                    let id = Some(message.id.clone());
                    undeliverable.push(Undeliverable::new(position, id, *stored));
                }
                Ok(spilled) => match records.get(&spilled.registration) {
                    Some(record) if record.is_paused(start) => drop(failed.insert(position)),
                    _ => to_send.push(spilled),
                },
            }
        }
        let envelopes = to_send.iter().map(|spilled| Envelope {
            key: &spilled.group,
            ..Envelope::new(spilled.channel, &spilled.message)
        });
        let envelopes: Vec<Envelope<'_>> = envelopes.collect();
        let message = |index: usize| to_send[index].message.clone();
        let attempts_end = until.min(start.after(ATTEMPT_TIME));
        let channels = &self.routes.channels;
        let sent = dispatch_with(channels, &envelopes, &message, attempts_end, clock).await;
        let rejected = sent.rejected.iter();
        let rejected: HashMap<usize, &str> =
            rejected.map(|one| (one.index, &*one.reason)).collect();
        let mut results: BTreeMap<&str, TargetResults> = BTreeMap::new();
        for (index, spilled) in to_send.iter().enumerate() {
            let results = results.entry(&spilled.registration).or_default();
            if sent.unsent.binary_search(&index).is_ok() {
                results.failed += 1;
                failed.insert(spilled.position);
            } else if let Some(&reason) = rejected.get(&index) {
                let stored = StoredNotification {
                    reason: reason.to_owned(),
                    ..spilled.stored.clone()
                };
                let id = Some(spilled.message.id.clone());
                undeliverable.push(Undeliverable::new(spilled.position, id, stored));
            } else {
                results.sent += 1;
            }
        }
        for (position, range) in &ranges {
            let message = &messages[*position];
            match self.redo(range, until).await {
                Ok(()) => {}
                Err(reason) if message.receives < RECORD_RECEIVES => {
                    tracing::warn!(reason, "cannot handle records again");
                    failed.insert(*position);
                }
                Err(reason) => {
                    let id = Some(message.id.clone());
                    let stored = unreadable(message, &reason);
                    undeliverable.push(Undeliverable::new(*position, id, stored));
                }
            }
        }
        let until = RESPONSE_RESERVE.deadline(deadline, start);
        let not_stored = self.send_undeliverable(&undeliverable, until).await;
        failed.extend(&not_stored);
        for (position, mark) in marks.iter().enumerate() {
            if let Some((key, id)) = mark.as_ref().filter(|_| !failed.contains(&position))
                && let Err(error) = spill.suspensions.clear(key, id).await
            {
                tracing::warn!(%error, "cannot clear the mark of a spilled key");
                failed.insert(position);
            }
        }
        spill.note_results(&records, &results, clock.now()).await;
        let failed = failed.into_iter();
        SpillSummary {
            sent: sent.sent,
            retried: sent.retried,
            undeliverable: undeliverable.len() - not_stored.len(),
            failed: failed
                .map(|position| messages[position].id.clone())
                .collect(),
        }
    }

    async fn redo(&self, range: &RecordRange, until: Timestamp) -> Result<(), String> {
        let records = self.records.as_ref();
        let records = records.ok_or("records of a stream cannot be read here")?;
        let time = time_left(self.clock.now(), until);
        let redone = tokio::time::timeout(time, self.handle_again(&**records, range, until));
        redone.await.unwrap_or_else(|_| Err("timed out".to_owned()))
    }

    /// Finds the channel of a spilled message; returns its form in the undeliverable queue if it can never be sent.
    fn resolve(
        &self,
        position: usize,
        mut stored: StoredNotification,
        received: &QueueMessage,
        now: Timestamp,
    ) -> Result<Spilled, Box<StoredNotification>> {
        stored.spill = None;
        let resolved = match stored.message(&self.registrations) {
            Ok(_) if now >= received.sent.after(SPILL_TIME) => {
                let days = SPILL_TIME.as_secs() / (24 * 3600);
                Err(format!("the target failed for {days} days"))
            }
            Ok((registration, _, message)) => match self.routes.route(registration) {
                Some(Route::Channel(channel)) => Ok((channel.index, message)),
                Some(Route::Clients) => self.delivery_channel(&stored).map(|to| (to, message)),
                None => Err("the registration has no target".to_owned()),
            },
            Err(error) => Err(error.to_string()),
        };
        match resolved {
            Ok((channel, message)) => {
                let registration = stored.registration.clone().unwrap_or_default();
                Ok(Spilled {
                    position,
                    group: group(&registration, &message.key),
                    registration,
                    channel,
                    message,
                    stored,
                })
            }
            Err(reason) => Err(Box::new(StoredNotification { reason, ..stored })),
        }
    }

    fn delivery_channel(&self, stored: &StoredNotification) -> Result<usize, String> {
        let clients = self.routes.clients();
        let (_, channels) = clients.ok_or("deliveries to clients are not configured")?;
        let message = stored.message.as_ref();
        Ok(match message.is_some_and(|message| message.unordered) {
            true => channels.unordered,
            false => channels.ordered,
        })
    }
}

/// The mark that a message clears if it is the last one of its key.
fn mark_of(stored: &StoredNotification) -> Option<(SpilledKey, String)> {
    let key = spilled_key(stored.registration.as_deref()?, &stored.key);
    Some((key, stored.spill.clone()?))
}

fn unreadable(message: &QueueMessage, reason: &str) -> StoredNotification {
    let stored = StoredNotification {
        reason: reason.to_owned(),
        ..StoredNotification::default()
    };
    stored.with_body(&serde_json::to_string(&message.body).unwrap_or_default())
}
