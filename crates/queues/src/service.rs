//! All queues and topics of one endpoint.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;
use crate::journal::{Entry, EntryRef, Journal, QueueEntry};
use crate::queue::{Attributes, Counts, Message, NewMessage, Queue, Receipt, Sent};
use crate::topics::Topics;
use crate::unkind::{Dice, Unkindness};

/// Prefix of the names of queues that are not listed.
pub const INTERNAL: &str = "__";

#[derive(Debug, Clone)]
pub struct QueuesConfig {
    pub account: String,
    pub region: String,
    /// URL of the endpoint without a slash at its end.
    pub endpoint: String,
    /// Directory of the journal; `None` keeps everything in memory.
    pub data_dir: Option<PathBuf>,
    pub unkindness: Unkindness,
}

/// All queues and topics. Clones share them.
#[derive(Debug, Clone)]
pub struct Queues {
    config: Arc<QueuesConfig>,
    state: Arc<Mutex<State>>,
    stop: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) queues: BTreeMap<String, QueueState>,
    pub(crate) topics: Topics,
    journal: Journal,
    dice: Dice,
}

#[derive(Debug, Default)]
pub(crate) struct QueueState {
    pub(crate) queue: Queue,
    pub(crate) entry: QueueEntry,
    arrived: Arc<Notify>,
}

