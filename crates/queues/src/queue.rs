//! One queue, standard or FIFO. Pure: time and chance are arguments, so that the local stack and the
//! simulation share this model.
//!
//! A standard queue may hand out its messages in any order, and more than once. A FIFO queue keeps the
//! order within a message group: while a message of a group is in flight, no other of that group is
//! handed out, except together with it in one receive.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// Time for which a FIFO queue remembers a deduplication id.
pub const DEDUPLICATION_MS: u64 = 5 * 60 * 1000;

/// The attributes of a queue that change what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    pub visibility_seconds: u64,
    pub delay_seconds: u64,
    pub retention_seconds: u64,
    pub max_message_bytes: usize,
    pub wait_seconds: u64,
    pub redrive: Option<Redrive>,
    pub content_based_deduplication: bool,
}

/// Moves a message to another queue after a number of receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redrive {
    pub dead_letter_queue: String,
    /// Receives after which a message is a dead letter.
    pub max_receive_count: u32,
}

/// Returns `true` for the letters that names of queues and topics and ids of batch entries may have.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(allowed)
}

impl Default for Attributes {
    /// The defaults of SQS, with messages of up to 1 MiB.
    fn default() -> Attributes {
        Attributes {
            visibility_seconds: 30,
            delay_seconds: 0,
            retention_seconds: 4 * 24 * 60 * 60,
            max_message_bytes: 1024 * 1024,
            wait_seconds: 0,
            redrive: None,
            content_based_deduplication: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttributeValue {
    /// `String`, `Number` or `Binary`, with an optional label after a dot.
    pub data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string_value: Option<String>,
    /// The value of a `Binary`, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_value: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewMessage {
    pub body: String,
    pub attributes: BTreeMap<String, AttributeValue>,
    /// Message group; required in FIFO queues, a tenant in standard queues.
    pub group: Option<String>,
    pub deduplication_id: Option<String>,
    /// Overrides the delay of the queue.
    pub delay_seconds: Option<u64>,
    pub trace_header: Option<String>,
}

/// A message in a queue. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    /// Position in the queue; also the sequence number of a FIFO queue.
    pub number: u64,
    pub body: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, AttributeValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplication_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_header: Option<String>,
    pub sent_ms: u64,
    /// The time from which the message can be received.
    pub visible_ms: u64,
    #[serde(default)]
    pub receives: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_receive_ms: Option<u64>,
    /// Name of the queue this message is a dead letter of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_source: Option<String>,
}

impl Message {
    /// The part of a receipt handle that identifies this receive of the message.
    pub fn receipt(&self) -> Receipt {
        Receipt {
            number: self.number,
            receive: self.receives,
        }
    }
}

/// Identifies one receive of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub number: u64,
    /// [`Message::receives`] after the receive.
    pub receive: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The message id; of the earlier message if this one is a duplicate.
    pub id: String,
    pub number: u64,
    /// `true` if the message was dropped as a duplicate.
    pub duplicate: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Messages that are in flight now.
    pub messages: Vec<Message>,
    /// Messages that were received too often; they are removed and belong into the dead-letter queue.
    pub dead_letters: Vec<Message>,
    /// Numbers of messages that were removed because their retention period was over.
    pub expired: Vec<u64>,
}

/// Approximate numbers of messages by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub visible: usize,
    /// Received and neither deleted nor visible again.
    pub in_flight: usize,
    /// Sent with a delay that is not over.
    pub delayed: usize,
}

/// Chooses which of the next messages or groups a queue hands out, and which messages it repeats.
pub trait Chance {
    /// An index below `count`.
    fn pick(&mut self, count: usize) -> usize;
    /// Returns `true` if a message stays visible although it was handed out.
    fn deliver_again(&mut self) -> bool;
}

/// Hands out messages in the order they became visible, each once.
#[derive(Debug, Clone, Copy, Default)]
pub struct InOrder;

impl Chance for InOrder {
    fn pick(&mut self, _: usize) -> usize {
        0
    }

    fn deliver_again(&mut self) -> bool {
        false
    }
}

/// Messages of a standard queue, or groups of a FIFO queue, among which chance picks the next.
const DISORDER: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Queue {
    name: String,
    attributes: Attributes,
    messages: BTreeMap<u64, Message>,
    next_number: u64,
    /// Standard queues: every message by the time it becomes visible.
    by_time: BTreeSet<(u64, u64)>,
    /// FIFO queues: the message numbers of each group, and each group by the time it can be received.
    groups: HashMap<String, BTreeSet<u64>>,
    ready_groups: BTreeSet<(u64, u64, String)>,
    ready_of_group: HashMap<String, (u64, u64)>,
    deduplication: HashMap<String, (u64, String, u64)>,
}

impl Queue {
    /// An empty queue. A name that ends in `.fifo` makes it a FIFO queue.
    pub fn new(name: &str, attributes: Attributes) -> Queue {
        Queue {
            name: name.to_owned(),
            attributes,
            ..Queue::default()
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub fn set_attributes(&mut self, attributes: Attributes) {
        self.attributes = attributes;
    }

    /// All messages, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    pub fn message(&self, number: u64) -> Option<&Message> {
        self.messages.get(&number)
    }

    /// Makes a message visible later than it would be.
    pub fn delay(&mut self, number: u64, by_ms: u64) {
        self.change(number, |message| message.visible_ms += by_ms);
    }

    /// Uses no number below this one for new messages.
    pub fn reserve_numbers(&mut self, below: u64) {
        self.next_number = self.next_number.max(below);
    }

    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The deduplication ids in force: id, time in milliseconds, message id, number.
    pub fn deduplication(&self) -> impl Iterator<Item = (&str, u64, &str, u64)> {
        let entries = self.deduplication.iter();
        entries.map(|(key, (sent, id, number))| (key.as_str(), *sent, id.as_str(), *number))
    }

    /// Accepts a message, or drops it as a duplicate.
    pub fn send(&mut self, id: String, message: NewMessage, now_ms: u64) -> Sent {
        if let Some(key) = &message.deduplication_id
            && let Some((sent, id, number)) = self.deduplication.get(key)
            && now_ms < sent + DEDUPLICATION_MS
        {
            return Sent {
                id: id.clone(),
                number: *number,
                duplicate: true,
            };
        }
        let delay = message
            .delay_seconds
            .unwrap_or(self.attributes.delay_seconds);
        let number = self.next_number;
        self.restore(Message {
            id: id.clone(),
            number,
            body: message.body,
            attributes: message.attributes,
            group: message.group,
            deduplication_id: message.deduplication_id,
            trace_header: message.trace_header,
            sent_ms: now_ms,
            visible_ms: now_ms + delay * 1000,
            receives: 0,
            first_receive_ms: None,
            dead_letter_source: None,
        });
        self.forget_old_deduplication_ids(now_ms);
        Sent {
            id,
            number,
            duplicate: false,
        }
    }

    /// Accepts a dead letter of another queue: it keeps its id and sent time.
    pub fn accept_dead_letter(&mut self, message: Message, source: &str) -> Message {
        let message = Message {
            number: self.next_number,
            visible_ms: 0,
            receives: 0,
            first_receive_ms: None,
            dead_letter_source: Some(source.to_owned()),
            ..message
        };
        self.insert(message.clone());
        message
    }

    /// Puts a message in as it is, and remembers its deduplication id.
    pub fn restore(&mut self, message: Message) {
        if let Some(key) = &message.deduplication_id
            && message.dead_letter_source.is_none()
        {
            self.restore_deduplication(key, message.sent_ms, &message.id, message.number);
        }
        self.insert(message);
    }

    pub fn restore_deduplication(&mut self, key: &str, sent_ms: u64, id: &str, number: u64) {
        let value = (sent_ms, id.to_owned(), number);
        self.deduplication.insert(key.to_owned(), value);
        self.next_number = self.next_number.max(number + 1);
    }

    /// Receives up to `max` messages and hides them for the visibility timeout.
    pub fn receive(
        &mut self,
        max: usize,
        visibility_seconds: Option<u64>,
        now_ms: u64,
        chance: &mut dyn Chance,
    ) -> Received {
        let seconds = visibility_seconds.unwrap_or(self.attributes.visibility_seconds);
        let visible_ms = now_ms + seconds * 1000;
        let mut received = Received {
            expired: self.expire(now_ms),
            ..Received::default()
        };
        if self.is_fifo() {
            self.receive_fifo(max, visible_ms, now_ms, chance, &mut received);
        } else {
            self.receive_standard(max, visible_ms, now_ms, chance, &mut received);
        }
        received
    }

    fn receive_standard(
        &mut self,
        max: usize,
        visible_ms: u64,
        now_ms: u64,
        chance: &mut dyn Chance,
        received: &mut Received,
    ) {
        let mut handed_out = BTreeSet::new();
        while received.messages.len() < max {
            let next: Vec<u64> = self
                .by_time
                .range(..=(now_ms, u64::MAX))
                .map(|(_, number)| *number)
                .filter(|number| !handed_out.contains(number))
                .take(DISORDER)
                .collect();
            if next.is_empty() {
                return;
            }
            let number = next[chance.pick(next.len()).min(next.len() - 1)];
            handed_out.insert(number);
            let visible_ms = match chance.deliver_again() {
                true => now_ms,
                false => visible_ms,
            };
            self.hand_out(number, visible_ms, now_ms, received);
        }
    }

    fn receive_fifo(
        &mut self,
        max: usize,
        visible_ms: u64,
        now_ms: u64,
        chance: &mut dyn Chance,
        received: &mut Received,
    ) {
        let is_ready = |(time, _, _): &&(u64, u64, String)| *time <= now_ms;
        let ready = self.ready_groups.iter().take_while(is_ready);
        let mut ready: Vec<String> = ready
            .take(max + DISORDER)
            .map(|(_, _, group)| group.clone())
            .collect();
        while received.messages.len() < max && !ready.is_empty() {
            let candidates = ready.len().min(DISORDER);
            let group = ready.remove(chance.pick(candidates).min(candidates - 1));
            let mut from = 0;
            while let Some(number) = self.number_of_group(&group, from) {
                let is_visible = |message: &Message| message.visible_ms <= now_ms;
                let found = self.messages.get(&number);
                // A delayed message holds up the rest of its group.
                if received.messages.len() == max || !found.is_some_and(is_visible) {
                    break;
                }
                self.hand_out(number, visible_ms, now_ms, received);
                from = number + 1;
            }
        }
    }

    fn number_of_group(&self, group: &str, from: u64) -> Option<u64> {
        self.groups.get(group)?.range(from..).next().copied()
    }

    /// Marks one message as received, or takes it out as a dead letter.
    fn hand_out(&mut self, number: u64, visible_ms: u64, now_ms: u64, received: &mut Received) {
        let limit = self
            .attributes
            .redrive
            .as_ref()
            .map(|redrive| redrive.max_receive_count);
        let Some(message) = self.messages.get(&number) else {
            return;
        };
        if limit.is_some_and(|limit| message.receives >= limit) {
            received.dead_letters.extend(self.remove(number));
            return;
        }
        self.change(number, |message| {
            message.receives += 1;
            message.first_receive_ms.get_or_insert(now_ms);
            message.visible_ms = visible_ms;
        });
        received
            .messages
            .extend(self.messages.get(&number).cloned());
    }

    /// Deletes a message if the receipt is its newest; returns its number.
    pub fn delete(&mut self, receipt: Receipt) -> Option<u64> {
        let message = self.messages.get(&receipt.number)?;
        (message.receives == receipt.receive).then_some(())?;
        self.remove(receipt.number).map(|message| message.number)
    }

    /// Changes when an in-flight message becomes visible again; returns whether there was one.
    pub fn change_visibility(&mut self, receipt: Receipt, seconds: u64, now_ms: u64) -> bool {
        let found = self.messages.get(&receipt.number);
        if !found.is_some_and(|m| m.receives == receipt.receive && m.visible_ms > now_ms) {
            return false;
        }
        self.change(receipt.number, |message| {
            message.visible_ms = now_ms + seconds * 1000
        });
        true
    }

    /// Overwrites the receive state of a message, as a journal recorded it.
    pub fn restore_receive(&mut self, number: u64, visible_ms: u64, receives: u32, first: u64) {
        self.change(number, |message| {
            message.visible_ms = visible_ms;
            message.receives = receives;
            message.first_receive_ms = Some(first);
        });
    }

    pub fn remove(&mut self, number: u64) -> Option<Message> {
        let message = self.messages.remove(&number)?;
        self.by_time.remove(&(message.visible_ms, number));
        if let Some(group) = self.group_of(&message)
            && let Some(numbers) = self.groups.get_mut(&group)
        {
            numbers.remove(&number);
            self.index_group(&group);
        }
        Some(message)
    }

    pub fn purge(&mut self) {
        self.messages.clear();
        self.by_time.clear();
        self.groups.clear();
        self.ready_groups.clear();
        self.ready_of_group.clear();
    }

    pub fn counts(&self, now_ms: u64) -> Counts {
        let mut counts = Counts::default();
        for message in self.messages.values() {
            match (message.visible_ms <= now_ms, message.receives) {
                (true, _) => counts.visible += 1,
                (false, 0) => counts.delayed += 1,
                (false, _) => counts.in_flight += 1,
            }
        }
        counts
    }

    /// The next time at which a message becomes visible.
    pub fn next_visible_ms(&self, now_ms: u64) -> Option<u64> {
        let standard = self
            .by_time
            .range((now_ms + 1, 0)..)
            .next()
            .map(|(time, _)| *time);
        let fifo = self
            .ready_groups
            .range((now_ms + 1, 0, String::new())..)
            .next();
        standard.or(fifo.map(|(time, _, _)| *time))
    }

    fn expire(&mut self, now_ms: u64) -> Vec<u64> {
        let retention = self.attributes.retention_seconds * 1000;
        let old = |message: &&Message| message.sent_ms + retention <= now_ms;
        let expired = self.messages.values().take_while(old);
        let expired: Vec<u64> = expired.map(|message| message.number).collect();
        for number in &expired {
            self.remove(*number);
        }
        expired
    }

    fn insert(&mut self, message: Message) {
        let number = message.number;
        self.next_number = self.next_number.max(number + 1);
        let group = self.group_of(&message);
        if group.is_none() {
            self.by_time.insert((message.visible_ms, number));
        }
        self.messages.insert(number, message);
        if let Some(group) = group {
            self.groups.entry(group.clone()).or_default().insert(number);
            self.index_group(&group);
        }
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Message)) {
        let is_fifo = self.is_fifo();
        let Some(message) = self.messages.get_mut(&number) else {
            return;
        };
        let before = message.visible_ms;
        change(message);
        let after = message.visible_ms;
        match is_fifo.then(|| message.group.clone().unwrap_or_default()) {
            Some(group) => self.index_group(&group),
            None => {
                self.by_time.remove(&(before, number));
                self.by_time.insert((after, number));
            }
        }
    }