impl Queues {
    /// Opens the queues of a data directory, or none.
    pub fn open(config: QueuesConfig) -> io::Result<Queues> {
        let mut state = State {
            queues: BTreeMap::new(),
            topics: Topics::default(),
            journal: Journal::default(),
            dice: Dice::new(config.unkindness),
        };
        if let Some(directory) = &config.data_dir {
            let mut create = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut create, 0o700);
            create.recursive(true).create(directory)?;
            let path = directory.join("queues.jsonl");
            Journal::read(&path, |entry| state.apply(entry))?;
            state.journal = Journal::rewrite(&path, state.snapshot())?;
        }
        Ok(Queues {
            config: Arc::new(config),
            state: Arc::new(Mutex::new(state)),
            stop: CancellationToken::new(),
        })
    }

    /// Ends all long polls.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub fn config(&self) -> &QueuesConfig {
        &self.config
    }

    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.config.endpoint, self.config.account)
    }

    pub fn queue_arn(&self, name: &str) -> String {
        format!(
            "arn:aws:sqs:{}:{}:{name}",
            self.config.region, self.config.account
        )
    }

    pub(crate) fn topic_arn(&self, name: &str) -> String {
        format!(
            "arn:aws:sns:{}:{}:{name}",
            self.config.region, self.config.account
        )
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a queue that only this process uses; it is not listed. One that exists gets these attributes.
    pub fn ensure_internal(&self, name: &str, attributes: Attributes) -> Result<(), ApiError> {
        self.lock().put_queue(QueueEntry {
            name: format!("{INTERNAL}{name}"),
            attributes,
            created_ms: now_ms(),
            ..QueueEntry::default()
        })
    }

    pub fn send(&self, name: &str, message: NewMessage) -> Result<Sent, ApiError> {
        self.lock().send(name, message)
    }

    pub fn counts(&self, name: &str) -> Result<Counts, ApiError> {
        Ok(self.lock().queue(name)?.queue.counts(now_ms()))
    }

    /// Deletes a message; a receipt that is not its newest changes nothing, as on SQS.
    pub fn delete(&self, name: &str, receipt: Receipt) -> Result<(), ApiError> {
        self.lock().delete(name, receipt)
    }

    /// Changes when an in-flight message becomes visible again.
    pub fn change_visibility(
        &self,
        name: &str,
        receipt: Receipt,
        seconds: u64,
    ) -> Result<(), ApiError> {
        self.lock().change_visibility(name, receipt, seconds)
    }

    /// Makes all messages in flight visible: for a queue whose consumers ended with the process before.
    pub fn release(&self, name: &str) -> Result<(), ApiError> {
        self.lock().release(name)
    }

    /// Receives messages, waiting for the first one up to `wait`.
    pub async fn receive(
        &self,
        name: &str,
        max: usize,
        visibility_seconds: Option<u64>,
        wait: Option<Duration>,
    ) -> Result<Vec<Message>, ApiError> {
        let started = Instant::now();
        loop {
            let (arrived, wait, next) = {
                let mut state = self.lock();
                let messages = state.receive(name, max, visibility_seconds)?;
                let queue = state.queue(name)?;
                let queue_wait = Duration::from_secs(queue.queue.attributes().wait_seconds);
                let wait = wait.unwrap_or(queue_wait);
                if !messages.is_empty() || started.elapsed() >= wait || self.stop.is_cancelled() {
                    return Ok(messages);
                }
                let now = now_ms();
                let next = queue.queue.next_visible_ms(now).map(|time| time - now);
                (Arc::clone(&queue.arrived).notified_owned(), wait, next)
            };
            let left = wait.saturating_sub(started.elapsed());
            let left = next.map_or(left, |next| left.min(Duration::from_millis(next)));
            tokio::select! {
                () = arrived => {}
                () = tokio::time::sleep(left) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }
}

impl State {
    pub(crate) fn queue(&self, name: &str) -> Result<&QueueState, ApiError> {
        self.queues.get(name).ok_or_else(ApiError::no_queue)
    }

    fn queue_mut(&mut self, name: &str) -> Result<&mut QueueState, ApiError> {
        self.queues.get_mut(name).ok_or_else(ApiError::no_queue)
    }

    /// Creates a queue or replaces its attributes and tags.
    pub(crate) fn put_queue(&mut self, mut entry: QueueEntry) -> Result<(), ApiError> {
        entry.modified_ms = now_ms();
        if let Some(found) = self.queues.get(&entry.name) {
            entry.next_number = found.queue.next_number();
        }
        self.record(Entry::Queue(entry))
    }

    pub(crate) fn delete_queue(&mut self, name: &str) -> Result<(), ApiError> {
        self.queue(name)?;
        self.record(Entry::DeleteQueue(name.to_owned()))
    }

    pub(crate) fn purge(&mut self, name: &str) -> Result<(), ApiError> {
        self.queue(name)?;
        self.record(Entry::Purge(name.to_owned()))
    }

    pub(crate) fn put_topics(&mut self, topics: Topics) -> Result<(), ApiError> {
        self.record(Entry::Topics(topics))
    }

    pub(crate) fn send(&mut self, name: &str, message: NewMessage) -> Result<Sent, ApiError> {
        let now = now_ms();
        let extra_ms = self.dice.delay_ms();
        let found = self.queues.get_mut(name).ok_or_else(ApiError::no_queue)?;
        let id = uuid::Uuid::new_v4().to_string();
        let sent = found.queue.send(id, message, now);
        if !sent.duplicate {
            let is_fifo = found.queue.is_fifo();
            if extra_ms > 0 && !is_fifo {
                found.queue.delay(sent.number, extra_ms);
            }
            found.arrived.notify_waiters();
            let stored = found.queue.message(sent.number);
            let entry = stored.map(|stored| EntryRef::Send(name, stored));
            let written = self.journal.append(entry.as_slice());
            written.map_err(|error| ApiError::journal(&error))?;
            self.compact_if_due()?;
        }
        Ok(sent)
    }

    fn receive(
        &mut self,
        name: &str,
        max: usize,
        visibility_seconds: Option<u64>,
    ) -> Result<Vec<Message>, ApiError> {
        let now = now_ms();
        let found = self.queues.get_mut(name).ok_or_else(ApiError::no_queue)?;
        let received = found
            .queue
            .receive(max, visibility_seconds, now, &mut self.dice);
        let mut entries = Vec::new();
        let state = |message: &Message| {
            let first = message.first_receive_ms.unwrap_or(now);
            (message.number, message.visible_ms, message.receives, first)
        };
        if !received.messages.is_empty() {
            let states = received.messages.iter().map(state).collect();
            entries.push(Entry::Receive(name.to_owned(), states));
        }
        let mut gone = received.expired;
        gone.extend(received.dead_letters.iter().map(|message| message.number));
        let target = found.queue.attributes().redrive.clone();
        for message in received.dead_letters {
            let target = target
                .as_ref()
                .map(|redrive| redrive.dead_letter_queue.as_str());
            let Some(dead) = target.and_then(|target| self.queues.get_mut(target)) else {
                tracing::warn!(
                    queue = name,
                    message_id = message.id,
                    "the dead-letter queue does not exist"
                );
                gone.retain(|number| *number != message.number);
                self.on(name, |queue| queue.restore(message));
                continue;
            };
            let stored = dead.queue.accept_dead_letter(message, name);
            dead.arrived.notify_waiters();
            entries.push(Entry::Send(dead.queue.name().to_owned(), stored));
        }
        if !gone.is_empty() {
            entries.push(Entry::Delete(name.to_owned(), gone));
        }
        // The next message of a FIFO group may be visible now.
        if let Some(found) = self.queues.get(name).filter(|_| entries.len() > 1) {
            found.arrived.notify_waiters();
        }
        self.journal(&entries)?;
        Ok(received.messages)
    }

    pub(crate) fn delete(&mut self, name: &str, receipt: Receipt) -> Result<(), ApiError> {
        let found = self.queue_mut(name)?;
        let deleted = found.queue.delete(receipt);
        if found.queue.is_fifo() {
            // The next message of its group can be received.
            found.arrived.notify_waiters();
        }
        match deleted {
            Some(number) => self.journal(&[Entry::Delete(name.to_owned(), vec![number])]),
            None => Ok(()),
        }
    }

    pub(crate) fn change_visibility(
        &mut self,
        name: &str,
        receipt: Receipt,
        seconds: u64,
    ) -> Result<(), ApiError> {
        let now = now_ms();
        let found = self.queue_mut(name)?;
        if !found.queue.change_visibility(receipt, seconds, now) {
            let text = "The specified message is not in flight.";
            return Err(ApiError::sqs("MessageNotInflight", text));
        }
        found.arrived.notify_waiters();
        let message = found.queue.message(receipt.number);
        let first = message
            .and_then(|message| message.first_receive_ms)
            .unwrap_or(now);
        let state = (receipt.number, now + seconds * 1000, receipt.receive, first);
        self.journal(&[Entry::Receive(name.to_owned(), vec![state])])
    }

    fn release(&mut self, name: &str) -> Result<(), ApiError> {
        let now = now_ms();
        let queue = &self.queue(name)?.queue;
        let in_flight = queue.messages().filter(|message| message.receives > 0);
        let states = in_flight
            .filter(|message| message.visible_ms > now)
            .map(|message| {
                let first = message.first_receive_ms.unwrap_or(now);
                (message.number, now, message.receives, first)
            });
        let states: Vec<_> = states.collect();
        match states.is_empty() {
            true => Ok(()),
            false => self.record(Entry::Receive(name.to_owned(), states)),
        }
    }

    /// Moves dead letters to a queue, or each to the queue it came from; returns how many.
    ///
    /// Like on SQS, a moved message gets a new id and a new sent time.
    pub(crate) fn move_messages(
        &mut self,
        source: &str,
        destination: Option<&str>,
    ) -> Result<usize, ApiError> {
        let now = now_ms();
        let messages: Vec<Message> = self.queue(source)?.queue.messages().cloned().collect();
        let mut moved = 0;
        for message in messages
            .into_iter()
            .filter(|message| message.visible_ms <= now)
        {
            let target = destination.or(message.dead_letter_source.as_deref());
            let Some(target) = target.filter(|target| self.queues.contains_key(*target)) else {
                continue;
            };
            let new = NewMessage {
                body: message.body,
                attributes: message.attributes,
                group: message.group,
                deduplication_id: message.deduplication_id.map(|_| message.id),
                delay_seconds: None,
                trace_header: message.trace_header,
            };
            self.send(target, new)?;
            self.queue_mut(source)?.queue.remove(message.number);
            self.journal(&[Entry::Delete(source.to_owned(), vec![message.number])])?;
            moved += 1;
        }
        Ok(moved)
    }

    /// Appends a change to the journal, then applies it.
    fn record(&mut self, entry: Entry) -> Result<(), ApiError> {
        self.journal(std::slice::from_ref(&entry))?;
        self.apply(entry);
        Ok(())
    }

    fn journal(&mut self, entries: &[Entry]) -> Result<(), ApiError> {
        if entries.is_empty() {
            return Ok(());
        }
        let written = self.journal.append(entries);
        written.map_err(|error| ApiError::journal(&error))?;
        self.compact_if_due()
    }

    /// Writes the entries of several changes at once; they fail together.
    pub(crate) fn journaled_together<T>(
        &mut self,
        change: impl FnOnce(&mut State) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        self.journal.collect();
        let changed = change(self);
        let written = self.journal.write();
        written.map_err(|error| ApiError::journal(&error))?;
        self.compact_if_due()?;
        changed
    }

    fn compact_if_due(&mut self) -> Result<(), ApiError> {
        if let Some(path) = self.journal.compaction_due().map(ToOwned::to_owned) {
            let rewritten = Journal::rewrite(&path, self.snapshot());
            self.journal = rewritten.map_err(|error| ApiError::journal(&error))?;
        }
        Ok(())
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Queue(entry) => {
                let found = self.queues.entry(entry.name.clone()).or_default();
                if found.queue.name().is_empty() {
                    found.queue = Queue::new(&entry.name, entry.attributes.clone());
                    found.queue.reserve_numbers(entry.next_number);
                }
                found.queue.set_attributes(entry.attributes.clone());
                found.entry = entry;
            }
            Entry::DeleteQueue(name) => {
                if let Some(found) = self.queues.remove(&name) {
                    found.arrived.notify_waiters();
                }
            }
            Entry::Topics(topics) => self.topics = topics,
            Entry::Send(name, message) => self.on(&name, |queue| queue.restore(message)),
            Entry::Receive(name, states) => self.on(&name, |queue| {
                for (number, visible, receives, first) in states {
                    queue.restore_receive(number, visible, receives, first);
                }
            }),
            Entry::Delete(name, numbers) => self.on(&name, |queue| {
                for number in numbers {
                    queue.remove(number);
                }
            }),
            Entry::Purge(name) => self.on(&name, Queue::purge),
            Entry::Deduplication(name, key, sent, id, number) => {
                self.on(&name, |queue| {
                    queue.restore_deduplication(&key, sent, &id, number)
                });
            }
        }
    }

    fn on(&mut self, name: &str, change: impl FnOnce(&mut Queue)) {
        if let Some(found) = self.queues.get_mut(name) {
            change(&mut found.queue);
        }
    }

    /// Returns entries that lead to the present state.
    fn snapshot(&self) -> impl Iterator<Item = Entry> + '_ {
        let queues = self.queues.values().flat_map(|found| {
            let name = found.queue.name().to_owned();
            let (sent, known) = (name.clone(), name);
            let entry = QueueEntry {
                next_number: found.queue.next_number(),
                ..found.entry.clone()
            };
            let messages = found.queue.messages().cloned();
            let messages = messages.map(move |message| Entry::Send(sent.clone(), message));
            let known = found
                .queue
                .deduplication()
                .map(move |(key, sent, id, number)| {
                    Entry::Deduplication(known.clone(), key.to_owned(), sent, id.to_owned(), number)
                });
            std::iter::once(Entry::Queue(entry))
                .chain(messages)
                .chain(known)
        });
        queues.chain(std::iter::once(Entry::Topics(self.topics.clone())))
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