    fn group_of(&self, message: &Message) -> Option<String> {
        self.is_fifo()
            .then(|| message.group.clone().unwrap_or_default())
    }

    /// A group can be received when its oldest message is visible and none of it is in flight.
    fn index_group(&mut self, group: &str) {
        if let Some((time, head)) = self.ready_of_group.remove(group) {
            self.ready_groups.remove(&(time, head, group.to_owned()));
        }
        let Some(numbers) = self.groups.get(group).filter(|numbers| !numbers.is_empty()) else {
            self.groups.remove(group);
            return;
        };
        let messages = numbers
            .iter()
            .filter_map(|number| self.messages.get(number));
        let mut received = messages.clone().take_while(|message| message.receives > 0);
        let head = messages.clone().next().map_or(0, |message| message.number);
        let first = messages
            .clone()
            .next()
            .map_or(0, |message| message.visible_ms);
        let time = received
            .by_ref()
            .map(|message| message.visible_ms)
            .fold(first, u64::max);
        self.ready_groups.insert((time, head, group.to_owned()));
        self.ready_of_group.insert(group.to_owned(), (time, head));
    }

    fn forget_old_deduplication_ids(&mut self, now_ms: u64) {
        if self.deduplication.len() % 1024 == 1023 {
            self.deduplication
                .retain(|_, (sent, _, _)| now_ms < *sent + DEDUPLICATION_MS);
        }
    }
}
